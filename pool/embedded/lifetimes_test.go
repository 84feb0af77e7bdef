package embedded

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ms is a moment in the form of PXAT.
func ms(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func TestEmbedded_KeysThatAreHeldCostAnExchangeNothing(t *testing.T) {
	c, w := newClient(t)
	const held = 5000
	key := func(i int) string { return "held" + strconv.Itoa(i) }
	var flush strings.Builder
	for i := range held {
		flush.WriteString(encode("SET", key(i), "token", "NX", "PXAT", ms(w.time().Add(time.Hour+time.Duration(i)*time.Millisecond))))
	}
	if _, err := c.conn.Write([]byte(flush.String())); err != nil {
		t.Fatal(err)
	}
	for range held {
		if got := c.read(); got != "OK" {
			t.Fatalf("SET: %q", got)
		}
	}
	stored := make([]time.Duration, held)
	for i := range stored {
		stored[i] = c.master.Server().TTL(key(i))
	}
	for range 100 {
		w.move(time.Second)
		c.master.Turn(func() {})
	}
	if n := c.master.expiries.checks; n != 0 {
		t.Errorf("100 exchanges checked %d of the keys that are held, want none", n)
	}
	for i := range stored {
		if now := c.master.Server().TTL(key(i)); now != stored[i] {
			t.Fatalf("an exchange changed what is stored for key %d: %v, was %v", i, now, stored[i])
		}
	}
	w.move(time.Hour - 100*time.Second + 9*time.Millisecond)
	c.master.Turn(func() {})
	if n := c.master.expiries.checks; n != 10 {
		t.Errorf("checked %d keys, want the 10 that expired", n)
	}
	c.want("0", "EXISTS", key(0), key(9))
	c.want("1", "EXISTS", key(10))
}

// reads are commands that must not show a key that has expired.
var reads = []struct{ want, command string }{
	{"nil", "GET key"}, {"0", "EXISTS key"}, {"-2", "TTL key"}, {"-2", "PTTL key"}, {"-2", "PEXPIRETIME key"}, {"-2", "EXPIRETIME key"},
	{"none", "TYPE key"}, {"0", "STRLEN key"}, {"0", "PEXPIRE key 100"}, {"0", "DEL key"}, {"OK", "SET key other NX PX 5"},
}

func TestEmbedded_NoCommandShowsAKeyThatHasExpired(t *testing.T) {
	for _, db := range []string{"0", "3"} {
		for _, read := range reads {
			words := strings.Fields(read.command)
			t.Run(db+" "+words[0], func(t *testing.T) {
				c, w := newClient(t)
				c.want("OK", "SELECT", db)
				c.want("OK", "SET", "key", "token", "PXAT", ms(w.time().Add(300*time.Millisecond)))
				w.move(299 * time.Millisecond)
				c.want("1", "EXISTS", "key")
				c.want("1", "PTTL", "key")
				w.move(time.Millisecond)
				c.want(read.want, words...)
			})
		}
	}
}

func TestEmbedded_AScriptSeesNoKeyThatHasExpired(t *testing.T) {
	c, w := newClient(t)
	const script = `redis.call('SELECT', ARGV[1])
		local set = redis.call('SET', 'new', 'x', 'NX', 'PXAT', ARGV[2])
		return {redis.call('EXISTS', 'key'), redis.call('PTTL', 'key'), redis.call('PEXPIRETIME', 'key'),
			tostring(redis.call('GET', 'key')), set and 1 or 0, redis.call('PTTL', 'new')}`
	for _, db := range []string{"0", "3"} {
		c.want("OK", "SELECT", db)
		end := w.time().Add(300 * time.Millisecond)
		c.want("OK", "SET", "key", "token", "PXAT", ms(end))
		w.move(299 * time.Millisecond)
		c.want("1 1 "+ms(end)+" token 1 41", "EVAL", script, "0", db, ms(w.time().Add(41*time.Millisecond)))
		w.move(time.Millisecond)
		c.want("0 -2 -2 false 0 40", "EVAL", script, "0", db, ms(w.time().Add(time.Hour)))
		w.move(40 * time.Millisecond)
		c.want("0 -2 -2 false 1 3600000", "EVAL", script, "0", db, ms(w.time().Add(time.Hour)))
	}
}

func TestEmbedded_ACopyWhoseTimeIsOverIsGoneWithinItsOwnExchange(t *testing.T) {
	for _, test := range []struct{ want, command string }{
		{"OK 0", "SET key new PXAT PAST"}, {"nil 1", "SET key new NX PXAT PAST"}, {"OK 0", "SET key new XX PXAT PAST"},
		{"OK 0", "SET free new NX PXAT PAST"}, {"nil 0", "SET free new XX PXAT PAST"},
		{"1 0", "PEXPIREAT key PAST"}, {"0 1", "PEXPIREAT key PAST GT"}, {"1 0", "PEXPIREAT key PAST LT"}, {"0 0", "PEXPIREAT free PAST"},
		{"1 0", "PEXPIRE key 0"}, {"1 0", "EXPIRE key -5"},
	} {
		t.Run(test.command, func(t *testing.T) {
			c, w := newClient(t)
			c.want("OK", "SET", "key", "token", "PX", "5000")
			words := strings.Fields(strings.Replace(test.command, "PAST", ms(w.time()), 1))
			if _, err := c.conn.Write([]byte(encode(words...) + encode("EXISTS", words[1]))); err != nil {
				t.Fatal(err)
			}
			if got := c.read() + " " + c.read(); got != test.want {
				t.Errorf("answered %s, want %s", got, test.want)
			}
		})
	}
}

func TestEmbedded_EveryWayToSetAnEndIsExact(t *testing.T) {
	c, w := newClient(t)
	seconds := func(after time.Duration) string { return strconv.FormatInt(w.time().Add(after).Unix(), 10) }
	whole := 1000 - w.time().UnixMilli()%1000 // to the next full second
	for _, test := range []struct {
		left  int64 // ms
		words []string
	}{
		{7000, []string{"SET", "key", "token", "ex", "7"}},
		{5000, []string{"SETEX", "key", "5", "token"}},
		{50, []string{"PSETEX", "key", "50", "token"}},
		{70, []string{"SET", "key", "token", "XX", "px", "70"}},
		{90, []string{"PEXPIRE", "key", "90"}},
		{80, []string{"PEXPIRE", "key", "80", "LT"}},
		{9000, []string{"EXPIRE", "key", "9", "GT"}},
		{whole, []string{"EXPIREAT", "key", seconds(time.Second)}},
		{whole, []string{"SET", "key", "token", "EXAT", seconds(time.Second)}},
		{60, []string{"PEXPIREAT", "key", ms(w.time().Add(60 * time.Millisecond))}},
	} {
		if got := c.say(test.words...); got != "OK" && got != "1" {
			t.Fatalf("%q: %s", test.words, got)
		}
		c.want(strconv.FormatInt(test.left, 10), "PTTL", "key")
		c.want(strconv.FormatInt((test.left+500)/1000, 10), "TTL", "key")
		c.want(strconv.FormatInt(w.time().UnixMilli()+test.left, 10), "PEXPIRETIME", "key")
		c.want(strconv.FormatInt((w.time().UnixMilli()+test.left+500)/1000, 10), "EXPIRETIME", "key")
	}
	w.move(59 * time.Millisecond)
	c.want("1", "EXISTS", "key")
	w.move(time.Millisecond)
	c.want("0", "EXISTS", "key")
}

func TestEmbedded_AKeyThatWasProlongedOrRenewedLastsAsLongAsItsLastEnd(t *testing.T) {
	c, w := newClient(t)
	c.want("OK", "SET", "key", "token", "PX", "100")
	c.want("1", "PEXPIRE", "key", "300")
	c.want("OK", "SET", "old", "token", "PX", "200")
	c.want("OK", "RENAME", "old", "renamed")
	c.want("OK", "SET", "endless", "token", "PX", "100")
	c.want("OK", "SET", "endless", "token")
	w.move(199 * time.Millisecond)
	c.want("token", "GET", "renamed")
	w.move(time.Millisecond)
	c.want("nil", "GET", "renamed")
	w.move(99 * time.Millisecond)
	c.want("token", "GET", "key")
	w.move(time.Millisecond)
	c.want("nil", "GET", "key")
	c.want("-1", "PTTL", "endless")
	c.want("-1", "PEXPIRETIME", "endless")
}

func TestEmbedded_EndsAreThoseOfTheClockAfterItWasSetBack(t *testing.T) {
	c, w := newClient(t)
	w.move(-time.Hour)
	end := w.time().Add(400 * time.Millisecond)
	c.want("OK", "SET", "key", "token", "PXAT", ms(end))
	c.want("400", "PTTL", "key")
	c.want(ms(end), "PEXPIRETIME", "key")
	w.move(399 * time.Millisecond)
	c.want("token", "GET", "key")
	w.move(time.Millisecond)
	c.want("nil", "GET", "key")
}

func TestEmbedded_AKeyThatIsDeletedIsForgotten(t *testing.T) {
	c, _ := newClient(t)
	for i := range 100 {
		c.want("OK", "SET", "key"+strconv.Itoa(i), "token", "PX", "3600000")
	}
	for i := range 99 {
		c.want("1", "EVAL", "return redis.call('DEL', KEYS[1])", "1", "key"+strconv.Itoa(i))
	}
	c.master.Turn(func() {})
	if n := len(c.master.expiries.queue); n != 1 {
		t.Errorf("%d keys are still to expire, want 1", n)
	}
}

func TestEmbedded_TheSameKeyEndsInEachDatabaseForItself(t *testing.T) {
	c, w := newClient(t)
	for db, left := range []string{"100", "300", "200"} {
		c.want("OK", "SELECT", strconv.Itoa(db))
		c.want("OK", "SET", "key", "token", "PX", left)
	}
	for i, want := range [][]string{{"0", "1", "1"}, {"0", "1", "0"}, {"0", "0", "0"}} {
		w.move(100 * time.Millisecond)
		for db, exists := range want {
			c.want("OK", "SELECT", strconv.Itoa(db))
			if got := c.say("EXISTS", "key"); got != exists {
				t.Errorf("after %d00 ms database %d: %s, want %s", i+1, db, got, exists)
			}
		}
	}
}

func TestEmbedded_WhatWouldExpireWronglyIsRefused(t *testing.T) {
	c, _ := newClient(t)
	for command := range unsupported {
		if got := c.say(command, "key", "1", "2"); !strings.Contains(got, "do not support "+command) {
			t.Errorf("%s: %q", command, got)
		}
	}
	for _, words := range []string{"PEXPIREAT key never", "SET key x PX 0", "SET key x PXAT -3", "SET key x PX", "SET key x NX PX y", "SETEX key 0 x", "PSETEX key y x"} {
		if got := c.say(strings.Fields(words)...); !strings.HasPrefix(got, "ERR ") {
			t.Errorf("%s: %q, want an error", words, got)
		}
	}
	c.want("0", "EXISTS", "key")
}

func TestEmbedded_ToolsOfTests(t *testing.T) {
	c, w := newClient(t)
	c.want("OK", "SET", "key", "token")
	if left := c.master.TTL("key"); left != 0 {
		t.Errorf("%v left of a key without an end", left)
	}
	c.master.SetTTL("key", 700*time.Millisecond)
	w.move(100 * time.Millisecond)
	if left := c.master.TTL("key"); left != 600*time.Millisecond {
		t.Errorf("%v left, want 600ms", left)
	}
	now := c.master.Time()
	c.master.FastForward(500 * time.Millisecond)
	c.want("100", "PTTL", "key")
	if !c.master.Time().Equal(now) || !now.Equal(w.time()) {
		t.Errorf("the clock shows %v, before it %v, want %v", c.master.Time(), now, w.time())
	}
	c.master.FastForward(100 * time.Millisecond)
	c.want("0", "EXISTS", "key")
	c.master.SetError("LOADING for long")
	c.want("LOADING for long", "GET", "key")
	c.master.SetError("")
	c.want(fmt.Sprint(w.time().Unix(), w.time().Nanosecond()/1000), "TIME")
}
