package redlock

// fenceabove_test.go: all masters and all daemons have lost their memory at once, so
// only the operator can tell which fences the protected resources have seen.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/pool/setup"
	"redlockd/redlock/redlocktest"
)

// bootstrapAbove is what "redlockd bootstrap --fence-above N" does.
func bootstrapAbove(c *cluster, force bool, n int64) (said string, err error) {
	var out strings.Builder
	err = setup.Bootstrap(c.t.Context(), c.options(), setup.BootstrapTerms{Force: force, FenceAbove: n}, &out)
	return out.String(), err
}

// registers are those of a master in all databases.
func (c *cluster) registers(i int) (all []int64) {
	c.t.Helper()
	for db := range redlocktest.Databases {
		score := c.do(i, "EVAL", "redis.call('SELECT', ARGV[1]) return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')[2]", 1, "redlockd:seal", db)
		var register int64
		if _, err := fmt.Sscan(score.(string), &register); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, register)
	}
	return all
}

func TestBootstrap_StartsFencesAboveWhatTheResourcesHaveSeen(t *testing.T) {
	c := newClockCluster(t, 3, long)
	if err := bootstrap(c, false); err != nil {
		t.Fatal(err)
	}
	one := c.startDaemon().admitted()
	before := one.take("k", long)
	one.engine.Pool.Close() // a daemon that remembers would raise the registers
	for _, s := range c.servers {
		s.RestartEmpty()
		s.Step(-time.Minute)
	}
	if err := bootstrap(c, false); err != nil {
		t.Fatal(err)
	}
	if low := c.register(0); low >= int64(before.Fence) {
		t.Fatalf("register %d after the fence %d: the clocks are not behind", low, before.Fence)
	}
	said, err := bootstrapAbove(c, true, int64(before.Fence))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("fences: all are above %d in databases 0-%d", before.Fence, redlocktest.Databases-1); !strings.Contains(said, want) {
		t.Errorf("it said %q, want %q", said, want)
	}
	for i := range c.servers {
		for db, register := range c.registers(i) {
			if register <= int64(before.Fence) {
				t.Errorf("master %s, database %d: register %d, want more than %d", name(i), db, register, before.Fence)
			}
		}
	}
	after := c.startDaemon().admitted()
	for _, db := range []int{0, redlocktest.Databases - 1} {
		g := after.get(LockRequest{DB: db, Key: "k", TTL: long})
		if g.Fence <= before.Fence {
			t.Errorf("database %d: fence %d after %d", db, g.Fence, before.Fence)
		}
	}
}

func TestBootstrap_KeepsARegisterThatIsAboveTheFenceAlready(t *testing.T) {
	c := newCluster(t, 3, long)
	c.daemon()
	now := c.register(0)
	high, asked := now+time.Hour.Microseconds(), now+time.Minute.Microseconds()
	c.raise(1, high)
	if _, err := bootstrapAbove(c, false, asked); err == nil || !strings.Contains(err.Error(), "has an identity already") {
		t.Errorf("without --force: %v", err)
	}
	if got := c.register(0); got > asked {
		t.Errorf("the bootstrap that was refused raised a register to %d", got)
	}
	if _, err := bootstrapAbove(c, true, asked); err != nil {
		t.Fatal(err)
	}
	for i, least := range []int64{asked + 1, high, asked + 1} {
		if got := c.register(i); got < least {
			t.Errorf("master %s: register %d, want at least %d", name(i), got, least)
		}
	}
}

func TestBootstrap_RefusesAFenceThatLeavesNoRoom(t *testing.T) {
	c := newCluster(t, 3, long)
	for _, n := range []int64{-1, setup.MaxFenceAbove + 1, 1 << 52} {
		if _, err := bootstrapAbove(c, false, n); err == nil || !strings.Contains(err.Error(), "0 to 4503595332403200 are allowed") {
			t.Errorf("%d: %v", n, err)
		}
	}
	for i := range c.servers {
		if keys := c.servers[i].Keys(); len(keys) != 0 {
			t.Errorf("master %s was written to: %q", name(i), keys)
		}
	}
	if _, err := bootstrapAbove(c, false, setup.MaxFenceAbove); err != nil {
		t.Fatal(err)
	}
	one := c.startDaemon().admitted()
	for range 3 {
		if g := one.take("k", long); g.Fence <= setup.MaxFenceAbove {
			t.Errorf("fence %d", g.Fence)
		} else {
			one.free("k", g.Token)
		}
	}
}
