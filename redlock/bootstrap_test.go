package redlock

// bootstrap_test.go: only the operator can know that there is nothing to forget.

import (
	"io"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/redlock/redlocktest"
)

// bootstrap is what "redlockd bootstrap" does, with the limits of the daemon
// that comes after it and none of its other traits.
func bootstrap(c *cluster, force bool, traits ...trait) error {
	return bootstrapTo(c.t.Output(), c, force, traits...)
}

func bootstrapTo(out io.Writer, c *cluster, force bool, traits ...trait) error {
	o, with := c.options(), c.options()
	for _, change := range traits {
		change(&daemon{t: c.t, clock: redlocktest.NewClock()}, &with)
	}
	o.MaxTTL, o.MaxKeep, o.Group, o.Slots = with.MaxTTL, with.MaxKeep, with.Group, with.Slots
	return setup.Bootstrap(c.t.Context(), o, setup.BootstrapTerms{Force: force}, out)
}

func TestBootstrap_TakesEffectOnceAndOnAllOrNone(t *testing.T) {
	t.Parallel()
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
	one := c.startDaemon().admitted()
	held := one.take("k", long)
	incarnations := []string{c.incarnation(0), c.incarnation(1), c.incarnation(2)}
	if err := bootstrap(c, false); err == nil {
		t.Error("a group that serves was bootstrapped again")
	}
	for i, incarnation := range incarnations {
		if now := c.incarnation(i); now != incarnation {
			t.Errorf("master %s: incarnation %s, want %s: the second time has no effect", name(i), now, incarnation)
		}
	}
	isHeld(t, one.refuse("k", long))
	one.free("k", held.Token)
}

func TestBootstrap_OneMasterWithAnIdentityIsEnoughToRefuse(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	c.daemon()
	c.servers[0].RestartEmpty()
	c.servers[1].RestartEmpty()
	if err := bootstrap(c, false); err == nil {
		t.Error("bootstrapped although master c has an identity")
	}
}

// A group that was not bootstrapped waits until it is old enough, unless the operator insists.
func TestBootstrap_ByForceVoidsTheIncarnationsBefore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.startDaemon()
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
	one.free("k", one.take("k", 10*time.Second).Token)
}

// What the masters stored of counters was the truth of the earlier incarnations; the command
// reports this.
func TestBootstrap_ByForceLeavesEveryCounterToTheOperator(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	const says = "DNEXTID answers LOSTSTATE for those that a quorum of masters has, until DIDRESEED sets them, and begins at 1 where a quorum has nothing"
	var out strings.Builder
	if err := bootstrapTo(&out, c, true); err != nil || strings.Contains(out.String(), says) {
		t.Errorf("of masters that had no incarnation before: %v, %q", err, &out)
	}
	if first := c.startDaemon().admitted().draw("orders", 7); first != 1 {
		t.Errorf("the first id is %d", first)
	}
	out.Reset()
	if err := bootstrapTo(&out, c, true); err != nil || !strings.Contains(out.String(), says) {
		t.Fatalf("%v, it said %q, want %q", err, &out, says)
	}
	d := c.startDaemon().admitted()
	_, err := d.ids("orders", 1)
	lostState(t, err, 0)
	for i, at := range d.counter("orders") {
		if at.Value != 8 || at.Trusted {
			t.Errorf("master %s shows %+v, want 8, not trusted", name(i), at)
		}
	}
	if err := d.reseed("orders", 8); err != nil {
		t.Fatal(err)
	}
	if first := d.draw("orders", 1); first != 9 {
		t.Errorf("after DIDRESEED the next id is %d", first)
	}
	c.servers[0].RestartEmpty()
	c.servers[1].RestartEmpty()
	if err := bootstrap(c, true); err != nil {
		t.Fatal(err)
	}
	if first := c.startDaemon().admitted().draw("orders", 1); first != 1 {
		t.Errorf("where a quorum has forgotten the counter the first id is %d, want 1 as the command says", first)
	}
}

// admitted waits until all masters vote.
func (d *daemon) admitted() *daemon {
	d.t.Helper()
	for i := range d.engine.Pool.N() {
		d.await(i, "voting")
	}
	return d
}

// The flag does what the command does, and left in a unit file it does nothing
// when the masters come back.
// onLine does something once, before the first line is written.
type onLine struct {
	io.Writer
	once func()
}

func (w *onLine) Write(p []byte) (int, error) {
	if w.once != nil {
		w.once()
		w.once = nil
	}
	return w.Writer.Write(p)
}

// Between the check of a master and its baptism a daemon may begin an incarnation in it.
func TestBootstrap_VoidsAnIncarnationThatADaemonBeganMeanwhile(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	if err := bootstrap(c, true); err != nil {
		t.Fatal(err)
	}
	base := func() string {
		seal, _ := c.do(1, "ZRANGE", "redlockd:seal", 0, -1).([]any)
		if len(seal) != 1 {
			return ""
		}
		return strings.Fields(seal[0].(string))[2]
	}
	out := &onLine{io.Discard, func() { // master a is done
		c.do(1, "FLUSHALL")
		c.startDaemon()
		eventually(t, "a daemon has begun an incarnation in b", func() bool { b := base(); return b != "" && b != "0" })
	}}
	if err := bootstrapTo(out, c, true); err != nil {
		t.Fatal(err)
	}
	if b := base(); b != "0" {
		t.Errorf("b was said to vote, and counts its age from %s", b)
	}
	c.startDaemon().admitted()
}

func TestBootstrap_ByFlagIsNotRepeatedWhenMastersComeBackBlank(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.startDaemon(func(_ *daemon, o *pool.Options) {
		if err := setup.BootstrapIfBlank(t.Context(), *o); err != nil {
			t.Error(err)
		}
	})
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
