package commands_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

func TestGET_AndItsKindShowWhatAQuorumHolds(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	o.views["k"] = redlock.View{Kind: "string", Value: "v", Left: 7600 * time.Millisecond}
	o.views["new"] = redlock.View{Kind: "string", Value: "v", Left: 7980 * time.Millisecond}
	o.views["seconds"] = redlock.View{Kind: "string", Value: "v", Left: 1000_880 * time.Millisecond} // of EXPIRE 1000, see ttl
	o.views["endless"] = redlock.View{Kind: "string", Value: "w", Left: redlock.Endless}
	o.views["read"] = redlock.View{Kind: "zset", Left: time.Second}
	c.transcript(`
		> GET k
		< "v"
		> GET nothing
		< nil
		> GET read
		< -WRONGTYPE Operation against a key holding the wrong kind of value
		> PTTL k
		< :7600
		> TTL k
		< :7
		> TTL new
		< :8
		> TTL seconds
		< :1000
		> TTL endless
		< :-1
		> PTTL nothing
		< :-2
		> EXISTS k nothing endless k
		< :3
		> TYPE read
		< +zset
		> TYPE nothing
		< +none
		> STRLEN k
		< :1
		> GET redlockd:seal
		< -ERR invalid lock name 'redlockd:seal': names beginning with 'redlockd:' are reserved
	`)
	o.failure = errors.New("undecided")
	for _, words := range []string{"GET k", "PTTL k", "EXISTS k k", "GET redlockd:fence:k"} {
		if got := c.say(words); !strings.HasPrefix(got, "-ERR undecided") {
			t.Errorf("%s: %s", words, got)
		}
	}
}

func TestGET_ReturnsTheFenceOfTheGrantThatHoldsTheKey(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	c.grantsAll()
	c.say("SET k v NX PX 8000")
	o.views["k"] = redlock.View{Kind: "string", Value: "v", Left: time.Second}
	if got := c.say("GET redlockd:fence:k"); got != `"41"` {
		t.Error(got)
	}
	o.views["k"] = redlock.View{Kind: "string", Value: "another daemon's", Left: time.Second}
	if got := c.say("GET redlockd:fence:k"); got != "nil" {
		t.Error(got)
	}
	delete(o.views, "k")
	if got := c.say("GET redlockd:fence:k"); got != "nil" {
		t.Error(got)
	}
}

func TestBLPOP_WaitsForTheLockOfItsSignal(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	sink := c.start("BLPOP", "lock-signal:jobs", "1.5")
	if len(o.awaited) != 1 || o.awaited[0] != "lock:jobs 1.5s" || sink.answers != 0 {
		t.Fatalf("%q, %d answers", o.awaited, sink.answers)
	}
	o.free(true, nil)
	if got := show(sink.read(t)); got != `["lock-signal:jobs" "1"]` {
		t.Error(got)
	}
	sink = c.start("BLPOP", "lock-signal:jobs", "0")
	o.free(false, nil)
	if got := show(sink.read(t)); got != "?9" || o.awaited[1] != "lock:jobs 10m0s" {
		t.Errorf("%s, %q", got, o.awaited)
	}
	for words, want := range map[string]string{
		"BLPOP list 1": "-ERR redlockd is not a database", "BLPOP lock-signal:a lock-signal:b 1": "-ERR redlockd is not a database",
		"BLPOP lock-signal:a -1": "-ERR timeout is negative", "BLPOP lock-signal:a nan": "-ERR timeout is not a float",
	} {
		if got := c.say(words); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", words, got)
		}
	}
}
