package redlock

// leases_test.go: what an extension promises, and what two daemons know of each other's leases:
// nothing but what the masters hold.

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlockd/redlock/quorum"
	"redlockd/redlock/redlocktest"
)

func notHeld(t *testing.T, g Grant, err error) {
	t.Helper()
	if !errors.Is(err, ErrNotHeld) {
		t.Fatalf("extended for %v, %v; want %v", g.Validity(), err, ErrNotHeld)
	}
}

// Rule: heal. Another token held the key in between, so the lease is over; a daemon without a
// record of it must learn that from the masters.
func TestExtend_RevivesNoLeaseThatAQuorumHasLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	lapsed := one.take("k", time.Second)
	eventually(t, "the lease runs out", func() bool { return c.empty(0, 1, 2) })
	one.free("k", one.take("k", 10*time.Second).Token)
	g, err := two.extend("k", lapsed.Token, 10*time.Second)
	notHeld(t, g, err)
	if !c.empty(0, 1, 2) {
		t.Errorf("copies %q of a lease that was lost", c.copies("k"))
	}
}

func TestExtend_AfterADeadlineThatTheDaemonKnowsIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	lapsed := one.take("k", time.Second)
	end := time.Now().Add(lapsed.Validity())
	sleepUntil(t, end, "the validity is used up, while the copies still last for the master timeout")
	g, err := one.extend("k", lapsed.Token, 10*time.Second)
	notHeld(t, g, err)
}

// What a daemon remembers of its own grant does not answer for the masters: another daemon has given
// the token the key again, or has not.
func TestExtend_AfterADeadlineThatTheDaemonKnowsFindsALaterGrantByAnotherDaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	for what, request := range map[string]LockRequest{
		"exclusive": {}, "reader": {Mode: Readers}, "permit": {Mode: PermitsOf(2)}, "several keys": {More: []Key{"more"}}, "several keys as a reader": {Mode: Readers, More: []Key{"again"}},
	} {
		for _, exact := range []bool{false, true} {
			if exact && what != "exclusive" && what != "several keys" {
				continue
			}
			request := request
			request.Key, request.Token, request.TTL = Key(fmt.Sprint(what, exact)), tokenA, 400*time.Millisecond // a busy machine grants it in time
			extend := ExtendRequest{Key: request.Key, More: request.More, Token: tokenA, TTL: long / 2, Exact: exact}
			first := one.get(request)
			eventually(t, "its validity is over", func() bool { return first.Validity() <= 0 })
			if g, err := redlocktest.Prolong(t, one.Leases, extend); !errors.Is(err, ErrNotHeld) { // copies outlast it by a master timeout
				t.Errorf("%s, exact %v: a lease that is over was extended, fence %d, %v", what, exact, g.Fence, err)
			}
			request.TTL = long
			two.get(request)
			if g, err := redlocktest.Prolong(t, one.Leases, extend); err != nil || g.Validity() < long/3 {
				t.Errorf("%s, exact %v: the extension of a lease by another daemon: %v", what, exact, err)
			}
			for _, key := range append([]Key{request.Key}, request.More...) {
				two.free(key, tokenA)
			}
		}
	}
}

// One that sets the end is an extension like any other.
func TestSets_GivesALeaseThatHasLapsedNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	lapsed := one.takeAs("k", "token-of-mine", time.Second)
	end := time.Now().Add(lapsed.Validity())
	sleepUntil(t, end, "the validity is used up, while the copies still last for the master timeout")
	if g, err := one.sets(ExtendRequest{Key: "k", Token: "token-of-mine", TTL: 10 * time.Second}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("%+v, %v for a lease that is over", g, err)
	}
}

// A repaired copy ends in the other half of the grain, where no undo reaches.
func TestExtend_RepairsAMasterThatLostItsCopy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	held := one.take("k", 5*time.Second)
	c.do(2, "DEL", "k")
	if _, err := one.extend("k", held.Token, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the copy is back", func() bool { return c.copies("k")[2] == string(held.Token) })
	for i := range c.servers {
		if end := c.ends(i, "k"); end%quorum.ExpiryGrain != quorum.ProlongedOffset {
			t.Errorf("master %s: the copy ends at %d ≡ %d mod %d, want %d", name(i), end, end%quorum.ExpiryGrain, quorum.ExpiryGrain, quorum.ProlongedOffset)
		}
	}
	if n := one.Counters().Repaired; n != 1 {
		t.Errorf("%d copies repaired, want 1", n)
	}
	one.free("k", held.Token)
	eventually(t, "the repaired copy is released, too", func() bool { return c.empty(0, 1, 2) })
}

// Rule: shorten. The old validity was promised, so the copies must outlast it.
func TestExtend_ShortensNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	held := one.take("k", 20*time.Second)
	var ends []int64
	for i := range c.servers {
		ends = append(ends, c.ends(i, "k"))
	}
	g, err := one.extend("k", held.Token, time.Second)
	if err != nil || g.Validity() > time.Second {
		t.Fatalf("extended for %v, %v; want at most a second", g.Validity(), err)
	}
	one.idle()
	for i, end := range ends {
		if now := c.ends(i, "k"); now < end {
			t.Errorf("master %s: the extension shortened the copy by %d ms", name(i), end-now)
		}
	}
}

func TestDaemons_ShareTheirLocks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	one, two := c.daemon(), c.daemon()
	held := one.take("k", 10*time.Second)
	isHeld(t, two.refuse("k", long))
	g, err := two.extend("k", held.Token, 20*time.Second)
	if err != nil || g.Validity() < 10*time.Second {
		t.Fatalf("extended through the other daemon for %v, %v; want about 20s", g.Validity(), err)
	}
	two.free("k", held.Token)
	if was, err := one.unlock("k", held.Token); was || err != nil {
		t.Errorf("released twice: %v, %v", was, err)
	}
	next := two.take("k", 10*time.Second)
	if was, err := one.unlock("k", held.Token); was || err != nil {
		t.Errorf("released with a token of the past: %v, %v", was, err)
	}
	one.refuse("k", time.Second)
	one.free("k", next.Token)
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2, 3, 4) })
}
