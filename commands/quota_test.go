package commands_test

import (
	"reflect"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/pool"
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
	take := func(at access.HeldKey) (access.Slot, bool) {
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
	masters := &oneRedis{fakeLocks: c.locks, answers: redlock.ScriptOutcome{Replied: true, Yes: true, Reply: pool.Reply{Kind: pool.ReplyInt, Int: 1}}}
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
		set(t, reflect.ValueOf(&g).Elem(), "delay", 10*time.Second)
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
