package redlocktest

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/embedded"
	"redlockd/pool/faulty"
	"redlockd/pool/setup"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/lease"
)

// Cluster is a group of masters. It is bootstrapped for its first daemon.
type Cluster struct {
	T *testing.T
	Masters

	maxTTL       time.Duration
	bootstrapped bool
}

// NewCluster starts n masters for leases of maxTTL at most.
func NewCluster(t *testing.T, n int, maxTTL time.Duration) *Cluster {
	t.Helper()
	return &Cluster{T: t, Masters: faulty.StartGroup(t, n), maxTTL: maxTTL}
}

// Do sends a command to a master directly.
func (c *Cluster) Do(i int, args ...any) any {
	c.T.Helper()
	return c.Masters.Do(c.T, i, args...)
}

// Daemon is the leases of a process, with lanes, clock and records of its own, without knowledge
// of other daemons.
type Daemon struct {
	*lease.Leases
	T      *testing.T
	Engine *engine.Engine
	Events *events.Events
	Relays []*faulty.Relay // one before each master, nil unless Relayed
	Clock  *Clock
}

// Trait makes a daemon differ from the usual.
type Trait func(*Daemon, *pool.Options)

// Relayed puts relays of its own between this daemon and the masters.
func Relayed(d *Daemon, o *pool.Options) { d.Relays = Relays(d.T, o) }

// Daemon starts a daemon and returns when every master votes. connect sets what is above its
// leases.
func (c *Cluster) Daemon(connect func(*Daemon), traits ...Trait) *Daemon {
	c.T.Helper()
	if !c.bootstrapped {
		c.bootstrapped = true
		if err := setup.Bootstrap(c.T.Context(), c.Options(c.T, c.maxTTL), setup.BootstrapTerms{}, c.T.Output()); err != nil {
			c.T.Fatal(err)
		}
	}
	d := start(c.T, c.Options(c.T, c.maxTTL), connect, traits)
	for i := range c.Masters {
		Await(d.T, d.Engine, i, "voting")
	}
	d.Idle()
	return d
}

// Embedded is a daemon on five masters inside this process.
func Embedded(t *testing.T, connect func(*Daemon), traits ...Trait) *Daemon {
	t.Helper()
	// The master timeout is wide, so that a busy machine fails nothing.
	return start(t, pool.Options{
		Embedded: 5, MasterTimeout: time.Minute, Late: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, connect, traits)
}

func start(t *testing.T, o pool.Options, connect func(*Daemon), traits []Trait) *Daemon {
	t.Helper()
	d := &Daemon{T: t, Clock: NewClock()}
	o.Clock = d.Clock
	for _, change := range traits {
		change(d, &o)
	}
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	e, texts, err := engine.New(p, "", 100_000)
	if err != nil {
		t.Fatal(err)
	}
	d.Engine, d.Events = e, events.New(e)
	d.Leases = lease.New(e, d.Events, engine.NewToken, false)
	connect(d)
	p.Start(texts...)
	t.Cleanup(d.close)
	return d
}

// close rejects new operations. What a test broke on purpose may stay unanswered.
func (d *Daemon) close() {
	d.Engine.Close()
	for end := time.Now().Add(time.Second); d.busy() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func (d *Daemon) busy() bool {
	return d.Engine.InFlight()+d.Events.Busy()+d.Engine.Pool.Busy() != 0
}

// Quiet waits until the lanes have nothing left to do.
func (d *Daemon) Quiet() {
	d.T.Helper()
	Eventually(d.T, "nothing is in flight", func() bool { return !d.busy() })
}

// Idle waits until what was sent before has been answered.
func (d *Daemon) Idle() {
	d.T.Helper()
	Idle(d.T, d.Engine)
}

// OnMasters calls f for each master inside this process.
func (d *Daemon) OnMasters(f func(lane int, m *embedded.Master)) {
	for lane := range d.Engine.Pool.N() {
		f(lane, d.Engine.Pool.Embedded().At(lane))
	}
}

// NoChanges are the changes of leases that no hold receives.
type NoChanges struct{}

var _ lease.Changes = NoChanges{}

func (NoChanges) Released(engine.LeaseID)                  {}
func (NoChanges) Forced(engine.LeaseID)                    {}
func (NoChanges) Extended([]engine.LeaseID, time.Duration) {}
func (NoChanges) Shortened(engine.LeaseID, time.Duration)  {}
func (NoChanges) Copied([]engine.LeaseID, bool)            {}
