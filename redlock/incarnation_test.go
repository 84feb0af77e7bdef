package redlock

// incarnation_test.go: which memory a master comes back with, and what it is worth.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockd/pool/setup"
)

var durably = []string{"--appendonly", "yes", "--appendfsync", "always"}

// incarnation is the id of the incarnation of a master's memory.
func (c *cluster) incarnation(i int) string {
	c.t.Helper()
	return c.identity(i)[1]
}

func TestIncarnation_OfADurableMasterGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durably...)
	one := c.daemon()
	held := one.take("k", long)
	incarnation := c.incarnation(1)
	c.servers[1].Restart()
	one.awaitProcess(1, c.servers[1])
	one.await(1, "voting")
	if now := c.incarnation(1); now != incarnation {
		t.Errorf("the incarnation is %s after a restart, want %s: everything was on disk", now, incarnation)
	}
	if got := c.copies("k")[1]; got != string(held.Token) {
		t.Errorf("the copy is %q after the restart", got)
	}
	if !one.Masters(0)[1].Durable {
		t.Error("the master does not count as durable")
	}
	isHeld(t, one.refuse("k", long))
}

func TestIncarnation_OfAVolatileMasterEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	for what, args := range map[string][]string{
		"nothing on disk":     nil,
		"disk once a second":  {"--appendonly", "yes", "--appendfsync", "everysec"},
		"disk whenever it is": {"--appendonly", "yes", "--appendfsync", "no"},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t, 3, long, args...)
			one := c.daemon()
			incarnation := c.incarnation(1)
			c.servers[1].Restart()
			one.awaitProcess(1, c.servers[1])
			one.await(1, "quarantined")
			if c.incarnation(1) == incarnation {
				t.Errorf("the incarnation %s survived", incarnation)
			}
		})
	}
}

// Durable now is not durable then: what the earlier incarnation answered was not on disk.
func TestIncarnation_ThatBeganVolatileEndsAlthoughTheMasterIsDurableNow(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durably...)
	c.do(1, "CONFIG", "SET", "appendfsync", "everysec")
	one := c.daemon()
	incarnation := c.incarnation(1)
	c.servers[1].Restart() // durable again, as its arguments say
	one.awaitProcess(1, c.servers[1])
	one.await(1, "quarantined")
	if c.incarnation(1) == incarnation || !one.Masters(0)[1].Durable {
		t.Errorf("incarnation %s after %s, durable %v; want a new one that is", c.incarnation(1), incarnation, one.Masters(0)[1].Durable)
	}
}

// Yesterday's file under today's name: the register is below what this daemon
// has seen acknowledged, so the memory is not the one that acknowledged it.
func TestIncarnation_ThatWasRolledBackIsInvalidated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durably...)
	one := c.daemon()
	data := c.do(1, "CONFIG", "GET", "dir").([]any)[1].(string)
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	held := one.take("k", long)
	incarnation := c.incarnation(1)
	c.servers[1].Kill()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	c.servers[1].Restart()
	one.awaitProcess(1, c.servers[1])
	one.await(1, "quarantined")
	if now := c.incarnation(1); now == incarnation {
		t.Errorf("the rolled-back memory goes on as %s", now)
	}
	if n := one.engine.Pool.Counters().Invalidated; n != 1 {
		t.Errorf("%d incarnations were invalidated, want 1", n)
	}
	isHeld(t, one.refuse("k", long))
	one.free("k", held.Token)
}

// Rule: admitted-at. A durable master loses the last writes that it answered. The first daemon to
// return has not seen them, and raises the register above the one that is lost.
func TestIncarnation_OfADurableMasterThatLostAcknowledgedWritesEnds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durably...)
	one, two := c.daemon(relayed), c.daemon(relayed)
	one.leave(1)
	two.leave(0, 2)
	one.await(2, "voting")
	before := c.register(2)
	first := one.take("k", long) // on a and c alone
	one.leave(0, 2)
	c.do(2, "DEL", "k")
	c.do(2, "ZADD", "redlockd:seal", before, c.do(2, "ZRANGE", "redlockd:seal", 0, 0).([]any)[0])
	for _, i := range []int{0, 1} {
		c.do(i, "DEL", "redlockd:acked")
	}
	c.servers[2].Restart()
	for _, r := range two.relays[1:] {
		r.Accept()
	}
	two.awaitProcess(2, c.servers[2])
	two.free("other", two.take("other", long).Token) // on b and c
	if now := c.register(2); now <= before {
		t.Fatalf("the register is %d, and was %d", now, before)
	}
	for _, r := range one.relays {
		r.Accept()
	}
	one.awaitProcess(2, c.servers[2])
	two.settled(1)
	if g, err := two.lockAs("k", "token-of-a-caller", time.Second); err == nil && first.Validity() > 0 {
		t.Fatalf("two tokens hold \"k\": one for %v by {a, c}, and one for %v", first.Validity(), g.Validity())
	}
	one.await(2, "quarantined")
}

// SWAPDB brings what another database of the group had, and takes it away again. Neither is refused
// for good, and an operator's quarantine has an effect meanwhile.
func TestIncarnation_EndsWhereSwapdbBringsAnotherDatabase(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	before := c.incarnation(1)
	for _, what := range []string{"there", "and back"} {
		c.do(1, "SWAPDB", 0, 1)
		eventually(t, "master b has another incarnation after SWAPDB "+what, func() bool {
			seal, _ := c.do(1, "ZRANGE", "redlockd:seal", 0, 0).([]any)
			return len(seal) == 1 && strings.Contains(seal[0].(string), "/db=0/") && c.incarnation(1) != before
		})
		one.await(1, "quarantined")
		before = c.incarnation(1)
	}
	if err := setup.Quarantine(t.Context(), c.options(), "b", false, t.Output()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "master b has another incarnation after its quarantine", func() bool {
		seal, _ := c.do(1, "ZRANGE", "redlockd:seal", 0, 0).([]any)
		return len(seal) == 1 && !strings.HasPrefix(seal[0].(string), "retired") && c.incarnation(1) != before
	})
	one.await(1, "quarantined")
}
