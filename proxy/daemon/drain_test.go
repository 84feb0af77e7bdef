package daemon

// Tests of a master that is taken out of service, with daemons and masters as processes.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// briefly is the longest lease of these tests: masters that come back wait for it.
const briefly = 2 * time.Second

// takes takes a lock for a short time and has something done with it. On a machine
// so busy that the lease may have been over by then, it does so again with another
// lock; what happens while a lease lasts is never excused.
func (c *client) takes(t *testing.T, key string, meanwhile func(key, token string)) {
	t.Helper()
	end := time.Now().Add(testTimeout)
	for i := 0; ; i++ {
		one, began := fmt.Sprint(key, "-", i), time.Now()
		reply := c.ask(t, "DLOCK %s %d", one, briefly.Milliseconds())
		if reply == "*3" {
			meanwhile(one, c.lines(t, 4)[1])
		}
		switch inTime := time.Since(began) < briefly*9/10; {
		case reply == "*3" && inTime:
			return
		case reply != "*3" && inTime, time.Now().After(end):
			t.Fatalf("DLOCK %s: %s", one, reply)
		}
	}
}

// pairs takes a lock and releases it.
func (c *client) pairs(t *testing.T, key string) {
	t.Helper()
	reply := ""
	c.takes(t, key, func(key, token string) { reply = c.ask(t, "DUNLOCK %s %s", key, token) })
	if reply != ":1" {
		t.Fatal(reply)
	}
}

// The procedure of configs/MEMBERSHIP.md: after both daemons received the drain, the master may go.
func TestDrain_AMasterGoesAndComesBackUnnoticed(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	one := dial(t, serveHere(t, addresses(servers), "--max-ttl", briefly.String(), "--bootstrap"))
	one.awaitVoters(t, servers)
	two := dial(t, serveHere(t, addresses(servers), "--max-ttl", briefly.String()))
	two.awaitVoters(t, servers)
	for _, c := range []*client{one, two} {
		if reply := c.ask(t, "DMASTERS DRAIN c"); reply != "+OK" {
			t.Fatal(reply)
		}
	}
	if reply := one.ask(t, "DMASTERS DRAIN b"); !strings.HasPrefix(reply, "-ERR master b cannot be drained: without it 1 of 3 masters may vote") || !strings.Contains(reply, "2 are needed") {
		t.Errorf("a second master: %s", reply)
	}
	var all []string
	one.takes(t, "during", func(key, _ string) { all = held(t, servers, key) })
	if all[0] == "" || all[1] == "" || all[2] != "" {
		t.Errorf("the masters hold %q, want nothing on c", all)
	}
	for _, c := range []*client{one, two} {
		c.awaitMaster(t, 2, "drained", "no lock rests on it")
	}
	servers[2].Kill()
	one.awaitMaster(t, 2, "down", "being drained")
	for range 20 {
		two.pairs(t, "k")
	}
	servers[2].Restart()
	one.awaitMaster(t, 2, "quarantined", "being drained") // these masters are not durable
	for _, c := range []*client{one, two} {
		if reply := c.ask(t, "DMASTERS UNDRAIN c"); reply != "+OK" {
			t.Fatal(reply)
		}
		c.awaitMaster(t, 2, "voting")
		c.pairs(t, "k")
	}
}
