//go:build !race

package daemon

// connmemory_test.go counts what a connection keeps in memory. The race detector keeps memory of
// its own.

import (
	"fmt"
	"runtime"
	"testing"

	"redlockd/pool/faulty"
)

// What a connection keeps: 8 kB of redcon's buffers and its goroutine's stack are most of it. The
// stack is 4 kB until the first lock, and 8 kB from then on. A connection that rests has neither,
// see TestCounters_OfAnIdleConnectionAreNotWorseThanTheirBase of package proxy.
func TestMemory_OfAConnectionItsLocksAndItsWaits(t *testing.T) {
	const clients = 400
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	address := serveHere(t, addresses(servers))
	inUse := func() int {
		runtime.GC()
		runtime.GC() // the second empties the pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	var all []*client
	connect := func() {
		for range clients {
			c := dial(t, address)
			c.replies = nil // 4 kB of the test's own
			c.raw(t, "PING", "+PONG\r\n")
			all = append(all, c)
		}
	}
	use := func(some []*client) {
		for i, c := range some {
			c.raw(t, fmt.Sprintf("DLOCK k%d 60000 TOKEN the-token-%d\r\nDUNLOCK k%d the-token-%d", i, i, i, i), ":1\r\n")
		}
	}
	connect()
	use(all) // what is made once, and below the connections that watch the key for all waiters
	holder := dial(t, address)
	holder.send(t, "DLOCK w 60000 HOLD")
	holder.lines(t, 1)
	all[0].send(t, "DLOCK w 30000 WAIT 600000")
	waiting(t, address, 1)
	before := inUse()
	connect()
	idle := inUse() - before
	use(all[clients:])
	used := inUse() - before
	for _, c := range all[clients:] {
		c.send(t, "DLOCK w 30000 WAIT 600000")
	}
	waiting(t, address, 1+clients)
	waits := inUse() - before - used
	t.Logf("bytes of a connection: %d idle, %d used, %d more while it waits", idle/clients, used/clients, waits/clients)
	for _, c := range []struct {
		what         string
		got, allowed int
	}{{"an idle connection", idle, 20_000}, {"a used connection", used, 27_000}, {"a waiter, beside its connection", waits, 1_500}} {
		if each := c.got / clients; each > c.allowed {
			t.Errorf("%s takes %d bytes, allowed are %d", c.what, each, c.allowed)
		}
	}
}

// raw sends a line and reads until the reply ends so.
func (c *client) raw(t *testing.T, line, end string) {
	t.Helper()
	c.send(t, "%s", line)
	var got []byte
	for len(got) < len(end) || string(got[len(got)-len(end):]) != end {
		var some [256]byte
		n, err := c.Read(some[:])
		if err != nil {
			t.Fatalf("%s: %q, %v", line, got, err)
		}
		got = append(got, some[:n]...)
	}
}
