package redlock

// bootstrap_test.go: only the operator can know that there is nothing to forget.

import (
	"testing"
	"time"

	"redlockd/pool"
)

// bootstrap is what "redlockd bootstrap" does, with the limits of the daemon
// that comes after it and none of its other traits.
func bootstrap(c *cluster, force bool, traits ...trait) error {
	o, with := c.options(), c.options()
	for _, change := range traits {
		change(&daemon{t: c.t, clock: &clock{Clock: pool.SystemClock()}}, &with)
	}
	o.MaxTTL, o.MaxKeep, o.Group = with.MaxTTL, with.MaxKeep, with.Group
	return pool.Bootstrap(c.t.Context(), o, force, c.t.Output())
}

func TestBootstrap_TakesEffectOnceAndOnAllOrNone(t *testing.T) {
	c := newCluster(t, 3, long)
	c.servers[2].Kill()
	if err := bootstrap(c, false); err == nil {
		t.Fatal("two masters of three were bootstrapped")
	}
	for i := range 2 {
		if keys := c.servers[i].Keys(); len(keys) != 0 {
			t.Errorf("master %s: keys %q although one master was missing", name(i), keys)
		}
	}
	c.servers[2].Restart()
	if err := bootstrap(c, false); err != nil {
		t.Fatal(err)
	}
	one := c.stranger()
	held := one.take("k", long)
	lives := []string{c.lineage(0), c.lineage(1), c.lineage(2)}
	if err := bootstrap(c, false); err == nil {
		t.Error("a group that serves was bootstrapped again")
	}
	for i, life := range lives {
		if now := c.lineage(i); now != life {
			t.Errorf("master %s: lineage %s, want %s: the second time has no effect", name(i), now, life)
		}
	}
	isHeld(t, one.refuse("k", time.Second))
	one.free("k", held.Token)
}

func TestBootstrap_OneMasterWithAnIdentityIsEnoughToRefuse(t *testing.T) {
	c := newCluster(t, 3, long)
	c.daemon()
	c.servers[0].RestartEmpty()
	c.servers[1].RestartEmpty()
	if err := bootstrap(c, false); err == nil {
		t.Error("bootstrapped although master c has an identity")
	}
}

// A group that nobody bootstrapped waits until it is old enough, unless the
// operator insists.
func TestBootstrap_ByForceVoidsTheLivesBefore(t *testing.T) {
	c := newCluster(t, 3, long)
	one := c.stranger()
	for i := range c.servers {
		one.await(i, "quarantined")
	}
	if err := bootstrap(c, false); err == nil {
		t.Error("bootstrapped although the masters have identities")
	}
	if err := bootstrap(c, true); err != nil {
		t.Fatal(err)
	}
	for i := range c.servers {
		one.await(i, "voting")
	}
	one.free("k", one.take("k", time.Second).Token)
}

// The flag does what the command does, and left in a unit file it does nothing
// when the masters come back.
func TestBootstrap_ByFlagIsNotRepeatedWhenMastersComeBackBlank(t *testing.T) {
	c := newCluster(t, 3, long)
	one := c.stranger(func(_ *daemon, o *pool.Options) { o.Bootstrap = true })
	for i := range c.servers {
		one.await(i, "voting")
	}
	for _, s := range c.servers {
		s.RestartEmpty()
	}
	for i, s := range c.servers {
		one.awaitProcess(i, s)
		one.await(i, "quarantined")
	}
}
