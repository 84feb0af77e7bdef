// One contended key: the number of grants, and the waiting time. Each caller waits for
// the lock in the way of its library, and releases it at once. If a caller gets the lock
// again because the others sleep, that is no hand-over. So hand-overs are counted
// separately.

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/rueidis/rueidislock"
)

const (
	handoverCallers = 64
	handoverKey     = "bench:handover"
	handoverName    = "one key: daemon, WAIT, 64 connections"
	fairName        = "one key: daemon, FAIR WAIT, 64 connections"
	handoverPeer    = "one key: redsync's polling, 64 callers"
	// trackingTimeout bounds a wait for a notification that may be lost: no further release
	// wakes the last callers of a run.
	trackingTimeout = 2 * time.Second
)

func handoverScenarios() []scenario {
	const n = handoverCallers
	python := filepath.Join(peerHome(), "redis-py", "bin", "python3")
	polling := program{name: "redis-py", needs: python, masters: 1,
		words: []string{python, filepath.Join("peers", "redis-py", "handover.py")}}
	return []scenario{
		{name: handoverPeer, page: pageHandover, run: pairs(n, openPolling)},
		{name: handoverName, page: pageHandover, peer: handoverPeer, run: pairs(n, openWaiting())},
		{name: fairName, page: pageHandover, peer: handoverPeer, run: pairs(n, openWaiting("FAIR"))},
		{name: "one key: redis-py's polling of one Redis, 64 callers", page: pageHandover, peer: handoverPeer, run: programRun(polling, n)},
		{name: "one key: rueidislock's tracking of one Redis, 64 clients", page: pageHandover, peer: handoverPeer, run: pairs(n, openTrackers)},
	}
}

// openWaiting gives each caller its own connection, as in programs that wait, and more words
// for its command.
func openWaiting(more ...string) func(context.Context, *testbed, int) (workerSet, error) {
	words := append([]string{"DLOCK", handoverKey, leaseMillis, "WAIT", "9000"}, more...)
	return func(ctx context.Context, tb *testbed, n int) (workerSet, error) {
		c := workerSet{daemons: []*daemon{tb.daemon}, close: func() {}}
		key := &handoverCounter{}
		for i := range n {
			conn, err := dialRESP(ctx, tb.daemon.address)
			if err != nil {
				return workerSet{}, errors.Join(err, c.closeNow())
			}
			c.addCloser(conn.close)
			c.workers = append(c.workers, &waitingWorker{conn, words, key, i})
		}
		return c, nil
	}
}

// waitingWorker waits for the lock in the daemon, for nearly the time of a lease.
type waitingWorker struct {
	conn   *respConn
	words  []string
	key    *handoverCounter
	number int
}

func (w *waitingWorker) turn(n *recorder) error {
	stage, began := n.now()
	r, err := w.conn.do(w.words...)
	if err != nil {
		return err
	}
	if r.Kind != '*' {
		return errors.New("nine seconds were not enough to get the lock")
	}
	n.acquired(stage, began)
	w.key.granted(n, w.number)
	r, err = w.conn.do("DUNLOCK", handoverKey, r.Items[0].Text)
	if err != nil {
		return err
	}
	if r.Int != 1 {
		return errNotReleased
	}
	n.released()
	return nil
}

func openPolling(_ context.Context, tb *testbed, n int) (workerSet, error) {
	locks, closeAll := dialRedsync(tb.addresses(), n+2)
	c := workerSet{close: closeAll}
	key := &handoverCounter{}
	for i := range n {
		c.workers = append(c.workers, &pollingWorker{locks, key, i})
	}
	return c, nil
}

// pollingWorker polls with the delays of redsync.
type pollingWorker struct {
	locks  *redsync.Redsync
	key    *handoverCounter
	number int
}

func (w *pollingWorker) turn(n *recorder) error {
	ctx := context.Background() // redsync has its own timeout for a try
	mutex := w.locks.NewMutex(handoverKey, redsync.WithExpiry(leaseTTL), redsync.WithTries(1<<10))
	stage, began := n.now()
	if err := mutex.LockContext(ctx); err != nil {
		return fmt.Errorf("redsync: %w", err)
	}
	n.acquired(stage, began)
	w.key.granted(n, w.number)
	released, err := mutex.UnlockContext(ctx)
	if !released {
		return errors.Join(errNotReleased, err)
	}
	n.released()
	return nil
}

// openTrackers gives each caller its own client: callers of one client would queue in their
// own process.
func openTrackers(_ context.Context, tb *testbed, n int) (workerSet, error) {
	c := workerSet{close: func() {}}
	key := &handoverCounter{}
	for i := range n {
		locks, err := newTracker(tb)
		if err != nil {
			return workerSet{}, errors.Join(err, c.closeNow())
		}
		c.addCloser(locks.Close)
		c.workers = append(c.workers, &trackingWorker{take: bounded(locks), keys: []string{handoverKey}, key: key, number: i})
	}
	return c, nil
}

// bounded waits for a lock for at most trackingTimeout. A longer wait is an error.
func bounded(locks rueidislock.Locker) func(context.Context, string) (context.Context, context.CancelFunc, error) {
	return func(ctx context.Context, key string) (context.Context, context.CancelFunc, error) {
		ctx, cancel := context.WithTimeout(ctx, trackingTimeout)
		held, release, err := locks.WithContext(ctx, key)
		if err != nil {
			cancel()
			return nil, nil, err
		}
		return held, func() { release(); cancel() }, nil
	}
}
