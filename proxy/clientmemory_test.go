package proxy

// clientmemory_test.go tests what all clients may have in memory together, and which of
// them is closed when it is too much.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
)

func TestMemLimit_EvictsTheLargestReservationAndAllowsOneUserHalf(t *testing.T) {
	b := &memLimit{max: 100, evictLargest: true}
	var evicted []string
	make := func(name string) *memReservation {
		return &memReservation{limit: b, evict: func() { evicted = append(evicted, name) }}
	}
	small, large, mine := make("small"), make("large"), make("mine")
	if !small.resize("", 20) || !large.resize("", 50) || !mine.resize("me", 30) {
		t.Fatal("what fits is refused")
	}
	if !small.resize("", 40) || strings.Join(evicted, " ") != "large" || b.bytes() != 70 {
		t.Fatalf("evicted %q, %d bytes held", evicted, b.bytes())
	}
	another := make("another")
	if !another.resize("me", 21) || strings.Join(evicted, " ") != "large mine" || b.bytes() != 61 || b.users["me"] != 21 {
		t.Fatalf("evicted %q, %d bytes held, %d of them mine", evicted, b.bytes(), b.users["me"])
	}
	if another.resize("me", 51) || b.bytes() != 40 || len(evicted) != 2 {
		t.Errorf("evicted %q, %d bytes held; the largest itself is refused", evicted, b.bytes())
	}
	if !small.resize("me", 40) || b.users["me"] != 40 || !small.resize("", 10) || b.bytes() != 10 || len(b.users) != 0 {
		t.Errorf("%d bytes held, of users %v", b.bytes(), b.users)
	}
	small.End()
	if !small.resize("me", 40) || b.bytes() != 0 || b.list.Len() != 0 || len(b.users) != 0 {
		t.Errorf("%d bytes held after the end, of users %v", b.bytes(), b.users)
	}
}

// weighs waits until the clients have that much in memory, according to Stats.
func weighs(t *testing.T, s *Server, what string, fits func(bytes int) bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !fits(s.Stats().Memory); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: %d bytes", what, s.Stats().Memory)
		}
	}
}

func TestClientMemory_TheLargestClientIsClosedFirst(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{ClientMemory: 512 << 10}, d)
	word := strings.Repeat("x", 50_000)
	honest, greedy := dial(t, s), dial(t, s)
	honest.send(command("LATER", word))
	reply := d.next(t)
	greedy.send(strings.Repeat(command("LATER", word), 4))
	for range 4 {
		d.next(t)
	}
	weighs(t, s, "five commands of 50 kB", func(bytes int) bool { return bytes >= 250_000 })
	others := []*client{honest}
	for range 5 { // the fifth is one too many
		c := dial(t, s)
		c.send(command("LATER", word))
		d.next(t)
		others = append(others, c)
	}
	greedy.expectGone()
	if n := s.Stats().Evicted; n != 1 {
		t.Errorf("%d clients closed, want 1", n)
	}
	reply.Reply(commands.OK)
	honest.expect("+OK\r\n")
	for _, c := range others {
		c.Close()
	}
	weighs(t, s, "nobody is connected", func(bytes int) bool { return bytes == 0 })
}

// expectGone reads the end of the connection, however it comes.
func (c *client) expectGone() {
	c.t.Helper()
	if b, err := c.in.ReadByte(); err == nil {
		c.t.Fatalf("got %q, want the end", b)
	}
}

func TestClientMemory_CountsHalfCommandsAndSubscriptions(t *testing.T) {
	s, _ := serveEvents(t, Options{})
	half := dial(t, s)
	half.send("*3\r\n$4\r\nECHO\r\n$60000\r\n" + strings.Repeat("x", 60_000) + "\r\n$60000\r\n" + strings.Repeat("x", 50_000))
	weighs(t, s, "half a command of 120 kB", func(bytes int) bool { return bytes >= 110_000 })
	half.Close()
	weighs(t, s, "half a command has gone", func(bytes int) bool { return bytes == 0 })
	c := dial(t, s)
	words := []string{"PSUBSCRIBE"}
	for i := range 100 {
		words = append(words, fmt.Sprintf("?%d*", i))
	}
	c.send(command(words...))
	c.skip("$4\r\n?99*\r\n:100\r\n")
	weighs(t, s, "100 patterns", func(bytes int) bool { return bytes >= 200_000 })
	c.send(command("RESET"))
	c.expect("+RESET\r\n")
	weighs(t, s, "no pattern", func(bytes int) bool { return bytes == 0 })
}
