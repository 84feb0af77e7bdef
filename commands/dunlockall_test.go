package commands_test

import (
	"slices"
	"testing"
	"time"

	"redlockd/redlock"
)

func TestDUNLOCKALL_ReleasesWhatTheConnectionHoldsInEveryDatabase(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.releases(true, nil)
	c.transcript(`
		> DUNLOCKALL
		< :0
		> DLOCK a 1000 TOKEN former-token
		< ["former-token" :1000 :41]
		> DLOCK a 1000 TOKEN token-of-a
		< ["token-of-a" :1000 :41]
		> SELECT 5
		< +OK
		> DMLOCK 1000 2 b c TOKEN token-of-both
		< ["token-of-both" :1000 :41]
		> DLOCK d 1000
		< ["generated-token" :1000 :41]
		> DUNLOCK d
		< :1
	`)
	c.locks.unlocked = nil
	c.transcript(`
		> DUNLOCKALL
		< :3
		> DUNLOCKALL
		< :0
	`)
	want := []redlock.UnlockRequest{{DB: 5, Key: "c", Token: "token-of-both"}, {DB: 5, Key: "b", Token: "token-of-both"}, {Key: "a", Token: "token-of-a"}}
	if !slices.Equal(c.locks.unlocked, want) {
		t.Errorf("released %+v, want %+v", c.locks.unlocked, want)
	}
}

// What another has taken meanwhile counts no more, and what the masters could not decide can be repeated.
func TestDUNLOCKALL_CountsWhatWasHeldAndNamesWhatIsUndecided(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.locks.unlock = func(u redlock.UnlockRequest) (bool, error) {
		if u.Key == "b" {
			return false, &redlock.NoQuorum{Answered: 2, Needed: 3, Total: 5}
		}
		return u.Key == "a", nil
	}
	c.transcript(`
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> DLOCK b 1000
		< ["generated-token" :1000 :41]
		> DLOCK lost 1000
		< ["generated-token" :1000 :41]
		> DUNLOCKALL
		< -NOQUORUM of 3 keys 1 were released and 1 are undecided: 'b'; 2 of 5 masters answered, 3 needed
	`)
	c.releases(true, nil)
	c.transcript(`
		> DUNLOCKALL
		< :1
		> DUNLOCKALL now
		< -ERR wrong number of arguments for 'dunlockall' command; syntax: DUNLOCKALL
	`)
}

// After RESET the connection may belong to another program, which must give tokens.
func TestDUNLOCKALL_LeavesWhatWasHandedOn(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.releases(true, nil)
	c.transcript(`
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> RESET
		< +RESET
		> DUNLOCKALL
		< :0
	`)
	if len(c.locks.unlocked) > 0 {
		t.Errorf("released %+v", c.locks.unlocked)
	}
}
