package redlock

// memory_test.go: a master that lost its memory must not help to prove that a lock is
// free.

import (
	"errors"
	"testing"
	"time"
)

// Rule: age. Two masters forget a lock that is held; by the time their consent
// counts again the lease is over whatever it was.
func TestMemory_OfAMasterRestartedEmptyVotesOnlyOnceItIsOlderThanTheLongestLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Second)
	one, two := c.daemon(), c.daemon()
	one.take("k", time.Second)
	forgot := time.Now()
	for _, i := range []int{1, 2} {
		c.servers[i].RestartEmpty()
		two.awaitProcess(i, c.servers[i])
	}
	g, err := two.lock("k", time.Second)
	if quarantined := time.Since(forgot) < c.age(); quarantined && err == nil {
		t.Fatalf("two tokens hold %q: granted with fence %d for %v", "k", g.Fence, g.Validity())
	} else if quarantined {
		noQuorum(t, err, "b=", "c=", "quarantined", "votes in")
	}
	eventually(t, "the masters are old enough", func() bool {
		_, err := two.lock("k", time.Second)
		switch after := time.Since(forgot); {
		case err != nil:
			noQuorum(t, err)
			return false
		case after < c.age():
			t.Fatalf("granted by masters that forgot everything %v ago, the longest lease and its margin are %v", after, c.age())
		}
		return true
	})
}

// Rules: seal, identity, xx. The flush itself must show that the memory in
// which its locks were set is another one: nothing else tells the daemon.
func TestMemory_VotesAfterAFlushallAreVoid(t *testing.T) {
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon(blind)
	held := one.take("k", long)
	before := two.engine.Pool.Counters().VoidSeals
	c.servers[1].FlushAll()
	c.servers[2].FlushAll()
	two.refuse("k", time.Second)
	if bad := two.engine.Pool.Counters().VoidSeals - before; bad < 1 {
		t.Errorf("%d flushes were void, want those of both masters that forgot", bad)
	}
	for _, i := range []int{1, 2} {
		one.await(i, "quarantined")
		two.await(i, "quarantined")
	}
	noQuorum(t, two.refuse("k", time.Second), "b=", "c=", "quarantined")
	eventually(t, "the holder's copy is on a and none of the refused attempts elsewhere", func() bool { // undos may be under way
		got := c.copies("k")
		return got[0] == string(held.Token) && got[1] == "" && got[2] == ""
	})
}

// Rule: seal-last. A seal in front of the lock would have been good, and what it
// spoke for was forgotten right behind it.
func TestMemory_AFlushallInsideAFlushIsNoticed(t *testing.T) {
	c := newCluster(t, 3, long)
	p := new(tap)
	one, two := c.daemon(), c.daemon(blind, p.tapped)
	one.take("k", long)
	p.before(func(master string) {
		for i, s := range c.servers {
			if i > 0 && name(i) == master {
				s.FlushAll()
			}
		}
	})
	two.refuse("k", time.Second)
	p.before(nil)
	two.await(1, "quarantined")
	two.await(2, "quarantined")
}

// Fences are a promise about the past, and all masters have forgotten it: their
// new registers begin above it because they were not allowed to vote for so long.
func TestMemory_FencesRiseEvenIfAllMastersForget(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 100*time.Millisecond)
	one := c.daemon()
	for i := range c.servers {
		c.raise(i, time.Now().Add(c.age()-2*time.Second).UnixMicro()) // the most that is promised to be survived
	}
	last := Fence(0)
	eventually(t, "a lease for a moment", func() bool { // on a busy machine a moment may be too short
		g, err := one.lock("k", 50*time.Millisecond)
		last = g.Fence
		return err == nil
	})
	one.idle()
	for _, s := range c.servers {
		s.RestartEmpty()
	}
	for _, d := range []*daemon{c.startDaemon(), one} {
		var g Grant
		eventually(t, "the new group is old enough", func() (done bool) {
			var err error
			g, err = d.lock("k", 50*time.Millisecond)
			var late *Expired // as above
			if err != nil && !errors.Is(err, ErrHeld) && !errors.As(err, &late) {
				noQuorum(t, err)
			}
			return err == nil
		})
		if g.Fence <= last {
			t.Errorf("fence %d after the masters forgot everything, %d was given before", g.Fence, last)
		}
		last = g.Fence
	}
}
