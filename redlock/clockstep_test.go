package redlock

// clockstep_test.go: a master whose clock steps forward forgets locks early.

import (
	"testing"
	"time"
)

// heldByTwo is a cluster whose key is held through one on a and b only; two and
// one reach all masters again.
func heldByTwo(t *testing.T) (c *cluster, one *daemon, key Key) {
	t.Helper()
	c = newClockCluster(t, 3, 10*time.Second)
	one = c.daemon(relayed)
	one.relays[2].Refuse()
	one.relays[2].Cut()
	one.await(2, "down")
	held := one.take("k", 10*time.Second)
	one.relays[2].Accept()
	one.await(2, "voting")
	if got := c.copies("k"); got[0] != string(held.Token) || got[1] != got[0] || got[2] != "" {
		t.Fatalf("copies %q, want them on a and b", got)
	}
	return c, one, "k"
}

// beyond is further than any copy of heldByTwo lasts.
const beyond = 20 * time.Second

// Rule: clock. The seal's TIME is all that tells a blind daemon.
func TestClock_AMasterWhoseClockSteppedDoesNotVote(t *testing.T) {
	t.Parallel()
	c, _, key := heldByTwo(t)
	two := c.daemon(blind)
	c.servers[1].Step(beyond)
	two.refuse(key, time.Second)
}

// Rule: latch. When the step is undone the master looks as before, but what it
// forgot does not come back.
func TestClock_AStepThatWasSeenAndUndoneInvalidatesTheMastersIncarnation(t *testing.T) {
	t.Parallel()
	c, one, key := heldByTwo(t)
	incarnation := c.identity(1)[1]
	seen := one.engine.Pool.Counters().VoidSeals
	c.servers[1].Step(beyond)
	// Valkey looks at its clock less often than at every command.
	eventually(t, "the copy ends by the step", func() bool { return c.do(1, "EXISTS", "k") == int64(0) })
	eventually(t, "a heartbeat sees the step", func() bool { return one.engine.Pool.Counters().VoidSeals > seen })
	c.servers[1].Step(-beyond)
	one.refuse(key, time.Second)
	one.await(1, "quarantined")
	if now := c.identity(1)[1]; now == incarnation {
		t.Errorf("the master is still in the incarnation %s in which its clock stepped", now)
	}
	// Twice, if the daemon admits the master again before the step is undone.
	if n := one.engine.Pool.Counters().Invalidated; n < 1 || n > 2 {
		t.Errorf("%d incarnations were invalidated, want 1 or 2", n)
	}
	one.refuse(key, time.Second)
}

// The estimate outlives the connection: otherwise a step would only have to
// fall into a moment in which no daemon checks.
func TestClock_AStepWhileTheConnectionIsCutIsNoticedAtTheNextAdmission(t *testing.T) {
	t.Parallel()
	c := newClockCluster(t, 3, 10*time.Second)
	one := c.daemon(relayed)
	incarnation := c.identity(1)[1]
	one.relays[1].Refuse()
	one.relays[1].Cut()
	one.await(1, "down")
	c.servers[1].Step(400 * time.Millisecond) // within what admission tolerates
	one.relays[1].Accept()
	eventually(t, "the master is admitted again", func() bool {
		state, _ := one.state(1)
		return state == "quarantined" || state == "voting"
	})
	if state, _ := one.state(1); state != "quarantined" {
		t.Errorf("the master is %s, want quarantined", state)
	}
	if now := c.identity(1)[1]; now == incarnation {
		t.Errorf("the master is still in the incarnation %s in which its clock stepped", now)
	}
}

// Most masters cannot step alike: it was the daemon's own clock, for example because its
// machine was suspended. Invalidating all of them would stop the group.
func TestClock_ADaemonWhoseOwnClockJumpsInvalidatesNoIncarnation(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 10*time.Second)
	one := c.daemon()
	c.daemon().take("k", 5*time.Second)
	identities := [][]string{c.identity(0), c.identity(1), c.identity(2)}
	for range 3 {
		one.clock.Ahead.Add(int64(3 * time.Second))
		bad := one.engine.Pool.Counters().VoidSeals
		eventually(t, "a seal does not fit", func() bool { return one.engine.Pool.Counters().VoidSeals > bad })
		one.refuse("k", time.Second)
		for i := range c.servers {
			one.await(i, "voting")
		}
		one.free("other", one.take("other", 10*time.Second).Token)
	}
	for i, before := range identities {
		if now := c.identity(i); now[1] != before[1] {
			t.Errorf("master %s began the incarnation %s, want %s to go on", name(i), now[1], before[1])
		}
	}
	if n := one.engine.Pool.Counters().Invalidated; n != 0 {
		t.Errorf("%d incarnations were invalidated", n)
	}
}

// The instrument itself: a blind daemon's heartbeat is held, and nothing else.
func TestDaemon_CanBeMadeBlind(t *testing.T) {
	c := newCluster(t, 3, long)
	one := c.daemon(blind)
	if n := one.clock.KeptTimers(); n != 1 {
		t.Fatalf("%d timers are held, want the heartbeat's: tests that rely on a blind daemon prove nothing", n)
	}
	seals := one.engine.Pool.Counters().Seals
	one.free("k", one.take("k", 10*time.Second).Token)
	if n := one.engine.Pool.Counters().Seals - seals; n < 1 || n > 6 {
		t.Errorf("%d seals for one lock on 3 masters", n)
	}
}
