package wait

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
	"redlockd/redlock/work"
)

func TestMain(m *testing.M) {
	// ants starts a pool of its own when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// long is a lease that no test outlives.
const long = redlocktest.Long

// daemon is leases and work, and the requests that wait for them.
type daemon struct {
	*redlocktest.Daemon
	*Queues
	*work.Works
}

// connect completes a daemon.
func (d *daemon) connect(base *redlocktest.Daemon) {
	d.Daemon = base
	d.Queues = New(base.Engine, base.Leases, 100_000, 10_000)
	d.Works = work.New(base.Engine, d.AwaitWork, d.Freed)
	base.Connect(d.Freed, redlocktest.NoChanges{})
}

// newEmbedded is a daemon on masters inside this process.
func newEmbedded(t *testing.T, traits ...redlocktest.Trait) *daemon {
	t.Helper()
	d := &daemon{}
	redlocktest.Embedded(t, d.connect, traits...)
	return d
}

// newDaemon is a daemon on a cluster.
func newDaemon(c *redlocktest.Cluster, traits ...redlocktest.Trait) *daemon {
	c.T.Helper()
	d := &daemon{}
	c.Daemon(d.connect, traits...)
	return d
}

// patient is the trait of a daemon with a wide master timeout.
func patient(_ *redlocktest.Daemon, o *pool.Options) { o.MasterTimeout = 5 * time.Second }

// refused is how many acquires were refused.
func (d *daemon) refused() int64 { return d.engine.Counts.Refused.Load() }

// take is Get for an exclusive lock.
func (d *daemon) take(key engine.Key, ttl time.Duration) lease.Grant {
	d.T.Helper()
	return d.Get(lease.LockRequest{Key: key, TTL: ttl})
}

// waited is one wait's answer.
type waited struct {
	name  string
	grant lease.Grant
	err   error
}

// waitFor starts a wait; its answer goes to out.
func (d *daemon) waitFor(name string, r Request, out chan<- waited) (leave func()) {
	d.T.Helper()
	if r.TTL == 0 {
		r.TTL = time.Minute
	}
	if r.Wait == 0 {
		r.Wait = time.Minute
	}
	return d.Wait(nil, r, func(g lease.Grant, err error) { out <- waited{name, g, err} })
}

// left wants no waiter and no queue.
func (d *daemon) left() {
	d.T.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Waiters() != 0 || len(d.queues) != 0 || len(d.byKey) != 0 {
		d.T.Errorf("%d waiters, %d queues of %d keys are left", d.Waiters(), len(d.queues), len(d.byKey))
	}
}
