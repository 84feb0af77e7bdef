package commands_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// A lock and an attempt at work of the same name are two things to hold.
func TestQuota_AnAttemptAtWorkTakesASlotBesideALockOfItsName(t *testing.T) {
	user := low()
	user.Held = 2
	_, users := guarded(t, user)
	now := time.Now()
	users.Now = func() time.Time { return now }
	who, lock, work := users.Find("low"), access.HeldKey{Key: "a:1"}, access.WorkQuotaKey(0, "a:1")
	take := func(at access.HeldKey) (access.Reservation, bool) {
		slot, err := users.Reserve(who, at)
		return slot, err == nil
	}
	slot, _ := take(lock)
	slot.Fill(lock, "lock-token", time.Minute)
	slot, ok := take(work)
	if !ok {
		t.Fatal("the lock of that name fills the slot of the attempt")
	}
	slot.Fill(work, "work-token", time.Second)
	if _, ok := take(access.WorkQuotaKey(0, "a:2")); ok {
		t.Error("a third thing is held")
	}
	if _, ok := take(access.WorkQuotaKey(1, "a:1")); ok {
		t.Error("the attempt of another database takes the same slot")
	}
	users.Released(work, "lock-token")
	if _, ok := take(access.HeldKey{DB: 0, Key: "a:2"}); ok {
		t.Error("the lock's token ended the attempt")
	}
	users.Prolonged(work, "work-token", time.Hour)
	now = now.Add(2 * time.Second)
	if _, ok := take(access.HeldKey{DB: 0, Key: "a:2"}); ok {
		t.Error("an attempt that was extended has lost its slot")
	}
	users.Released(work, "work-token")
	if _, ok := take(access.HeldKey{DB: 0, Key: "a:2"}); !ok {
		t.Error("the slot of an ended attempt stays taken")
	}
}

func TestQuota_NoLockHasTheQuotaKeyOfAnAttempt(t *testing.T) {
	if _, err := arg.ParseKey(string(access.WorkQuotaKey(0, "a:1").Key)); err == nil {
		t.Error("a client may lock a name that stands for an attempt")
	}
}

// What SET and EXPIRE do to a lock counts as the lock does.
func TestQuota_FollowsLocksThatSETAndEXPIREChange(t *testing.T) {
	user := access.Everything("low", "pw")
	user.Held = 2
	users, err := access.NewUsers([]access.User{user})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	users.Now = func() time.Time { return now }
	c := newConversation(t)
	c.grantsAll()
	masters := &oneRedis{fakeLocks: c.locks, wrote: true}
	c.serve(commands.Deps{Locks: c.locks, RedisCompat: masters, Users: users, NoTTL: commands.PolicyAllow})
	c.say("AUTH low pw")
	const full = "-TRYLATER user 'low' may hold 2 locks at once (held in the users file); nothing was done"
	for _, step := range [][2]string{
		{"SET k1 new XX PX 30000", "+OK"}, {"SET k2 new IFEQ old PX 30000", "+OK"},
		{"SET k3 new XX PX 30000", full}, {"SET k3 new IFEQ old PX 30000", full}, {"SET k3 new NX PX 1000", full},
		{"SET k1 newer XX PX 30000", "+OK"}, {"DEL k1", ":1"}, {"SET k3 new NX PX 1000", "+OK"},
		{"PEXPIRE k3 30000", ":1"}, {"SET k4 new NX PX 1000", full},
	} {
		if got := c.say(step[0]); got != step[1] {
			t.Errorf("%s: %s, want %s", step[0], got, step[1])
		}
	}
	now = now.Add(10 * time.Second) // k3 would be over without its PEXPIRE
	if got := c.say("SET k4 new NX PX 1000"); got != full {
		t.Errorf("behind PEXPIRE: %s", got)
	}
	masters.wrote = false
	now = now.Add(time.Minute)
	for range 5 { // nothing is there to be replaced
		if got := c.say("SET k5 new XX PX 30000"); got != "nil" {
			t.Fatal(got)
		}
	}
}

// What scripts do that compare no token counts, too.
func TestQuota_FollowsLocksThatScriptsTakeAway(t *testing.T) {
	user, thief := access.Everything("low", "pw"), access.Everything("thief", "pw")
	user.Held, thief.Held = 1, 1
	users, err := access.NewUsers([]access.User{user, thief})
	if err != nil {
		t.Fatal(err)
	}
	c := newConversation(t)
	c.grantsAll()
	masters := &oneRedis{fakeLocks: c.locks, wrote: true, views: map[redlock.Key]redlock.View{}}
	for _, key := range []redlock.Key{"k1", "k2", "k3"} {
		masters.views[key] = redlock.View{Kind: "string", Value: "new", Left: 30 * time.Second}
	}
	c.serve(commands.Deps{Locks: c.locks, RedisCompat: masters, Users: users})
	full := func(user string) string {
		return "-TRYLATER user '" + user + "' may hold 1 locks at once (held in the users file); nothing was done"
	}
	is := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	discard := func(key string) string { return c.eval("EVAL", "return redis.call('DEL', KEYS[1])", "1", key) }
	overwrite := func(key string) string {
		return c.eval("EVAL", "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1", "1", key, "stolen", "30000")
	}
	take := func(key string) string { return c.say("SET " + key + " new NX PX 30000") }
	c.say("AUTH low pw")
	is(take("k1"), "+OK")
	is(take("k2"), full("low"))
	c.say("AUTH thief pw")
	is(discard("k1"), ":1")
	c.say("AUTH low pw")
	is(take("k2"), "+OK")
	is(take("k3"), full("low"))
	c.say("AUTH thief pw")
	is(overwrite("k2"), ":1")
	is(overwrite("k3"), full("thief"))
	is(take("k3"), full("thief"))
	is(overwrite("k2"), ":1")
	c.say("AUTH low pw")
	is(take("k3"), "+OK")
}

// With DELAY a lock takes its slot for as long as it takes its key.
func TestQuota_ADelayCountsAsTheLockDoes(t *testing.T) {
	user := access.Everything("low", "pw")
	user.Held = 1
	users, err := access.NewUsers([]access.User{user})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	users.Now = func() time.Time { return now }
	c := newConversation(t)
	given := func(token redlock.Token) redlock.Grant {
		g := grant(t, token, 41, time.Second, &stillClock{})
		set(t, reflect.ValueOf(&g).Elem(), "linger", 10*time.Second)
		return g
	}
	c.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) { return given(r.Token), nil }
	c.locks.extend = func(r redlock.ExtendRequest) (redlock.Grant, error) { return given(r.Token), nil }
	c.serve(commands.Deps{Locks: c.locks, Users: users})
	c.say("AUTH low pw")
	const full = "-TRYLATER user 'low' may hold 1 locks at once (held in the users file); nothing was done"
	for _, command := range []string{"DLOCK a 1000 DELAY 10000 TOKEN 12345678", "DEXTEND a 12345678 1000 DELAY 10000"} {
		if got := c.say(command); got[0] == '-' {
			t.Fatal(got)
		}
		now = now.Add(10 * time.Second)
		if got := c.say("DLOCK b 1000 TOKEN 87654321"); got != full {
			t.Errorf("while the delay of %s runs: %s", command, got)
		}
	}
	now = now.Add(time.Second)
	if got := c.say("DLOCK b 1000 TOKEN 87654321"); got == full {
		t.Error("after the delay:", got)
	}
}

// A lock that its holder keeps for a time takes its slot until then, also if its renewal has
// ended before the release was answered.
func TestQuota_AKeptLockTakesItsSlotUntilItEnds(t *testing.T) {
	user := low()
	user.Held = 1
	_, users := guarded(t, user)
	now := time.Now()
	users.Now = func() time.Time { return now }
	who, lock := users.Find("low"), access.HeldKey{Key: "a:1"}
	free := func() bool {
		slot, err := users.Reserve(who, access.HeldKey{Key: "a:2"})
		if err == nil {
			slot.Free()
		}
		return err == nil
	}
	slot, err := users.Reserve(who, lock)
	if err != nil {
		t.Fatal(err)
	}
	slot.Fill(lock, "lock-token", time.Hour)
	users.KeepKey(0, "a:1", "other-token")(time.Minute)
	goesOn := users.KeepKey(0, "a:1", "lock-token")
	users.ReleasedKey(0, "a:1", "lock-token")
	goesOn(time.Second)
	if free() {
		t.Error("a lock that is kept has lost its slot")
	}
	now = now.Add(time.Second)
	if !free() {
		t.Error("a lock that has ended takes a slot")
	}
}

// held logs in a user who may hold n things, and returns the reply beyond that.
func held(c *conversation, deps commands.Deps, n int) (full string) {
	c.t.Helper()
	user := access.Everything("low", "pw")
	user.Held = n
	users, err := access.NewUsers([]access.User{user})
	if err != nil {
		c.t.Fatal(err)
	}
	deps.Users = users
	c.serve(deps)
	c.say("AUTH low pw")
	return fmt.Sprintf("-TRYLATER user 'low' may hold %d locks at once (held in the users file); nothing was done", n)
}

// DEXTEND confirms a lock after a wait. What HOLD renews counts on when that validity is over.
func TestQuota_ARenewedLockTakesItsSlotWhateverExtendsIt(t *testing.T) {
	playHolds(t, func(h *holds) {
		deps := h.deps
		deps.RedisCompat = &oneRedis{fakeLocks: h.locks, wrote: true}
		full := held(h.conversation, deps, 1)
		h.play(1, 0, "DLOCK k 30000 TOKEN leaders-token HOLD")
		for _, command := range []string{"DEXTEND k leaders-token 30000", "PEXPIRE k 30000"} {
			h.play(1, 0, command)
			time.Sleep(time.Hour)
			if got := h.say("DLOCK other 1000 TOKEN others-token"); got != full {
				t.Errorf("an hour after %s: %s", command, got)
			}
		}
		h.play(1, 0, "DUNLOCK k leaders-token")
		h.play(1, 0, "DLOCK other 1000 TOKEN others-token")
	})
}

// A renewal may end before the lock does, and even before the grant is decided.
func TestQuota_ALockWhoseRenewalHasEndedTakesItsSlotUntilItEnds(t *testing.T) {
	for _, early := range []bool{false, true} {
		playHolds(t, func(h *holds) {
			full := held(h.conversation, h.deps, 1)
			plain := h.locks.lock
			var end func()
			h.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) {
				g, err := plain(r)
				if r.Hold != nil {
					end = func() { r.Hold.OnEnd(g, nil, 10*time.Second) }
					if early {
						end()
					}
				}
				return g, err
			}
			h.play(1, 0, "DLOCK k 30000 TOKEN leaders-token HOLD")
			if !early {
				time.Sleep(time.Hour)
				end()
			}
			time.Sleep(9 * time.Second)
			if got := h.say("DLOCK other 1000 TOKEN others-token"); got != full {
				t.Errorf("early %t, while it goes on: %s", early, got)
			}
			time.Sleep(time.Second)
			h.play(1, 0, "DLOCK other 1000 TOKEN others-token")
		})
	}
}

// A reader that becomes the writer, and the other way round, holds one lock.
func TestQuota_ATokenThatHoldsAKeyInAnotherModeKeepsItsSlot(t *testing.T) {
	user := low()
	user.Held = 1
	_, users := guarded(t, user)
	who := users.Find("low")
	take := func(mode redlock.Kind, key redlock.Key, token redlock.Token) bool {
		slot, err := users.ReserveKey(who, 0, mode, key, token)
		if err == nil {
			slot.FillKey(0, mode, key, token, time.Minute, false)
		}
		return err == nil
	}
	for _, mode := range []redlock.Kind{redlock.Shared, redlock.Exclusive, redlock.Shared} {
		if !take(mode, "a:1", "lock-token") {
			t.Errorf("mode %v is refused to the token that holds the key", mode)
		}
		if take(redlock.Shared, "a:1", "other-token") || take(mode, "a:2", "lock-token") {
			t.Errorf("mode %v: a second lock", mode)
		}
	}
	users.ReleasedKey(0, "a:1", "lock-token")
	if !take(redlock.Exclusive, "a:2", "lock-token") {
		t.Error("after its release it still takes a slot")
	}
}

func TestQuota_SurvivesThatTheUserIsRemovedForAWhile(t *testing.T) {
	user := low()
	user.Held = 2
	_, users := guarded(t, user)
	now := time.Now()
	users.Now = func() time.Time { return now }
	take := func(key redlock.Key) (access.Reservation, bool) {
		slot, err := users.ReserveKey(users.Find("low"), 0, redlock.Exclusive, key, "")
		return slot, err == nil
	}
	slot, _ := take("a:1")
	slot.FillKey(0, redlock.Exclusive, "a:1", "lock-token", time.Minute, false)
	waiting, _ := take("a:2")
	for _, list := range [][]access.User{{}, {access.Everything("other", "pw")}, {user}} {
		if err := users.Replace(list); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := take("a:3"); ok {
		t.Error("a lock and a request of before count no more")
	}
	waiting.Free()
	if slot, ok := take("a:3"); !ok {
		t.Error("the end of a request of before does not count")
	} else {
		slot.Free()
	}
	now = now.Add(time.Minute)
	for _, key := range []redlock.Key{"a:4", "a:5"} {
		if _, ok := take(key); !ok {
			t.Error("a lock of before counts for ever")
		}
	}
}

// Whatever takes a lock from its holder gives the slot back. What others hold counts on.
func TestQuota_ALockTakenByForceTakesNoSlot(t *testing.T) {
	c := newConversation(t)
	c.grantsAll()
	looks := &fakeInspect{forced: true}
	masters := &oneRedis{fakeLocks: c.locks, wrote: true, views: map[redlock.Key]redlock.View{"a:k": {Kind: "string", Value: "token-of-3", Left: time.Second}}}
	full := held(c, commands.Deps{Locks: c.locks, Inspect: looks, RedisCompat: masters}, 3)
	lock := []string{"DLOCK k 1000 TOKEN token-of-1 SHARED", "DLOCK k 1000 TOKEN token-of-2 SHARED", "DLOCK a:k 1000 TOKEN token-of-3"}
	for _, command := range lock {
		c.say(command)
	}
	if got := c.say("DLOCK other 1000 TOKEN others-token"); got != full {
		t.Fatal(got)
	}
	looks.err = &redlock.NoQuorum{}
	c.say("DFORCE k")
	if got := c.say("DLOCK other 1000 TOKEN others-token"); got != full {
		t.Error("after a DFORCE that is undecided:", got)
	}
	looks.err = nil
	c.say("DFORCE k")
	for _, command := range lock[:2] {
		if got := c.say(command); got == full {
			t.Errorf("after DFORCE, %s: %s", command, got)
		}
	}
	if got := c.say("DLOCK other 1000 TOKEN others-token"); got != full {
		t.Error("DFORCE of k gave back the slot of another lock:", got)
	}
	if got := c.eval("EVAL", discards, "1", "a:k"); got != ":1" {
		t.Fatal(got)
	}
	if got := c.say("DLOCK other 1000 TOKEN others-token"); got == full {
		t.Error("after a script that deletes:", got)
	}
}

func TestQuota_CountsWhatAScriptOverwrites(t *testing.T) {
	c := newConversation(t)
	c.grantsAll()
	held2 := redlock.View{Kind: "string", Value: "another value", Left: time.Second}
	masters := &oneRedis{fakeLocks: c.locks, wrote: true, views: map[redlock.Key]redlock.View{"a": held2, "b": held2}}
	full := held(c, commands.Deps{Locks: c.locks, RedisCompat: masters}, 1)
	overwrite := func(key string) string {
		return c.eval("EVAL", "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])", "1", key, "scripts-token", "30000")
	}
	masters.failure = &redlock.NoQuorum{}
	for range 3 {
		overwrite("a")
	}
	masters.failure = nil
	for range 2 {
		if got := overwrite("a"); got == full || got[0] == '-' {
			t.Error("the first lock, again:", got)
		}
	}
	if got := overwrite("b"); got != full {
		t.Error("a second lock:", got)
	}
	if got := c.say("DLOCK b 1000 TOKEN others-token"); got != full {
		t.Error("beside it:", got)
	}
}
