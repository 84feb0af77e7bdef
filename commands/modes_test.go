package commands_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

func TestDLOCK_RequestsTheModeThatWasNamed(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.transcript(`
		> DLOCK k 1000 shared
		< ["generated-token" :1000 :41]
		> DLOCK k 1000 LIMIT 1
		< ["generated-token" :1000 :41]
		> DLOCK k 1000 META m LIMIT 1024 TOKEN 12345678
		< ["12345678" :1000 :41]
	`)
	want := []redlock.LockRequest{
		{Key: "k", TTL: time.Second, Mode: redlock.Readers},
		{Key: "k", TTL: time.Second, Mode: redlock.PermitsOf(1)},
		{Key: "k", TTL: time.Second, Mode: redlock.PermitsOf(1024), Requester: &redlock.Requester{Meta: "m"}, Token: "12345678"},
	}
	if !reflect.DeepEqual(c.locks.locked, want) {
		t.Errorf("got %+v\nwant %+v", c.locks.locked, want)
	}
}

func TestDLOCK_ReportsWhatIsWrongWithAMode(t *testing.T) {
	c := newConversation(t)
	const contradiction = "options SHARED, LIMIT and REENTRANT contradict each other: a key has readers, a number of permits, or one owner's levels"
	for args, want := range map[string]string{
		"SHARED LIMIT 2":               contradiction,
		"LIMIT 2 SHARED":               contradiction,
		"SHARED shared":                "option SHARED is given twice",
		"LIMIT 2 LIMIT 2":              "option LIMIT is given twice",
		"LIMIT":                        "option LIMIT needs a value",
		"LIMIT 0":                      "LIMIT '0' is not an integer or out of range, allowed are 1 to 1024",
		"LIMIT 1025":                   "LIMIT '1025' is not an integer or out of range, allowed are 1 to 1024",
		"LIMIT -1":                     "LIMIT '-1' is not an integer or out of range, allowed are 1 to 1024",
		"LIMIT 1e3":                    "LIMIT '1e3' is not an integer or out of range, allowed are 1 to 1024",
		"LIMIT 9223372036854775808":    "LIMIT '9223372036854775808' is not an integer or out of range, allowed are 1 to 1024",
		"LIMIT SHARED":                 "LIMIT 'SHARED' is not an integer or out of range, allowed are 1 to 1024",
		"FAIR SHARED FAIR":             "option FAIR is given twice",
		"LIMIT 18446744073709551617 x": "LIMIT '18446744073709551617' is not an integer or out of range, allowed are 1 to 1024",
	} {
		got := c.say("DLOCK k 1000 " + args)
		if !strings.HasPrefix(got, "-ERR "+want+"; syntax: DLOCK ") {
			t.Errorf("DLOCK k 1000 %s\n got %s\nwant %s", args, got, want)
		}
	}
	if len(c.locks.locked) > 0 {
		t.Errorf("a mistaken request reached the masters: %+v", c.locks.locked)
	}
}

// What an operator made FAIR is FAIR, in every mode; other keys are not.
func TestDLOCK_KeysThatAreConfiguredAreFair(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.serve(commands.Deps{Locks: c.locks, FairKeys: func(k redlock.Key) bool { return k == "queue" }})
	for _, line := range []string{"DLOCK queue 1000", "DLOCK queue 1000 SHARED", "DMLOCK 1000 2 other queue", "DLOCK other 1000", "DLOCK other 1000 FAIR"} {
		c.say(line)
	}
	var fair []bool
	for _, r := range c.locks.locked {
		fair = append(fair, r.Fair)
	}
	if want := []bool{true, true, true, false, true}; !slices.Equal(fair, want) {
		t.Errorf("FAIR: %v, want %v", fair, want)
	}
}

func TestDLOCK_AnotherNumberOfPermitsIsAnErrorThatNamesBoth(t *testing.T) {
	c := newConversation(t)
	c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) {
		return redlock.Grant{}, &redlock.OtherLimit{Key: "k", Asked: 3, Limit: 5}
	}
	got := c.say("DLOCK k 1000 LIMIT 3")
	if !strings.HasPrefix(got, "-ERR LIMIT 3 was requested for 'k', which is held with LIMIT 5") {
		t.Error(got)
	}
}

func TestDUNLOCK_WithoutATokenReleasesWhatWasAcquiredLastInAnyMode(t *testing.T) {
	for _, mode := range []string{"", " SHARED", " LIMIT 2"} {
		c := newConversation(t)
		c.grants(time.Minute)
		c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return true, nil }
		c.say("DLOCK k 1000 TOKEN 12345678" + mode)
		c.say("DLOCK k 1000 TOKEN 87654321" + mode)
		if got := c.say("DUNLOCK k"); got != ":1" || c.locks.unlocked[0].Token != "87654321" {
			t.Errorf("DLOCK%s: %s, %+v", mode, got, c.locks.unlocked)
		}
	}
}

func TestDMLOCK_SendsAllKeysAndOptions(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.transcript(`
		> SELECT 3
		< +OK
		> DMLOCK 1000 3 c a b TOKEN 12345678 META note
		< ["12345678" :1000 :41]
		> dmlock 1000 1 token shared
		< ["generated-token" :1000 :41]
	`)
	want := []redlock.LockRequest{
		{DB: 3, Key: "c", More: []redlock.Key{"a", "b"}, TTL: time.Second, Token: "12345678", Requester: &redlock.Requester{Meta: "note"}},
		{DB: 3, Key: "token", More: []redlock.Key{}, TTL: time.Second, Mode: redlock.Readers},
	}
	if !reflect.DeepEqual(c.locks.locked, want) {
		t.Errorf("got %+v\nwant %+v", c.locks.locked, want)
	}
}

func TestDMLOCK_ReportsACallersMistakes(t *testing.T) {
	c := newConversation(t)
	many := strings.Repeat(" k", 65)
	for args, want := range map[string]string{
		"1000 0 k":             "numkeys '0' is not an integer or out of range, allowed are 1 to 64",
		"1000 65" + many:       "numkeys '65' is not an integer or out of range, allowed are 1 to 64",
		"1000 -1 k":            "numkeys '-1' is not an integer or out of range, allowed are 1 to 64",
		"1000 3 a b":           "numkeys is 3, but 2 arguments follow it",
		"1000 3 a b a":         "key 'a' is given twice",
		`1000 2 a ""`:          "invalid lock name: 0 bytes, allowed are 1 to 512",
		"1000 2 a redlockd:x":  "invalid lock name 'redlockd:x': names beginning with 'redlockd:' are reserved",
		"5 1 a":                "ttl '5' is not an integer or out of range, allowed are 10 to 60000 ms",
		"1000 1 a b":           "unknown option 'b' behind the keys: numkeys must be their number",
		"1000 1 a LIMIT 2":     "unknown option 'LIMIT' behind the keys: numkeys must be their number",
		"1000 1 a FAIR fair":   "option FAIR is given twice",
		"1000 1 a SHARED B":    "unknown option 'B' behind the keys: numkeys must be their number",
		"1000 1 a TOKEN short": "invalid token: 5 bytes, allowed are 8 to 512",
	} {
		got := c.say("DMLOCK " + args)
		if !strings.HasPrefix(got, "-ERR "+want+"; syntax: DMLOCK ttl numkeys key [key ...]") {
			t.Errorf("DMLOCK %s\n got %s\nwant %s", args, got, want)
		}
	}
	if len(c.locks.locked) > 0 {
		t.Errorf("a mistaken request reached the masters: %+v", c.locks.locked)
	}
}

func TestDMLOCK_RemembersEveryKeyAndGivesAllOfThemBack(t *testing.T) {
	c := newConversation(t)
	clock := c.grants(time.Second)
	c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return true, nil }
	c.transcript(`
		> DMLOCK 1000 2 a b
		< ["generated-token" :1000 :41]
		> DUNLOCK b
		< :1
		> DUNLOCK a
		< :1
	`)
	c.start("DMLOCK", "1000", "2", "a", "b").late.Undelivered()
	slow := c.start("DMLOCK", "1000", "2", "a", "b")
	clock.now += time.Minute
	if got := show(slow.read(t)); !strings.HasPrefix(got, "-EXPIRED ") || !strings.Contains(got, "the locks are given back") {
		t.Error(got)
	}
	if len(c.locks.givenBack) != 2 {
		t.Errorf("given back %q, want both grants, which no client relies on", c.locks.givenBack)
	}
}

func TestDMLOCK_IsNilIfAnyKeyIsTaken(t *testing.T) {
	c := newConversation(t)
	c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) { return redlock.Grant{}, redlock.ErrHeld }
	if got := c.say("DMLOCK 1000 2 a b"); got != "nil" {
		t.Error(got)
	}
}

func TestDMUNLOCK_AnswersHowManyKeysWereReleased(t *testing.T) {
	c := newConversation(t)
	c.locks.unlock = func(r redlock.UnlockRequest) (bool, error) { return r.Key != "b", nil }
	if got := c.say("DMUNLOCK 12345678 3 a b c"); got != ":2" {
		t.Error(got)
	}
	want := []redlock.UnlockRequest{{Key: "a", Token: "12345678"}, {Key: "b", Token: "12345678"}, {Key: "c", Token: "12345678"}}
	if !reflect.DeepEqual(c.locks.unlocked, want) {
		t.Errorf("got %+v", c.locks.unlocked)
	}
	if got := c.say("DMUNLOCK 12345678 1 a b"); !strings.HasPrefix(got, "-ERR unexpected argument 'b' behind the keys") {
		t.Error(got)
	}
}

func TestDMUNLOCK_NamesTheKeysThatAreUndecided(t *testing.T) {
	c := newConversation(t)
	c.locks.unlock = func(r redlock.UnlockRequest) (bool, error) {
		if r.Key == "a" {
			return true, nil
		}
		return false, &redlock.NoQuorum{Answered: 1, Needed: 2, Total: 3, Missing: []string{"x down", "y down"}}
	}
	want := "-NOQUORUM of 3 keys 1 were released and 2 are undecided: 'b' 'c'; 1 of 3 masters answered, 2 needed: x, y down"
	if got := c.say("DMUNLOCK 12345678 3 a b c"); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
}

func TestDMEXTEND_AnswersTheValidityOrNil(t *testing.T) {
	c := newConversation(t)
	c.prolongs(800 * time.Millisecond)
	if got := c.say("DMEXTEND 12345678 1000 2 a b"); got != ":800" {
		t.Error(got)
	}
	want := []redlock.ExtendRequest{{Key: "a", More: []redlock.Key{"b"}, Token: "12345678", TTL: time.Second}}
	if !reflect.DeepEqual(c.locks.extended, want) {
		t.Errorf("got %+v", c.locks.extended)
	}
	c.locks.extend = func(redlock.ExtendRequest) (redlock.Grant, error) { return redlock.Grant{}, redlock.ErrNotHeld }
	if got := c.say("DMEXTEND 12345678 1000 2 a b"); got != "nil" {
		t.Error(got)
	}
	c.locks.extend = func(redlock.ExtendRequest) (redlock.Grant, error) { return redlock.Grant{}, errors.New("whatever") }
	if got := c.say("DMEXTEND 12345678 1000 2 a b"); got != "-ERR whatever" {
		t.Error(got)
	}
	if got := c.say("DMEXTEND 12345678 1000 2 a a"); !strings.HasPrefix(got, "-ERR key 'a' is given twice; syntax: DMEXTEND token ttl numkeys key [key ...]") {
		t.Error(got)
	}
}

// Every reader and every permit is a lock of its own in a quota, several keys
// are as many; whatever ends them frees a slot.
func TestQuota_CountsHoldersInEveryMode(t *testing.T) {
	user := low()
	user.Held, user.Keys = 3, []string{"*"}
	c, users := guarded(t, user)
	c.client.User = user.Name
	now := time.Now()
	users.Now = func() time.Time { return now }
	c.grants(30 * time.Second)
	c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return true, nil }
	full := func(line string) {
		t.Helper()
		if got := c.say(line); !strings.HasPrefix(got, "-TRYLATER user 'low' may hold 3 locks at once") {
			t.Errorf("%s: %s", line, got)
		}
	}
	fits := func(line string) {
		t.Helper()
		if got := c.say(line); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %s", line, got)
		}
	}
	for i := range 3 {
		fits(fmt.Sprintf("DLOCK a:1 1000 SHARED TOKEN token-nr-%d", i))
	}
	full("DLOCK a:1 1000 SHARED")
	full("DLOCK a:2 1000")
	fits("DLOCK a:1 1000 SHARED TOKEN token-nr-0")
	fits("DUNLOCK a:1 token-nr-1")
	full("DMLOCK 1000 2 a:3 a:4 TOKEN token-nr-9")
	fits("DMLOCK 1000 1 a:3 TOKEN token-nr-9")
	full("DLOCK a:5 1000 LIMIT 2")
	fits("DMUNLOCK token-nr-9 1 a:3")
	fits("DLOCK a:5 1000 LIMIT 2 TOKEN token-nr-8")
	full("DLOCK a:5 1000 LIMIT 2")
	now = now.Add(time.Minute)
	fits("DMLOCK 1000 3 a:1 a:2 a:3")
}

func TestUsers_EveryKeyOfSeveralMustBeAllowed(t *testing.T) {
	user := low()
	c, _ := guarded(t, user)
	c.client.User = user.Name
	c.grants(time.Second)
	for _, line := range []string{"DMLOCK 1000 2 a:1 b", "DMUNLOCK 12345678 2 a:1 b", "DMEXTEND 12345678 1000 2 a:1 b"} {
		if got := c.say(line); !strings.HasPrefix(got, "-NOPERM this user has no permissions to access one of the keys") {
			t.Errorf("%s: %s", line, got)
		}
	}
	if len(c.locks.locked)+len(c.locks.unlocked)+len(c.locks.extended) > 0 {
		t.Error("a key of another user reached the masters")
	}
}
