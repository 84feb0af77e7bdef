package redlock

// reentrant_test.go: levels of a reentrant lock.

import (
	"errors"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

const ownerA, ownerB = Token("owner-of-a"), Token("owner-of-b")

func level(owner Token) LockRequest { return LockRequest{Key: "k", Mode: LevelsOf(owner)} }

// Rule: levels-apart.
func TestReentrant_LevelsOfOneOwnerKeepEverythingElseOut(t *testing.T) {
	c := newCluster(t, 5, long)
	one, two := c.daemon(), c.daemon()
	outer := one.get(level(ownerA))
	c.servers[4].Kill()
	one.await(4, "down")
	two.await(4, "down")
	inner := two.get(level(ownerA)) // through any daemon
	if inner.Token == outer.Token || OwnerOf(inner.Token) != ownerA || inner.Fence <= outer.Fence || !inner.Fresh {
		t.Errorf("%+v, then %+v: want two fresh levels of %s with rising fences", outer, inner, ownerA)
	}
	others := []LockRequest{
		level(ownerB), {Key: "k"}, {Key: "k", Token: tokenC}, {Key: "k", Mode: Readers}, {Key: "k", Mode: Readers, Token: ownerA},
		{Key: "k", Mode: PermitsOf(5)}, {Key: "j", More: []Key{"k"}}, {Key: "j", More: []Key{"k"}, Mode: Readers},
	}
	for _, released := range []Token{outer.Token, inner.Token} {
		for _, r := range others {
			one.held(r)
			two.held(r)
		}
		two.free("k", released) // the outer level need not be the last
	}
	next := one.get(level(ownerB))
	if next.Fence <= inner.Fence {
		t.Errorf("the next owner's fence %d is not above %d", next.Fence, inner.Fence)
	}
	two.held(level(ownerA))
	one.free("k", next.Token)
	reader := two.get(LockRequest{Key: "k", Mode: Readers})
	one.held(level(ownerA))
	two.free("k", reader.Token)
	if !c.empty(0, 1, 2, 3) {
		t.Errorf("left behind: %s", c.found)
	}
}

// Redisson releases its levels without knowing which one it releases: it must not be left with one
// that ends before a longer one that it had.
func TestReentrant_AnInnerLevelLastsAsLongAsTheOuterOnes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	r := level(ownerA)
	r.TTL = 20 * time.Second
	outer := d.get(r)
	ends := c.ends(0, "k")
	r.TTL = 10 * time.Second
	inner := d.get(r)
	if v := inner.Validity(); v > r.TTL {
		t.Errorf("the inner level promises %v of %v", v, r.TTL)
	}
	d.free("k", outer.Token)
	if got := c.ends(0, "k"); got != ends {
		t.Errorf("the inner level ends at %d, the outer one ended at %d", got, ends)
	}
	d.free("k", inner.Token)
}

// A level whose end follows the others' is undone all the same.
func TestReentrant_AFailedLevelIsUndoneAndTheOthersStay(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon(relayed, blind)
	r := level(ownerA)
	r.TTL = 20 * time.Second
	outer := one.get(r)
	one.idle()
	for _, i := range []int{1, 2} {
		two.relays[i].Pause(faulty.ToClient)
	}
	r.TTL = 5 * time.Second
	_, err := two.ask(r)
	noQuorum(t, err, "1 of 3")
	for _, i := range []int{1, 2} {
		two.relays[i].Resume()
	}
	two.settled(1, 2)
	want := " readers[" + string(outer.Token) + "]"
	eventually(t, "only the outer level is left", func() bool { return c.stands("k") == (want + want + want)[1:] })
	one.free("k", outer.Token)
}

// A repaired copy of a level keeps out what the level keeps out.
func TestReentrant_ALostCopyOfALevelIsRepaired(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	g := d.get(level(ownerA))
	d.idle()
	c.do(1, "DEL", "k")
	if _, err := d.prolongAll(g.Token, long, "k"); err != nil {
		t.Fatal(err)
	}
	want := " readers[" + string(g.Token) + "]"
	eventually(t, "the copy is there again", func() bool { return c.stands("k") == (want + want + want)[1:] })
	c.servers[0].Kill()
	d.await(0, "down")
	d.held(level(ownerB))
	d.held(LockRequest{Key: "k", Mode: Readers})
}

func TestReentrant_TheOwnerPassesThoseThatWaitForIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	outer := d.get(level(ownerA))
	out := make(chan waited, 2)
	other := level(ownerB)
	other.TTL, other.Wait = long, patience
	d.Wait(nil, other, func(g Grant, err error) { out <- waited{"other", g, err} })
	eventually(t, "the other owner waits", func() bool { return d.Waiters() == 1 })
	again := level(ownerA)
	again.TTL, again.Wait = long, patience
	d.Wait(nil, again, func(g Grant, err error) { out <- waited{"owner", g, err} })
	w := <-out
	if w.name != "owner" || w.err != nil {
		t.Fatalf("%s: %v, want the owner's second level first", w.name, w.err)
	}
	d.free("k", outer.Token)
	d.free("k", w.grant.Token)
	if w = <-out; w.err != nil {
		t.Errorf("the waiter: %v", w.err)
	}
}

// Two owners that hold a key each and wait for the other's.
func TestReentrant_ACycleOfOwnersIsADeadlock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	hold := func(key Key, owner Token) connectionOf {
		g := d.get(LockRequest{Key: key, Mode: LevelsOf(owner)})
		return connectionOf(g.Lease())
	}
	a, b := hold("k", ownerA), hold("j", ownerB)
	out := make(chan waited, 2)
	wait := func(key Key, owner Token, by Owner) {
		d.Wait(nil, LockRequest{Key: key, Mode: LevelsOf(owner), TTL: long, Wait: patience, Owner: by},
			func(g Grant, err error) { out <- waited{string(owner), g, err} })
	}
	wait("j", ownerA, a)
	eventually(t, "the first one waits", func() bool { return d.Waiters() == 1 })
	d.idle() // its request has been refused: a first waiter looks for a cycle after that
	wait("k", ownerB, b)
	if w, cycle := <-out, (*Deadlock)(nil); w.name != string(ownerB) || !errors.As(w.err, &cycle) {
		t.Errorf("%s: %v, want DEADLOCK for the second", w.name, w.err)
	}
}

func TestReentrant_TheViewShowsTheLevels(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(level(ownerA))
	d.get(level(ownerA))
	d.idle()
	v := d.see("k")
	levels, count, err := v.Levels(ownerA)
	none, count2, err2 := v.Levels(ownerB)
	if len(levels) != 2 || count != 2 || len(none) != 0 || count2 != 0 || err != nil || err2 != nil || v.ModeWord() != "reentrant" {
		t.Errorf("%d of %d levels, %d of %d of another owner, %v, %v, mode %s", len(levels), count, len(none), count2, err, err2, v.ModeWord())
	}
	for i := range 2 {
		c.servers[i].Kill()
		d.await(i, "down")
	}
	_, err = d.tryToSee("k")
	noQuorum(t, err, "1 of 3")
}

// The queue of FAIR goes before everything else, but its waiters wait for the owner.
func TestReentrant_TheOwnerPassesTheQueueOfFairAndOthersStandInIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	outer := one.get(level(ownerA))
	first, _ := two.stands("k", LockRequest{})
	second, _ := one.stands("k", level(ownerB))
	third, _ := two.stands("k", level("owner-of-c"))
	// A wait is established with a quorum.
	eventually(t, "three waiters wait for all before them", func() bool { return c.do(0, "ZCARD", "redlockd:qw:k") == int64(3) })
	again := level(ownerA)
	inner := two.get(again)
	again.Fair, again.Wait, again.TTL = true, patience, long
	innermost := make(chan waited, 1)
	one.Wait(nil, again, func(g Grant, err error) { innermost <- waited{"innermost", g, err} })
	for _, token := range []Token{got(t, innermost).Token, inner.Token, outer.Token} {
		if len(first)+len(second)+len(third) > 0 {
			t.Fatal("a waiter was served beside the owner's levels")
		}
		one.free("k", token)
	}
	for _, out := range []chan waited{first, second, third} {
		g := got(t, out)
		one.free("k", g.Token)
	}
	c.noQueues("k")
}
