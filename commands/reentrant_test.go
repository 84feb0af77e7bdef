package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

const (
	levelOne = redlock.Token("owner-of-a#aaaaaaaaaaaaaaaaaaaaaaaaaaa")
	levelTwo = redlock.Token("owner-of-a#bbbbbbbbbbbbbbbbbbbbbbbbbbb")
)

// reentrant is a conversation about one lock with these levels, the longest first.
func reentrant(t *testing.T, levels ...redlock.Token) (*conversation, *oneRedis, *fakeInspect) {
	inspect := &fakeInspect{}
	for _, token := range levels {
		inspect.view.Holders = append(inspect.view.Holders, redlock.Holder{Token: token, Confirmed: true, Fence: 41})
	}
	inspect.view.Count = len(levels)
	c, one := dropinConversation(t, commands.Deps{Inspect: inspect})
	c.releases(true, nil)
	return c, one, inspect
}

func TestDLOCK_REENTRANTMakesTheTokenTheOwners(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	if got := c.say("DLOCK k 1000 TOKEN owner-of-a REENTRANT META m"); !strings.HasPrefix(got, "[") {
		t.Error(got)
	}
	if r := c.locks.locked[0]; r.Token != "" || redlock.LevelOwner(r.Mode) != "owner-of-a" || r.Kind() != redlock.Shared || r.Meta() != "m" {
		t.Errorf("%+v", r)
	}
	for words, want := range map[string]string{
		"REENTRANT":                                                 "needs TOKEN",
		"TOKEN owner-of-a REENTRANT SHARED":                         "contradict",
		"TOKEN owner-of-a LIMIT 2 REENTRANT":                        "contradict",
		"TOKEN " + strings.Repeat("o", 485) + " REENTRANT":          "485 bytes, allowed are up to 484",
		"TOKEN " + string(levelOne) + " SHARED":                     "token of a level",
		"TOKEN " + string(levelOne):                                 "token of a level",
		"TOKEN " + string(levelOne) + " REENTRANT":                  "token of a level",
		"TOKEN owner-of-a REENTRANT REENTRANT":                      "given twice",
		"TOKEN short REENTRANT":                                     "invalid token: 5 bytes",
		"TOKEN " + strings.Repeat("o", 484) + " REENTRANT META 1 x": "unknown option 'x'",
	} {
		if got := c.say("DLOCK k 1000 " + words); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q in it", words, got, want)
		}
	}
	if len(c.locks.locked) != 1 {
		t.Errorf("%d requests were sent, want the first alone", len(c.locks.locked))
	}
}

func TestDUNLOCK_REENTRANTReleasesTheLevelThatEndsFirst(t *testing.T) {
	c, _, inspect := reentrant(t, levelOne, levelTwo, "a plain reader", "other-owner#aaaaaaaaaaaaaaaaaaaaaaaaaaa")
	c.transcript(`
		> DUNLOCK k owner-of-a REENTRANT
		< :1
		> DUNLOCK k owner-of-b REENTRANT
		< nil
		> DUNLOCK k owner-of-a REENTRANT x
		< -ERR unknown option 'x'; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
	`)
	if len(c.locks.unlocked) != 1 || c.locks.unlocked[0].Token != levelTwo {
		t.Errorf("released %+v, want the level that ends first", c.locks.unlocked)
	}
	inspect.view.Holders = inspect.view.Holders[:1]
	inspect.view.Count = 1
	c.transcript(`
		> DUNLOCK k owner-of-a REENTRANT
		< :0
	`)
	c.releases(false, nil) // it has just ended
	c.transcript(`
		> DUNLOCK k owner-of-a REENTRANT
		< nil
	`)
	c.releases(false, &redlock.NoQuorum{Needed: 3, Total: 5})
	if got := c.say("DUNLOCK k owner-of-a REENTRANT"); !strings.HasPrefix(got, "-NOQUORUM") {
		t.Error(got)
	}
	inspect.err = &redlock.NoQuorum{Needed: 3, Total: 5}
	if got := c.say("DUNLOCK k owner-of-a REENTRANT"); !strings.HasPrefix(got, "-NOQUORUM") {
		t.Error(got)
	}
}

// The masters list at most so many levels, and count all.
func TestReentrant_CountsLevelsThatAreNotListed(t *testing.T) {
	c, _, inspect := reentrant(t, levelOne, levelTwo)
	inspect.view.Count = 2000
	c.transcript(`
		> HGET k owner-of-a
		< "2000"
		> HGET k owner-of-b
		< nil
		> HEXISTS k owner-of-b
		< :0
		> DUNLOCK k owner-of-a REENTRANT
		< :1999
	`)
}

func TestDUNLOCK_REENTRANTPrefersLevelsThatAQuorumShows(t *testing.T) {
	c, _, inspect := reentrant(t, levelOne, levelTwo)
	inspect.view.Holders[1].Confirmed = false
	c.say("DUNLOCK k owner-of-a REENTRANT")
	if c.locks.unlocked[0].Token != levelOne {
		t.Errorf("released %+v, which no quorum shows", c.locks.unlocked)
	}
}

// The scripts of Redisson, by the SHA1 of each.
const (
	rlockEnter  = "149c5a8bf18676fd99e9e6e24923bd64d9b62f94"
	rlockFenced = "49babb5a1e6a0c5f188c2ae62b93b51cdfd63e45"
	rlockLeave  = "6866459238a13a701d42f4971f12d9f3a50e2442"
	rlockRenew  = "6a3d31570dc6f4b0bd32bcdc8e75667747c6f635"
	rlockForce  = "605e338249a7a1d40df83b04f7658354f883b41b"
)

// redisson sends the script of this SHA1.
func (c *conversation) redisson(sha string, words ...string) string {
	c.t.Helper()
	return c.words(append([]string{"EVALSHA", sha}, words...)...)
}

const (
	rlockID      = "26880009-7797-4858-b58d-e3fa08dcc80e:1"
	rlockChannel = "redisson_lock__channel:{k}"
)

func TestRedisson_TakesALevelForItsThread(t *testing.T) {
	c, one, _ := reentrant(t)
	c.grantsAll()
	if got := c.redisson(rlockEnter, "1", "k", "30000", rlockID); got != "nil" {
		t.Errorf("a lock that is free: %s", got)
	}
	if got := c.redisson(rlockFenced, "2", "k", "redisson_lock_token:{k}", "30000", rlockID); got != "[:-1 :41]" {
		t.Errorf("an RFencedLock: %s", got)
	}
	for _, r := range c.locks.locked {
		if r.Key != "k" || redlock.LevelOwner(r.Mode) != rlockID || r.Token != "" || r.TTL != 30*time.Second {
			t.Errorf("%+v", r)
		}
	}
	c.refusesAll()
	for left, want := range map[time.Duration]int{700 * time.Millisecond: 700, time.Minute: 2000, time.Millisecond: 10, redlock.Endless: 2000} {
		one.views["k"] = redlock.View{Kind: "string", Value: "another", Left: left}
		if got := c.redisson(rlockEnter, "1", "k", "30000", rlockID); got != fmt.Sprint(":", want) {
			t.Errorf("held for %v: %s, want it to sleep for %d ms", left, got, want)
		}
		if got := c.redisson(rlockFenced, "2", "k", "redisson_lock_token:{k}", "30000", rlockID); got != fmt.Sprintf("[:%d :-1]", want) {
			t.Errorf("an RFencedLock, held for %v: %s", left, got)
		}
	}
	one.failure = &redlock.NoQuorum{Needed: 3, Total: 5}
	if got := c.redisson(rlockEnter, "1", "k", "30000", rlockID); !strings.HasPrefix(got, "-NOQUORUM") {
		t.Errorf("it is not known for how long it is held: %s", got)
	}
	c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) { return redlock.Grant{}, one.failure }
	if got := c.redisson(rlockEnter, "1", "k", "30000", rlockID); !strings.HasPrefix(got, "-NOQUORUM") {
		t.Errorf("undecided: %s", got)
	}
}

func TestRedisson_ReleasesRenewsAndCountsLevels(t *testing.T) {
	first, second := redlock.Token(rlockID+"#aaaaaaaaaaaaaaaaaaaaaaaaaaa"), redlock.Token(rlockID+"#bbbbbbbbbbbbbbbbbbbbbbbbbbb")
	c, _, inspect := reentrant(t, first, second)
	leave := func() string {
		return c.redisson(rlockLeave, "3", "k", rlockChannel, "redisson_unlock_latch:{k}:1", "0", "30000", rlockID, "PUBLISH", "1")
	}
	var failed error
	c.locks.extend = func(r redlock.ExtendRequest) (redlock.Grant, error) {
		return grant(t, r.Token, 0, r.TTL, &stillClock{now: time.Second}), failed
	}
	renew := func(owner string) string { return c.redisson(rlockRenew, "2", "k", "j", "30000", owner, owner) }
	for _, step := range []struct{ got, want string }{
		{c.say("HGET k " + rlockID), `"2"`},
		{c.say("HEXISTS k " + rlockID), ":1"},
		{c.say("HEXISTS k owner-of-b"), ":0"},
		{renew(rlockID), "[:1 :1]"},
		{renew("owner-of-b"), "[:0 :0]"},
		{c.say("GET redisson_lock_token:{k}"), `"41"`},
		{leave(), ":0"},
	} {
		if step.got != step.want {
			t.Errorf("with two levels: %s, want %s", step.got, step.want)
		}
	}
	if len(c.locks.extended) != 4 || c.locks.extended[0].TTL != 30*time.Second || inspect.keys[3] != "k" || inspect.keys[4] != "j" {
		t.Errorf("extended %+v, read %q: want two levels of two locks", c.locks.extended, inspect.keys)
	}
	expire := func(mode string) string {
		return c.redisson("3fd750e0b43af99dbd223e5523718f18cded3664", "1", "k", "40000", mode)
	}
	if got := expire(""); got != ":1" || c.locks.extended[5].TTL != 40*time.Second {
		t.Errorf("expire: %s, %+v", got, c.locks.extended)
	}
	if got := expire("NX"); !strings.HasPrefix(got, "-ERR ") {
		t.Errorf("expire NX: %s", got)
	}
	failed = redlock.ErrNotHeld
	if got := renew(rlockID); got != "[:0 :0]" {
		t.Errorf("levels that are lost: %s", got)
	}
	failed = &redlock.NoQuorum{Needed: 3, Total: 5}
	if got := renew(rlockID); !strings.HasPrefix(got, "-NOQUORUM") {
		t.Errorf("undecided: %s", got)
	}
	inspect.view.Holders, inspect.view.Count = inspect.view.Holders[:1], 1
	if got := leave(); got != ":1" {
		t.Errorf("the last level: %s", got)
	}
	inspect.view.Holders[0].Token = "a plain lock's token"
	for _, got := range []string{c.words("HEXISTS", "k", ""), expire("")} {
		if got != ":0" {
			t.Errorf("a plain lock is a level of no owner: %s", got)
		}
	}
	inspect.view.Holders, inspect.view.Count = nil, 0
	for _, step := range []struct{ got, want string }{
		{leave(), "nil"}, {c.say("HGET k " + rlockID), "nil"}, {c.say("HEXISTS k " + rlockID), ":0"}, {c.say("GET redisson_lock_token:{k}"), "nil"},
		{c.say("DEL redisson_unlock_latch:{k}:1"), ":0"},
	} {
		if step.got != step.want {
			t.Errorf("without a level: %s, want %s", step.got, step.want)
		}
	}
}

func TestRedisson_UsersNeedTheLockAndForceUnlockTheCategory(t *testing.T) {
	thread := access.Everything("thread", "secret")
	thread.Keys, thread.Commands = []string{"k"}, []string{access.CategoryLock}
	users, err := access.NewUsers([]access.User{thread})
	if err != nil {
		t.Fatal(err)
	}
	c, _, _ := reentrant(t)
	c.deps.Users = users
	c.serve(c.deps)
	c.grantsAll()
	c.say("AUTH thread secret")
	if got := c.redisson(rlockFenced, "2", "k", "redisson_lock_token:{k}", "30000", rlockID); got != "[:-1 :41]" {
		t.Errorf("its own lock: %s", got)
	}
	for _, got := range []string{
		c.redisson(rlockEnter, "1", "j", "30000", rlockID),
		c.redisson(rlockRenew, "2", "k", "j", "30000", rlockID, rlockID),
		c.redisson(rlockForce, "2", "k", rlockChannel, "0", "PUBLISH"),
	} {
		if !strings.HasPrefix(got, "-NOPERM") {
			t.Errorf("not permitted: %s", got)
		}
	}
	operator, _, inspect := reentrant(t)
	inspect.forced = true
	if got := operator.redisson(rlockForce, "2", "k", rlockChannel, "0", "PUBLISH"); got != ":1" || inspect.force.Key != "k" {
		t.Errorf("forceUnlock: %s, %+v", got, inspect.force)
	}
}

func TestRedisson_RefusesWhatItDoesNotServe(t *testing.T) {
	c, _, _ := reentrant(t)
	for _, step := range []struct{ got, want string }{
		{c.redisson("8f6ed299ffd259f0539c20f89253998c0777ea75", "3", "k", "q", "t", "1", rlockID, "1", "1"), "use DLOCK key ttl FAIR WAIT ms"},
		{c.redisson("c7dc9d189c1715465a31a06ddbc008585e0c20be", "1", "k", "1"), "use DLOCK key ttl LIMIT n"},
		{c.redisson(rlockEnter, "2", "k", "j", "30000", rlockID), "other keys and arguments"},
		{c.redisson(rlockRenew, "2", "k", "j", "30000", rlockID), "other keys and arguments"},
		{c.redisson(rlockEnter, "1", "k", "30000", "short"), "its owner has 5 bytes, allowed are 8 to 256"},
		{c.redisson(rlockEnter, "1", "k", "never", rlockID), "not an integer"},
		{c.redisson(rlockEnter, "1", "k", "3600000", rlockID), "exceeds max-ttl"},
		{c.words("EVALSHA_RO", rlockEnter, "1", "k", "30000", rlockID), "read-only scripts"},
	} {
		if !strings.HasPrefix(step.got, "-ERR ") || !strings.Contains(step.got, step.want) {
			t.Errorf("%s, want %q", step.got, step.want)
		}
	}
	if len(c.locks.locked) > 0 {
		t.Errorf("%+v was sent", c.locks.locked)
	}
}

func TestSUBSCRIBE_WakesClientsOfRedisson(t *testing.T) {
	for name, channel := range map[string]string{"k": "redisson_lock__channel:{k}", "{shop}:k": "redisson_lock__channel:{shop}:k"} {
		c, events := listening(t)
		received := c.messages()
		c.say("SUBSCRIBE " + channel)
		events.happened(redlock.EventAcquired, name)
		events.happened(redlock.EventReleased, "other")
		if got := received(); got != "" {
			t.Errorf("%s: received %s of other locks", name, got)
		}
		for _, kind := range []redlock.EventKind{redlock.EventReleased, redlock.EventExpired, redlock.EventLost, redlock.EventForced} {
			events.happened(kind, name)
			if got, want := received(), fmt.Sprintf(`>"message" %q "0"`, channel); got != want {
				t.Errorf("%s, event %d: received %s, want %s", name, kind, got, want)
			}
		}
	}
}
