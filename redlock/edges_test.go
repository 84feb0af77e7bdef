package redlock

// edges_test.go: cycles of waits over several daemons, on real masters.

import (
	"errors"
	"slices"
	"testing"
	"time"

	"redlockd/redlock/redlocktest"
)

// ringMember is a connection of a daemon of its own. It holds one key and waits for another.
type ringMember struct {
	pureOwner
	d     *daemon
	holds Grant
}

// joins takes a key through a daemon.
func joins(d *daemon, r LockRequest) *ringMember {
	m := &ringMember{d: d, holds: redlocktest.Take(d.t, d.Leases, r.plain())}
	m.held = []Lease{{Key: r.Key, Token: m.holds.Token}}
	return m
}

func (m *ringMember) awaits(name string, r LockRequest, out chan<- waited) (leave func()) {
	m.d.t.Helper()
	r.TTL, r.Wait, r.Owner = long, time.Minute, m
	refused := m.d.Counters().Refused
	leave = m.d.Wait(nil, r, func(g Grant, err error) { out <- waited{name, g, err} })
	eventually(m.d.t, name+" waits", func() bool { return m.d.Counters().Refused > refused })
	return leave
}

// noEdges waits until the masters have no edge left.
func (c *cluster) noEdges() {
	c.t.Helper()
	eventually(c.t, "no edge is left", func() bool {
		for i := range c.servers {
			if keys := c.do(i, "KEYS", "redlockd:w:*").([]any); len(keys) > 0 {
				return false
			}
		}
		return true
	})
}

func TestEdges_OfACycleOverDaemonsTheLastWaiterGetsDeadlock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two, three := c.daemon(), c.daemon(), c.daemon()
	a, b, r := joins(one, LockRequest{Key: "a", TTL: long}), joins(two, LockRequest{Key: "b", TTL: long}), joins(three, LockRequest{Key: "c", TTL: long, Mode: Readers})
	joins(one, LockRequest{Key: "c", TTL: long, Mode: Readers}) // another reader, who waits for nothing
	out := make(chan waited, 4)                                 // every answer
	a.awaits("a→b", LockRequest{Key: "b", Mode: Readers}, out)
	b.awaits("b→c", LockRequest{Key: "c"}, out)
	r.awaits("c→a", LockRequest{Key: "a"}, out)
	var cycle *Deadlock
	w := <-out
	if !errors.As(w.err, &cycle) || w.name != "c→a" || !slices.Equal(cycle.Keys, []Key{"a", "b", "c"}) {
		t.Fatalf("%s: %v", w.name, w.err)
	}
	// The others go on: no one else is told, and the key is theirs once it is released.
	two.free("b", b.holds.Token)
	if w := <-out; w.name != "a→b" || w.err != nil {
		t.Errorf("%s: %v", w.name, w.err)
	}
	two.EndWaits()
	if w := <-out; w.name != "b→c" || !errors.Is(w.err, ErrShutdown) {
		t.Errorf("%s: %v", w.name, w.err)
	}
	c.noEdges()
}

// A reader that wants to write waits for the others, not for itself.
func TestEdges_AReaderThatBecomesTheWriterWaitsNotForItself(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	const mine = "the token of the reader"
	a, b := joins(one, LockRequest{Key: "k", TTL: long, Mode: Readers, Token: mine}), joins(two, LockRequest{Key: "k", TTL: long, Mode: Readers})
	out := make(chan waited, 2) // every answer
	a.awaits("upgrade", LockRequest{Key: "k", Token: mine}, out)
	for last := int64(0); last < 3; last++ { // the third search begins when the second is over
		ends := c.ends(0, "redlockd:w:"+mine)
		eventually(t, "it searches again", func() bool {
			if len(out) > 0 {
				t.Fatal((<-out).err)
			}
			return c.ends(0, "redlockd:w:"+mine) > ends
		})
	}
	leave := b.awaits("second", LockRequest{Key: "k", Token: b.holds.Token}, out)
	leave()
	if w := <-out; w.name != "second" || !errors.Is(w.err, ErrLeft) {
		t.Errorf("%s: %v", w.name, w.err)
	}
	two.free("k", b.holds.Token)
	if w := <-out; w.name != "upgrade" || w.err != nil {
		t.Errorf("%s: %v", w.name, w.err)
	}
	c.noEdges()
}

// A waiter that holds nothing costs the masters nothing.
func TestEdges_AreWrittenForWaitersThatHoldSomethingOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	held := one.take("k", long)
	idle, holder := &ringMember{d: two}, joins(two, LockRequest{Key: "other", TTL: long})
	out := make(chan waited, 2)
	idle.awaits("idle", LockRequest{Key: "k"}, out)
	holder.awaits("holder", LockRequest{Key: "k"}, out)
	eventually(t, "the holder has an edge", func() bool {
		keys := c.do(0, "KEYS", "redlockd:w:*").([]any)
		if len(keys) > 1 {
			t.Fatalf("edges %q", keys)
		}
		return len(keys) == 1
	})
	one.free("k", held.Token)
	g := got(t, out)
	two.free("k", g.Token)
	got(t, out)
	c.noEdges()
}

// A search that took longer than maxSearch may show waits that did not overlap.
func TestEdges_ASearchThatTookLongDoesNotCount(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon(relayed)
	a, b := joins(one, LockRequest{Key: "a", TTL: long}), joins(two, LockRequest{Key: "b", TTL: long})
	out := make(chan waited, 2)
	a.awaits("a→b", LockRequest{Key: "b"}, out)
	for _, relay := range two.relays {
		relay.Delay(200 * time.Millisecond) // a search has two rounds
	}
	b.awaits("b→a", LockRequest{Key: "a"}, out)
	edge, written := "redlockd:w:"+string(b.holds.Token), map[int64]bool{}
	eventually(t, "it has searched several times", func() bool {
		if ends := c.ends(0, edge); ends > 0 {
			written[ends] = true
		}
		return len(written) > 10 || len(out) > 0 // on a slow machine not every search finds the cycle
	})
	if len(out) > 0 {
		t.Fatalf("%v: DEADLOCK after a search that took longer than it may", <-out)
	}
	for _, relay := range two.relays {
		relay.Delay(0)
	}
	if w := <-out; w.name != "b→a" {
		t.Errorf("%v was answered first", w)
	}
	two.free("b", b.holds.Token)
	<-out
}

// Without a quorum that has deleted its edges, a waiter is answered once they have expired: until then
// another daemon may still find them.
func TestEdges_AreGoneBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon(relayed)
	one.take("k", long)
	m := joins(one, LockRequest{Key: "other", TTL: long})
	out := make(chan waited, 1)
	one.Wait(nil, LockRequest{Key: "k", TTL: long, Wait: time.Minute, Owner: m}, func(g Grant, err error) { out <- waited{"waits", g, err} })
	edge := "redlockd:w:" + string(m.holds.Token)
	eventually(t, "it has an edge everywhere", func() bool {
		return !slices.ContainsFunc([]int{0, 1, 2}, func(i int) bool { return c.do(i, "EXISTS", edge) == int64(0) })
	})
	for _, relay := range one.relays {
		relay.Refuse()
		relay.Cut()
	}
	one.EndWaits()
	if w := <-out; !errors.Is(w.err, ErrShutdown) {
		t.Errorf("answered %v", w.err)
	}
	for i := range c.servers {
		if c.do(i, "EXISTS", edge) != int64(0) {
			t.Errorf("master %s has its edge when it is answered", name(i))
		}
	}
}
