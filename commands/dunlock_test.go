package commands_test

import (
	"slices"
	"testing"
	"time"

	"redlockd/redlock"
)

// releases answers every unlock with the outcome.
func (c *conversation) releases(released bool, err error) {
	c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return released, err }
}

func TestDUNLOCK_AnswersWhetherTheTokenHeldTheLock(t *testing.T) {
	c := newConversation(t)
	c.releases(true, nil)
	c.transcript(`
		> DUNLOCK invoices 12345678
		< :1
	`)
	c.releases(false, nil)
	c.transcript(`
		> dunlock invoices 12345678
		< :0
	`)
	want := redlock.UnlockRequest{Key: "invoices", Token: "12345678"}
	if !slices.Equal(c.locks.unlocked, []redlock.UnlockRequest{want, want}) {
		t.Errorf("got %+v", c.locks.unlocked)
	}
}

func TestDUNLOCK_WithoutTokenReleasesWhatThisConnectionTookLast(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.releases(true, nil)
	c.transcript(`
		> DLOCK a 1000 TOKEN first-token
		< ["first-token" :1000 :41]
		> DLOCK b 1000
		< ["generated-token" :1000 :41]
		> DLOCK a 1000 TOKEN second-token
		< ["second-token" :1000 :41]
		> DUNLOCK a
		< :1
		> DUNLOCK a
		< -ERR this connection holds nothing on 'a' in database 0, give the token; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
		> DUNLOCK b
		< :1
	`)
	want := []redlock.UnlockRequest{{Key: "a", Token: "second-token"}, {Key: "b", Token: "generated-token"}}
	if !slices.Equal(c.locks.unlocked, want) {
		t.Errorf("got %+v", c.locks.unlocked)
	}
}

func TestDUNLOCK_WithoutTokenKeepsDatabasesApart(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.releases(true, nil)
	c.transcript(`
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> SELECT 5
		< +OK
		> DUNLOCK a
		< -ERR this connection holds nothing on 'a' in database 5, give the token; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
		> SELECT 0
		< +OK
		> DUNLOCK a
		< :1
	`)
}

func TestDUNLOCK_CanBeRepeatedWithoutTokenAfterAnError(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.releases(false, &redlock.NoQuorum{Answered: 2, Needed: 3, Total: 5})
	c.transcript(`
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> DUNLOCK a
		< -NOQUORUM 2 of 5 masters answered, 3 needed
	`)
	c.releases(true, nil)
	c.transcript(`
		> DUNLOCK a
		< :1
	`)
}

func TestDUNLOCK_WithTokenEndsWhatIsRemembered(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.releases(true, nil)
	c.transcript(`
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> DUNLOCK a another-token
		< :1
		> DUNLOCK a
		< :1
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> DUNLOCK a generated-token
		< :1
		> DUNLOCK a
		< -ERR this connection holds nothing on 'a' in database 0, give the token; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
	`)
}

func TestDUNLOCK_ForgetsALockThatWasLost(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.releases(false, nil)
	c.transcript(`
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> DUNLOCK a
		< :0
		> DUNLOCK a
		< -ERR this connection holds nothing on 'a' in database 0, give the token; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
	`)
}

func TestDUNLOCK_ReportsACallersMistakes(t *testing.T) {
	newConversation(t).transcript(`
		> DUNLOCK
		< -ERR wrong number of arguments for 'dunlock' command; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
		> DUNLOCK a 12345678 KEEP 5 c
		< -ERR wrong number of arguments for 'dunlock' command; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
		> DUNLOCK a 1234567
		< -ERR invalid token: 7 bytes, allowed are 8 to 512; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
		> DUNLOCK "" 12345678
		< -ERR invalid lock name: 0 bytes, allowed are 1 to 512; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
		> DUNLOCK redlockd:seal 12345678
		< -ERR invalid lock name 'redlockd:seal': names beginning with 'redlockd:' are reserved; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
	`)
}

func TestDUNLOCK_KeepsTheLockForATime(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.releases(true, nil)
	c.transcript(`
		> DLOCK a 1000
		< ["generated-token" :1000 :41]
		> DUNLOCK a generated-token keep 500
		< :1
		> DUNLOCK a
		< -ERR this connection holds nothing on 'a' in database 0, give the token; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]
	`)
	want := []redlock.UnlockRequest{{Key: "a", Token: "generated-token", Linger: 500 * time.Millisecond}}
	if !slices.Equal(c.locks.unlocked, want) {
		t.Errorf("got %+v", c.locks.unlocked)
	}
	const syntax = "; syntax: DUNLOCK key [token [KEEP ms | REENTRANT]]"
	for sent, mistake := range map[string]string{
		"KEEP":       "option KEEP needs a value",
		"KEEP 0":     "KEEP '0' is not an integer or out of range, allowed are 1 to 60000 ms (--max-ttl)",
		"KEEP 60001": "KEEP '60001' is not an integer or out of range, allowed are 1 to 60000 ms (--max-ttl)",
		"HOLD 5":     "unknown option 'HOLD'",
	} {
		if got := c.say("DUNLOCK a generated-token " + sent); got != "-ERR "+mistake+syntax {
			t.Errorf("%s: %s", sent, got)
		}
	}
	if got := c.say("DUNLOCK a KEEP 500"); got != "-ERR invalid token: 4 bytes, allowed are 8 to 512"+syntax {
		t.Error(got)
	}
}
