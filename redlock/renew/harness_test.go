package renew

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlockd/redlock/engine"
	"redlockd/redlock/inspect"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

func TestMain(m *testing.M) {
	// ants starts a pool of its own when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// daemon is leases and their holds.
type daemon struct {
	*redlocktest.Daemon
	*Holds
	inspector *inspect.Inspector
}

// connect completes a daemon.
func (d *daemon) connect(base *redlocktest.Daemon) {
	d.Daemon = base
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	d.Holds = New(base.Engine, base.Events, base.Leases, logger)
	d.inspector = inspect.New(base.Engine, base.Leases, logger, inspect.Local{
		Waiters: func(int, engine.Key) int { return 0 }, Wanted: d.WantedText,
	})
	base.Connect(func(*engine.Batch, int, engine.Key) {}, d.Holds)
}

// newEmbedded is a daemon on masters inside this process.
func newEmbedded(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{}
	redlocktest.Embedded(t, d.connect)
	return d
}

// newDaemon is a daemon on a cluster.
func newDaemon(c *redlocktest.Cluster) *daemon {
	c.T.Helper()
	d := &daemon{}
	c.Daemon(d.connect)
	return d
}

// extended is how many extensions were granted, also those of holds.
func (d *daemon) extended() int64 { return d.engine.Counts.Extended.Load() }

// holdFor holds a new lock; the reason of its loss goes to the channel.
func (d *daemon) holdFor(key engine.Key, ttl, longest time.Duration) (*hold, lease.Grant, chan error) {
	d.T.Helper()
	lost := make(chan error, 2) // 2: so that a second loss would be seen
	g := d.Take(lease.LockRequest{Key: key, TTL: ttl})
	h := d.Begin(g, Terms{MaxTime: longest, OnEnd: func(_ lease.Grant, reason error, _ time.Duration) { lost <- reason }})
	return h.(*hold), g, lost
}

// holdOf is the hold of a grant, with the mutex held.
func (d *daemon) holdOf(g lease.Grant) *hold { return d.byID[g.Lease()] }
