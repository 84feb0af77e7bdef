package commands_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/redlock"
)

// prolongs answers every extend with the validity.
func (c *conversation) prolongs(validity time.Duration) *stillClock {
	clock := &stillClock{}
	c.locks.extend = func(r redlock.ExtendRequest) (redlock.Grant, error) {
		return grant(c.t, r.Token, 41, validity, clock), nil
	}
	return clock
}

func TestDEXTEND_AnswersWhatIsLeftWhenItIsWritten(t *testing.T) {
	c := newConversation(t)
	clock := c.prolongs(19_796 * time.Millisecond)
	sink := c.start("DEXTEND", "invoices", "12345678", "20000")
	clock.now += time.Second
	if got := show(sink.read(t)); got != ":18796" {
		t.Error(got)
	}
	want := []redlock.ExtendRequest{{Key: "invoices", Token: "12345678", TTL: 20 * time.Second}}
	if !reflect.DeepEqual(c.locks.extended, want) {
		t.Errorf("got %+v", c.locks.extended)
	}
}

func TestDEXTEND_NamesADelay(t *testing.T) {
	c := newConversation(t)
	c.prolongs(time.Second)
	c.transcript(`
		> DEXTEND a 12345678 20000 delay 40000
		< :1000
		> DMEXTEND 12345678 20000 1 a DELAY 5
		< :1000
		> DEXTEND a 12345678 20000 DELAY
		< -ERR option DELAY needs a value; syntax: DEXTEND key token ttl [DELAY ms]
		> DEXTEND a 12345678 20000 DELAY 40001
		< -ERR ttl and DELAY are 60001 ms together, allowed are at most 60000 ms (--max-ttl); syntax: DEXTEND key token ttl [DELAY ms]
		> DMEXTEND 12345678 20000 1 a b
		< -ERR unknown option 'b' behind the keys: numkeys must be their number; syntax: DMEXTEND token ttl numkeys key [key ...] [DELAY ms]
		> DMEXTEND 12345678 20000 1 a DELAY 5 DELAY 5
		< -ERR option DELAY is given twice; syntax: DMEXTEND token ttl numkeys key [key ...] [DELAY ms]
	`)
	want := []redlock.ExtendRequest{
		{Key: "a", Token: "12345678", TTL: 20 * time.Second, Linger: 40 * time.Second},
		{Key: "a", Token: "12345678", TTL: 20 * time.Second, Linger: 5 * time.Millisecond, More: []redlock.Key{}},
	}
	if !reflect.DeepEqual(c.locks.extended, want) {
		t.Errorf("got %+v", c.locks.extended)
	}
}

func TestDEXTEND_IsNilForATokenThatDoesNotHoldTheLock(t *testing.T) {
	c := newConversation(t)
	c.locks.extend = func(redlock.ExtendRequest) (redlock.Grant, error) { return redlock.Grant{}, redlock.ErrNotHeld }
	c.transcript(`
		> DEXTEND invoices 12345678 20000
		< nil
	`)
}

func TestDEXTEND_NeverGivesALockBack(t *testing.T) {
	c := newConversation(t)
	clock := c.prolongs(time.Second)
	sink := c.start("DEXTEND", "invoices", "12345678", "20000")
	clock.now += time.Second
	want := "-EXPIRED the reply could be written only after 1000 ms, which leaves nothing of a ttl of 1000 ms; the lock may be lost, use a longer ttl"
	if got := show(sink.read(t)); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	sink.late.Undelivered()
	if len(c.locks.givenBack) > 0 {
		t.Errorf("given back %q", c.locks.givenBack)
	}
}

func TestDEXTEND_ProlongsWhatTheConnectionRemembers(t *testing.T) {
	c := newConversation(t)
	c.prolongs(time.Hour)
	c.client.LastAcquired.Remember(0, "a", "12345678", -time.Second)
	c.transcript(`
		> DEXTEND a 12345678 20000
		< :3600000
	`)
	for i := range maxLastAcquired {
		c.client.LastAcquired.Remember(0, redlock.Key("key-"+strconv.Itoa(i)), "12345678", -time.Second)
	}
	if _, ok := c.client.LastAcquired.Token(0, "a"); !ok {
		t.Error("forgotten as if it had expired")
	}
}

func TestDEXTEND_ReportsACallersMistakes(t *testing.T) {
	const syntax = "; syntax: DEXTEND key token ttl [DELAY ms]\n"
	newConversation(t).transcript(strings.ReplaceAll(`
		> DEXTEND a 12345678
		< -ERR wrong number of arguments for 'dextend' commandSYNTAX
		> DEXTEND a 12345678 1000 x
		< -ERR unknown option 'x'SYNTAX
		> DEXTEND a short 1000
		< -ERR invalid token: 5 bytes, allowed are 8 to 512SYNTAX
		> DEXTEND a 12345678 60001
		< -ERR ttl '60001' exceeds max-ttl, allowed are 10 to 60000 ms (--max-ttl)SYNTAX
		> DEXTEND "" 12345678 1000
		< -ERR invalid lock name: 0 bytes, allowed are 1 to 512SYNTAX
	`, "SYNTAX\n", syntax))
}
