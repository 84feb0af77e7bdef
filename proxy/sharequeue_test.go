package proxy

// sharequeue_test.go tests that what a connection sends beyond its share waits behind the
// shares of others, and that clients that send less wait for none of it.

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/commands"
)

// crowd has a connection with n commands in its row, none of which is started before
// the returned call is answered.
func crowd(t *testing.T, s *Server, d *dispatcher, n int, lines string) *commands.Call {
	t.Helper()
	c := dial(t, s)
	c.send("LATERBARRIER\r\n")
	first := d.next(t)
	c.send(lines)
	comesTrue(t, "all commands are in the row", func() bool {
		for _, one := range s.snapshot() {
			if &one.client == first.Client {
				one.mu.Lock()
				defer one.mu.Unlock()
				return one.waiting == n+1
			}
		}
		return false
	})
	return first
}

func repeated(n int, line string) string { return strings.Repeat(line+"\r\n", n) }

func comesTrue(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !true(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("it does not come true that %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func queued(s *Server, n int) func() bool {
	return func() bool {
		s.shares.mu.Lock()
		defer s.shares.mu.Unlock()
		return len(s.shares.queue) == n
	}
}

func TestShareQueue_FurtherSharesTakeTurnsAndDelayNoOtherClient(t *testing.T) {
	d, gate := newDispatcher(), make(chan struct{})
	d.execute = func(c *commands.Call) bool {
		if c.Args[0] != "BLOCK" {
			return false
		}
		<-gate
		c.Reply(commands.OK)
		return true
	}
	s := serve(t, Options{}, d)
	s.shares.mu.Lock()
	s.shares.free = 1
	s.shares.mu.Unlock()

	release := sync.OnceFunc(func() { close(gate) })
	defer release()

	// One connection has the turn, and keeps it in the first command beyond its share.
	crowd(t, s, d, shareCommands+1, repeated(shareCommands, "PING")+"BLOCK\r\n").Reply(commands.OK)
	comesTrue(t, "its second share has begun", func() bool { return slices.Contains(d.started(), "BLOCK") })
	crowd(t, s, d, 3*shareCommands, repeated(3*shareCommands, "ECHO one")).Reply(commands.OK)
	comesTrue(t, "the first flood is queued", queued(s, 1))
	crowd(t, s, d, 2*shareCommands, repeated(2*shareCommands, "ECHO two")).Reply(commands.OK)
	comesTrue(t, "the second flood is queued", queued(s, 2))
	count := func(line string) int {
		return len(slices.DeleteFunc(d.started(), func(one string) bool { return one != line }))
	}
	if one, two := count("ECHO one"), count("ECHO two"); one != shareCommands || two != shareCommands {
		t.Errorf("%d and %d commands were started, want a share of each, %d", one, two, shareCommands)
	}

	// Another connection is served meanwhile, with as much as a share.
	neighbour := dial(t, s)
	neighbour.send(repeated(shareCommands, "ECHO hello"))
	neighbour.expect(strings.Repeat("$5\r\nhello\r\n", shareCommands))

	begun := len(d.started())
	release()
	comesTrue(t, "all is started", func() bool {
		return count("ECHO one") == 3*shareCommands && count("ECHO two") == 2*shareCommands
	})
	var order []string
	for _, line := range d.started()[begun:] {
		if n := len(order); n == 0 || !strings.HasPrefix(order[n-1], line+" ") {
			order = append(order, line+" 1")
		} else {
			var many int
			_, _ = fmt.Sscanf(order[n-1][len(line):], "%d", &many)
			order[n-1] = fmt.Sprint(line, " ", many+1)
		}
	}
	want := []string{fmt.Sprint("ECHO one ", shareCommands), fmt.Sprint("ECHO two ", shareCommands), fmt.Sprint("ECHO one ", shareCommands)}
	if !slices.Equal(order, want) {
		t.Errorf("started in the order %q, want %q", order, want)
	}
}
