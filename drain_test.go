// Tests of a master that is taken out of service, with daemons and masters as processes.
package main

import (
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// takes takes a lock for a second and releases it.
func (c *client) takes(t *testing.T, key string) {
	t.Helper()
	if reply := c.ask(t, "DLOCK %s 1000", key); reply != "*3" {
		t.Fatal(reply)
	}
	token := c.lines(t, 4)[1]
	if reply := c.ask(t, "DUNLOCK %s %s", key, token); reply != ":1" {
		t.Fatal(reply)
	}
}

// The story of configs/RUNBOOK.md: said to both daemons, the master may go.
func TestDrain_AMasterGoesAndComesBackAndNobodyNotices(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	one := dial(t, serveHere(t, addresses(servers), "--max-ttl", "2s", "--bootstrap"))
	one.awaitMaster(t, 2, "voting")
	two := dial(t, serveHere(t, addresses(servers), "--max-ttl", "2s"))
	two.awaitMaster(t, 2, "voting")
	for _, c := range []*client{one, two} {
		if reply := c.ask(t, "DMASTERS DRAIN c"); reply != "+OK" {
			t.Fatal(reply)
		}
	}
	if reply := one.ask(t, "DMASTERS DRAIN b"); !strings.HasPrefix(reply, "-ERR master b cannot be drained: without it 1 of 3 masters may vote") || !strings.Contains(reply, "2 are needed") {
		t.Errorf("a second master: %s", reply)
	}
	if reply := one.ask(t, "DLOCK during 2000"); reply != "*3" {
		t.Fatal(reply)
	}
	one.lines(t, 4)
	if all := held(t, servers, "during"); all[0] == "" || all[1] == "" || all[2] != "" {
		t.Errorf("the masters hold %q, want nothing on c", all)
	}
	for _, c := range []*client{one, two} {
		c.awaitMaster(t, 2, "drained", "no lock rests on it")
	}
	servers[2].Kill()
	one.awaitMaster(t, 2, "down", "being drained")
	for range 20 {
		two.takes(t, "k")
	}
	servers[2].Restart()
	one.awaitMaster(t, 2, "quarantined", "being drained") // these masters are not durable
	for _, c := range []*client{one, two} {
		if reply := c.ask(t, "DMASTERS UNDRAIN c"); reply != "+OK" {
			t.Fatal(reply)
		}
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		c.awaitMaster(t, 2, "voting")
		c.takes(t, "k")
	}
}
