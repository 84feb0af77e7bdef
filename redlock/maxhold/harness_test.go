package maxhold

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
	"redlockd/redlock/renew"
	"redlockd/redlock/wait"
)

func TestMain(m *testing.M) {
	// ants starts a pool of its own when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// daemon is leases within their longest time.
type daemon struct {
	*redlocktest.Daemon
	*MaxHold
	holds  *renew.Holds
	queues *wait.Queues
}

func (d *daemon) connect(base *redlocktest.Daemon) {
	d.Daemon = base
	e, logger := base.Engine, slog.New(slog.NewTextHandler(io.Discard, nil))
	d.queues = wait.New(e, base.Leases, 100, 100)
	d.holds = renew.New(e, base.Events, base.Leases, logger)
	inspector := inspect.New(e, base.Leases, logger, inspect.Local{Waiters: d.queues.CountAt, Wanted: d.holds.WantedText, Renews: d.holds.Renews})
	d.MaxHold = New(e, base.Leases, inspector, base.Events)
	base.Connect(d.queues.Freed, d.holds)
	base.T.Cleanup(d.queues.End)
}

// wait is Lock with a wait.
func (d *daemon) wait(r lease.LockRequest, done lease.LockDone) (leave func()) {
	return d.MaxHold.Wait(nil, r, done, func(b *engine.Batch, r lease.LockRequest, done lease.LockDone) (leave func()) {
		return d.queues.Wait(b, wait.Request{LockRequest: r, Wait: time.Hour}, done)
	})
}

// newEmbedded is a daemon on masters inside this process, which have its clock.
func newEmbedded(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{}
	redlocktest.Embedded(t, d.connect, func(_ *redlocktest.Daemon, o *pool.Options) { o.MaxTTL = 2 * longest })
	return d
}

// newDaemon is a daemon on a cluster.
func newDaemon(c *redlocktest.Cluster) *daemon {
	c.T.Helper()
	d := &daemon{}
	c.Daemon(d.connect)
	return d
}

type answer struct {
	grant lease.Grant
	err   error
}

func (d *daemon) ask(request func(done func(lease.Grant, error))) answer {
	d.T.Helper()
	out := make(chan answer, 2) // 2: so that a second answer would be seen
	request(func(g lease.Grant, err error) { out <- answer{g, err} })
	a := redlocktest.Receive(d.T, out)
	if len(out) > 0 {
		d.T.Error("answered twice")
	}
	return a
}

func (d *daemon) lock(r lease.LockRequest) (lease.Grant, error) {
	d.T.Helper()
	a := d.ask(func(done func(lease.Grant, error)) { d.MaxHold.Lock(nil, r, done) })
	d.Idle() // what is kept on the masters has been written
	return a.grant, a.err
}

// take is lock for what must be granted.
func (d *daemon) take(r lease.LockRequest) lease.Grant {
	d.T.Helper()
	g, err := d.lock(r)
	if err != nil {
		d.T.Fatalf("%+v: %v", r, err)
	}
	return g
}

func (d *daemon) extend(r lease.ExtendRequest) (lease.Grant, error) {
	d.T.Helper()
	a := d.ask(func(done func(lease.Grant, error)) { d.MaxHold.Extend(nil, r, done) })
	d.Idle()
	return a.grant, a.err
}

func (d *daemon) write(r lease.WriteRequest) bool {
	d.T.Helper()
	out := make(chan bool, 1)
	d.MaxHold.Write(nil, r, func(did bool, err error) {
		if err != nil {
			d.T.Error(err)
		}
		out <- did
	})
	did := redlocktest.Receive(d.T, out)
	d.Idle()
	return did
}

// unlock releases a lock that is held.
func (d *daemon) unlock(key engine.Key, t engine.Token) {
	d.T.Helper()
	out := make(chan bool, 1)
	d.MaxHold.Unlock(nil, lease.UnlockRequest{Key: key, Token: t}, func(was bool, err error) { out <- was && err == nil })
	if !redlocktest.Receive(d.T, out) {
		d.T.Errorf("%q is not released", key)
	}
	d.Idle()
}

// later lets the time pass, for the daemon and its masters.
func (d *daemon) later(by time.Duration) { d.Clock.Ahead.Add(int64(by)) }

// within fails unless a grant ends by a hold's longest time after the hold began; slack is what the clocks of
// masters and daemons differ by.
func (d *daemon) within(what string, g, began lease.Grant, longest time.Duration) {
	d.T.Helper()
	const slack = 500 * time.Millisecond
	if last := began.Began() + longest; g.Until() > last+slack {
		d.T.Errorf("%s lasts for %v beyond the longest time", what, g.Until()-last)
	}
}

func heldFor(m lease.Mode, longest time.Duration) lease.Mode {
	return lease.Limited(m, lease.HoldLimit{Longest: longest})
}
