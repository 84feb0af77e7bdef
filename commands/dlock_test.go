package commands_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/redlock"
)

const lockSyntax = "; syntax: DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]"

// grants answers every lock with token "generated-token", fence 41 and the
// validity, unless the request has a token of its own.
func (c *conversation) grants(validity time.Duration) *stillClock {
	clock := &stillClock{now: time.Hour}
	c.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) {
		token := r.Token
		if token == "" {
			token = "generated-token"
		}
		return grant(c.t, token, 41, validity, clock), nil
	}
	return clock
}

func TestDLOCK_AnswersTokenValidityAndFence(t *testing.T) {
	c := newConversation(t)
	c.grants(29_698*time.Millisecond + 999*time.Microsecond)
	c.transcript(`
		> DLOCK invoices 30000
		< ["generated-token" :29698 :41]
		> dLoCk invoices 30000 token my-own-token
		< ["my-own-token" :29698 :41]
	`)
}

func TestDLOCK_SendsWhatWasRequested(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	c.transcript(`
		> SELECT 3
		< +OK
		> DLOCK "a\r\n\x00b" 10 meta "build 7" ToKeN 12345678
		< ["12345678" :1000 :41]
		> DLOCK x 60000 META ""
		< ["generated-token" :1000 :41]
		> DLOCK x 50000 delay 10000
		< ["generated-token" :1000 :41]
	`)
	want := []redlock.LockRequest{
		{DB: 3, Key: "a\r\n\x00b", TTL: 10 * time.Millisecond, Token: "12345678", Requester: &redlock.Requester{Meta: "build 7"}},
		{DB: 3, Key: "x", TTL: time.Minute},
		{DB: 3, Key: "x", TTL: 50 * time.Second, Linger: 10 * time.Second},
	}
	if !reflect.DeepEqual(c.locks.locked, want) {
		t.Errorf("got %+v\nwant %+v", c.locks.locked, want)
	}
}

func TestDLOCK_AcceptsTheLongestKeyTokenAndNote(t *testing.T) {
	c := newConversation(t)
	c.grants(time.Second)
	got := c.words("DLOCK", strings.Repeat("k", 512), "60000", "META", strings.Repeat("m", 512), "TOKEN", strings.Repeat("t", 512))
	if strings.HasPrefix(got, "-") {
		t.Error(got)
	}
}

func TestDLOCK_ReportsACallersMistakes(t *testing.T) {
	c := newConversation(t)
	long := strings.Repeat("x", 513)
	for _, of := range []struct {
		args []string
		want string
	}{
		{[]string{"k"}, "wrong number of arguments for 'dlock' command"},
		{[]string{"", "1000"}, "invalid lock name: 0 bytes, allowed are 1 to 512"},
		{[]string{long, "1000"}, "invalid lock name: 513 bytes, allowed are 1 to 512"},
		{[]string{"redlockd:seal", "1000"}, "invalid lock name 'redlockd:seal': names beginning with 'redlockd:' are reserved"},
		{[]string{"k", "60001"}, "ttl '60001' exceeds max-ttl, allowed are 10 to 60000 ms (--max-ttl)"},
		{[]string{"k", "9223372036854775807"}, "ttl '9223372036854775807' exceeds max-ttl, allowed are 10 to 60000 ms (--max-ttl)"},
		{[]string{"k", "1000", "TOKEN"}, "option TOKEN needs a value"},
		{[]string{"k", "1000", "TOKEN", "1234567"}, "invalid token: 7 bytes, allowed are 8 to 512"},
		{[]string{"k", "1000", "TOKEN", long}, "invalid token: 513 bytes, allowed are 8 to 512"},
		{[]string{"k", "1000", "META", long}, "invalid META: 513 bytes, allowed are 0 to 512"},
		{[]string{"k", "1000", "META", "a", "meta", "b"}, "option META is given twice"},
		{[]string{"k", "1000", "DELAY", "0"}, "DELAY '0' is not an integer or out of range, allowed are 1 to 60000 ms (--max-ttl)"},
		{[]string{"k", "1000", "DELAY", "59001"}, "ttl and DELAY are 60001 ms together, allowed are at most 60000 ms (--max-ttl)"},
		{[]string{"k", "1000", "NX"}, "unknown option 'NX'; it is not needed, a lock is taken only if it is free"},
		{[]string{"k", "1000", "TO\u212aEN", "12345678"}, "unknown option 'TO\u212aEN'"},
		{[]string{"k", "1000", long}, "unknown option '" + long[:64] + "...'"},
	} {
		got := c.words(append([]string{"DLOCK"}, of.args...)...)
		if want := "-ERR " + of.want + lockSyntax; got != want {
			t.Errorf("DLOCK %.80q\n got %s\nwant %s", of.args, got, want)
		}
	}
	if len(c.locks.locked) > 0 {
		t.Errorf("a mistaken request reached the masters: %+v", c.locks.locked)
	}
}

func TestDLOCK_RefusesATTLThatIsNotAPlainNumber(t *testing.T) {
	c := newConversation(t)
	for _, ttl := range []string{"", "0", "9", "-1", "1e3", "0x10", " 5", "5 ", "+5", "٣", "0100", "100.5", "9223372036854775808", "18446744073709552616"} {
		want := "-ERR ttl '" + ttl + "' is not an integer or out of range, allowed are 10 to 60000 ms" + lockSyntax
		if got := c.words("DLOCK", "k", ttl); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestDLOCK_NeverIgnoresAnOptionItDoesNotServe(t *testing.T) {
	c := newConversation(t)
	if got, want := c.words("DLOCK", "k", "1000", "fifo", "5"), "-ERR unknown option 'fifo'"+lockSyntax; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if len(c.locks.locked) > 0 {
		t.Errorf("locked nevertheless: %+v", c.locks.locked)
	}
}

func TestDLOCK_NeverShowsATokenInAnError(t *testing.T) {
	c := newConversation(t)
	if got := c.words("DLOCK", "k", "1000", "TOKEN", "secret!"); strings.Contains(got, "secret") {
		t.Error(got)
	}
}

func TestDLOCK_MirrorsTheOutcomeOfTheMasters(t *testing.T) {
	c := newConversation(t)
	for want, err := range map[string]error{
		"nil": redlock.ErrHeld,
		"-NOQUORUM 2 of 5 masters answered, 3 needed: a down, b stalled":                                      &redlock.NoQuorum{Answered: 2, Needed: 3, Total: 5, Missing: []string{"a down", "b stalled"}},
		"-EXPIRED " + (&redlock.Expired{Elapsed: time.Second, TTL: time.Second}).Error():                      &redlock.Expired{Elapsed: time.Second, TTL: time.Second},
		"-TRYLATER operations in flight: limit 9 reached (--max-operations); nothing was done, try later":     &redlock.Busy{What: "operations in flight", Limit: 9, Option: "--max-operations"},
		"-SHUTDOWN " + redlock.ErrShutdown.Error():                                                            redlock.ErrShutdown,
		"-WRONGTYPE Operation against a key holding the wrong kind of value: " + redlock.ErrWrongType.Error(): redlock.ErrWrongType,
		"-ERR something unforeseen": errors.New("something unforeseen"),
	} {
		c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) { return redlock.Grant{}, err }
		if got := c.say("DLOCK k 1000"); got != want {
			t.Errorf(" got %s\nwant %s", got, want)
		}
	}
	if len(c.locks.givenBack) > 0 {
		t.Errorf("an acquire that failed was given back here: %q", c.locks.givenBack)
	}
}

func TestDLOCK_ComputesTheValidityWhenTheReplyIsWritten(t *testing.T) {
	c := newConversation(t)
	clock := c.grants(500 * time.Millisecond)
	sink := c.start("DLOCK", "k", "1000")
	clock.now += 200 * time.Millisecond
	if got := show(sink.read(t)); got != `["generated-token" :300 :41]` {
		t.Error(got)
	}
}

func TestDLOCK_AnswersLaterFromAnotherGoroutine(t *testing.T) {
	c := newConversation(t)
	sink := c.start("DLOCK", "k", "1000")
	if sink.answers != 0 {
		t.Fatal("answered before the masters did")
	}
	finished := make(chan struct{})
	go func() {
		c.locks.waiting[0](redlock.Grant{}, redlock.ErrHeld)
		close(finished)
	}()
	<-finished
	if got := show(sink.read(t)); got != "nil" {
		t.Error(got)
	}
}

func TestDLOCK_GivesBackALockWithoutTimeLeft(t *testing.T) {
	for _, waited := range []time.Duration{500*time.Millisecond - time.Microsecond, 500 * time.Millisecond, time.Second} {
		c := newConversation(t)
		clock := c.grants(500 * time.Millisecond)
		sink := c.start("DLOCK", "k", "1000")
		clock.now += waited
		got := show(sink.read(t))
		if !strings.HasPrefix(got, "-EXPIRED the reply could be written only after ") {
			t.Error(got)
		}
		sink.late.Undelivered()
		if !slices.Equal(c.locks.givenBack, []redlock.Token{"generated-token"}) {
			t.Errorf("given back %q, want the token once", c.locks.givenBack)
		}
		if got := c.say("DUNLOCK k"); !strings.HasPrefix(got, "-ERR this connection holds nothing") {
			t.Errorf("a lock that was given back is remembered: %s", got)
		}
	}
}

func TestDLOCK_ExpiredShowsElapsedTimeAndTTL(t *testing.T) {
	c := newConversation(t)
	clock := c.grants(500 * time.Millisecond)
	sink := c.start("DLOCK", "k", "1000")
	clock.now += 700 * time.Millisecond
	want := "-EXPIRED the reply could be written only after 700 ms, which leaves nothing of a ttl of 1000 ms; the lock is given back, use a longer ttl"
	if got := show(sink.read(t)); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
}

func TestDLOCK_GivesBackALockWhoseClientHasGone(t *testing.T) {
	for name, written := range map[string]bool{"before the reply was computed": false, "after it was computed": true} {
		c := newConversation(t)
		c.grants(time.Second)
		sink := c.start("DLOCK", "k", "1000")
		if written {
			sink.late.Reply()
		}
		sink.late.Undelivered()
		if !slices.Equal(c.locks.givenBack, []redlock.Token{"generated-token"}) {
			t.Errorf("%s: given back %q", name, c.locks.givenBack)
		}
	}
}

func TestDLOCK_KeepsALeaseThatExistedBefore(t *testing.T) {
	c := newConversation(t)
	clock := &stillClock{}
	c.locks.lock = func(redlock.LockRequest) (redlock.Grant, error) {
		g := grant(t, "12345678", 1, time.Second, clock)
		g.Fresh = false
		return g, nil
	}
	gone := c.start("DLOCK", "k", "1000", "TOKEN", "12345678")
	gone.late.Undelivered()
	slow := c.start("DLOCK", "k", "1000", "TOKEN", "12345678")
	clock.now += time.Minute
	if got := show(slow.read(t)); !strings.Contains(got, "the lock that this token already held is left as it is") {
		t.Error(got)
	}
	if len(c.locks.givenBack) > 0 {
		t.Errorf("given back %q", c.locks.givenBack)
	}
}
