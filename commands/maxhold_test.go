package commands_test

import (
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

// The daemon, the user and the request each have a word; the shortest time stands.
func TestMaxHold_TheShortestOfThreeStands(t *testing.T) {
	user := low()
	user.MaxHold = 40 * time.Second
	for _, one := range []struct {
		daemon time.Duration
		words  string
		want   time.Duration
	}{
		{0, "DLOCK a:1 10000", 40 * time.Second},
		{30 * time.Second, "DLOCK a:1 10000", 30 * time.Second},
		{time.Minute, "DLOCK a:1 10000", 40 * time.Second},
		{time.Minute, "DLOCK a:1 10000 MAXHOLD 20000", 20 * time.Second},
		{time.Minute, "DLOCK a:1 10000 MAXHOLD 50000 SHARED", 40 * time.Second},
		{0, "DMLOCK 10000 2 a:1 a:2 MAXHOLD 12000", 12 * time.Second},
		{0, "SET a:1 value NX PX 10000", 40 * time.Second},
		{15 * time.Second, "DEXTEND a:1 a-token-of-its-own 10000", 15 * time.Second},
		{15 * time.Second, "DMEXTEND a-token-of-its-own 10000 1 a:1", 15 * time.Second},
		{15 * time.Second, "SET a:1 value IFEQ value PX 10000", 15 * time.Second},
	} {
		c, users := guarded(t, user)
		c.serve(commands.Deps{Locks: c.locks, Users: users, MaxHold: one.daemon})
		c.grantsAll()
		c.prolongs(time.Second)
		c.client.User = "low"
		if got := c.say(one.words); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %s", one.words, got)
			continue
		}
		var got []time.Duration
		for _, r := range c.locks.locked {
			got = append(got, redlock.Longest(r.Mode))
		}
		for _, r := range c.locks.extended {
			got = append(got, r.Longest)
			if dropIn := strings.HasPrefix(one.words, "SET"); r.Whole != dropIn {
				t.Errorf("%s: its client takes less than it has requested: %v", one.words, !r.Whole)
			}
		}
		if len(got) != 1 || got[0] != one.want {
			t.Errorf("%s, --max-hold %v: %v, want %v", one.words, one.daemon, got, one.want)
		}
	}
}

// Redis' replies name no time.
func TestMaxHold_RedisCommandsGetNoShorterLeaseUnasked(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{MaxHold: 20 * time.Second})
	c.grantsAll()
	o.views["k"] = redlock.View{Kind: "string", Value: "value", Left: time.Second, Longest: time.Second}
	for _, words := range []string{"SET k value NX PX 30000", "SET k another IFEQ value PX 30000", "SET k another XX PX 30000"} {
		if got := c.say(words); !strings.HasPrefix(got, "-ERR a lease of 30000 ms is longer than a lock may be held, allowed are 20000 ms (--max-hold, ") {
			t.Errorf("%s: %s", words, got)
		}
	}
	if len(c.locks.locked) > 0 {
		t.Errorf("requested: %+v", c.locks.locked)
	}
	if got := c.say("SET k value NX PX 20000"); got != "+OK" {
		t.Error(got)
	}
	c, _ = dropinConversation(t, commands.Deps{MaxHold: 20 * time.Second, LongTTL: commands.PolicyClamp})
	c.grantsAll()
	if got := c.say("SET k value NX PX 30000"); got != "+OK" || c.locks.locked[0].TTL != 20*time.Second {
		t.Errorf("%s, %+v", got, c.locks.locked)
	}
}

func TestMaxHold_IsATimeThatALockCanHave(t *testing.T) {
	c := newConversation(t)
	for _, words := range []string{"DLOCK k 10000 MAXHOLD", "DLOCK k 10000 MAXHOLD 9", "DLOCK k 10000 MAXHOLD x", "DLOCK k 10000 MAXHOLD 31536000001"} {
		if got := c.say(words); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%s: %s", words, got)
		}
	}
}
