package redlocktest

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/embedded"
	"redlockd/pool/faulty"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/lease"
)

// Daemon is the leases of a process, with lanes, clock and records of its own, without knowledge
// of other daemons.
type Daemon struct {
	*lease.Leases
	T      *testing.T
	Engine *engine.Engine
	Events *events.Events
	Relays []*faulty.Relay // one before each master, nil unless Relayed
}

// Trait is how a daemon differs from the usual.
type Trait func(*Daemon, *pool.Options)

// Relayed puts relays of its own between this daemon and the masters.
func Relayed(d *Daemon, o *pool.Options) {
	for i := range o.Masters {
		r := faulty.NewRelay(o.Masters[i].Address)
		d.T.Cleanup(r.Close)
		d.Relays = append(d.Relays, r)
		o.Masters[i].Address = r.Addr()
	}
}

// Embedded is a daemon on five masters inside this process.
func Embedded(t *testing.T, connect func(*Daemon)) *Daemon {
	t.Helper()
	// The master timeout is wide, so that a busy machine fails nothing.
	return start(t, pool.Options{
		Embedded: 5, MasterTimeout: time.Minute, Late: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, connect, nil)
}

func start(t *testing.T, o pool.Options, connect func(*Daemon), traits []Trait) *Daemon {
	t.Helper()
	d := &Daemon{T: t}
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

// Await waits until a master has this state for the daemon.
func (d *Daemon) Await(i int, want string) {
	d.T.Helper()
	Eventually(d.T, "master "+name(i)+" is "+want, func() bool { return d.status(i).State == want })
}

func (d *Daemon) status(i int) pool.Status { return d.Engine.Pool.Group(0).Statuses()[i] }

// Settled waits until the daemon has nothing left to send to these masters.
func (d *Daemon) Settled(masters ...int) {
	d.T.Helper()
	for _, i := range masters {
		Eventually(d.T, "the daemon has no pending release for master "+name(i), func() bool {
			s := d.status(i)
			return (s.State == "voting" || s.State == "quarantined") && s.PendingReleases == 0 && d.Engine.Pool.Busy() == 0
		})
	}
}

// Idle waits until what was sent before has been answered.
func (d *Daemon) Idle() {
	d.T.Helper()
	n := d.Engine.Pool.N()
	answered := make(chan pool.Answer, n) // one from each master
	ping := &engine.Message{
		Write:    func(_ *pool.SendContext, c *pool.Command) bool { c.Set("PING"); return true },
		OnAnswer: func(a pool.Answer) { answered <- a },
	}
	for i := range n {
		d.Engine.Pool.Group(0).Push(i, ping)
	}
	for range n {
		Receive(d.T, answered)
	}
}

// OnMasters calls f for each master inside this process.
func (d *Daemon) OnMasters(f func(lane int, m *embedded.Master)) {
	for lane := range d.Engine.Pool.N() {
		f(lane, d.Engine.Pool.Embedded().At(lane))
	}
}

// Holders counts the masters inside this process that hold the key for a token.
func (d *Daemon) Holders(key string, token engine.Token) (n int) {
	d.OnMasters(func(_ int, m *embedded.Master) {
		if got, err := m.Server().Get(key); err == nil && got == string(token) {
			n++
		}
	})
	return n
}
