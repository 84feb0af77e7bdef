// One key that everybody wants: how many are served, and how long do they wait?
// Each caller waits for the lock in the way of its library, and gives it back at
// once. A caller that gets it again at once because the others are asleep is no
// hand-over, so these are counted apart.
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
	// trackingPatience bounds a wait for news that may be lost: the last callers
	// of a run have nobody whose release could wake them again.
	trackingPatience = 2 * time.Second
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

// openWaiting gives each caller a connection, as programs have that wait, and
// more words to its command.
func openWaiting(more ...string) func(context.Context, *stand, int) (crew, error) {
	words := append([]string{"DLOCK", handoverKey, leaseMillis, "WAIT", "9000"}, more...)
	return func(ctx context.Context, st *stand, n int) (crew, error) {
		c := crew{daemons: []*daemon{st.daemon}, close: func() {}}
		key := &baton{}
		for i := range n {
			conn, err := dialRESP(ctx, st.daemon.address)
			if err != nil {
				return crew{}, errors.Join(err, c.end())
			}
			c.first(conn.close)
			c.workers = append(c.workers, &waitingWorker{conn, words, key, i})
		}
		return c, nil
	}
}

// waitingWorker waits as long as a lease may last.
type waitingWorker struct {
	conn   *respConn
	words  []string
	key    *baton
	number int
}

func (w *waitingWorker) turn(n *notes) error {
	stage, began := n.now()
	r, err := w.conn.do(w.words...)
	if err != nil {
		return err
	}
	if r.kind != '*' {
		return errors.New("nine seconds were not enough to get the lock")
	}
	n.acquired(stage, began)
	w.key.taken(n, w.number)
	r, err = w.conn.do("DUNLOCK", handoverKey, r.items[0].text)
	if err != nil {
		return err
	}
	if r.number != 1 {
		return errNotReleased
	}
	n.released()
	return nil
}

func openPolling(_ context.Context, st *stand, n int) (crew, error) {
	locks, closeAll := dialRedsync(st.addresses(), n+2)
	c := crew{close: closeAll}
	key := &baton{}
	for i := range n {
		c.workers = append(c.workers, &pollingWorker{locks, key, i})
	}
	return c, nil
}

// pollingWorker tries at redsync's own pace.
type pollingWorker struct {
	locks  *redsync.Redsync
	key    *baton
	number int
}

func (w *pollingWorker) turn(n *notes) error {
	ctx := context.Background() // redsync bounds a try by itself
	mutex := w.locks.NewMutex(handoverKey, redsync.WithExpiry(leaseTTL), redsync.WithTries(1<<10))
	stage, began := n.now()
	if err := mutex.LockContext(ctx); err != nil {
		return fmt.Errorf("redsync: %w", err)
	}
	n.acquired(stage, began)
	w.key.taken(n, w.number)
	released, err := mutex.UnlockContext(ctx)
	if !released {
		return errors.Join(errNotReleased, err)
	}
	n.released()
	return nil
}

// openTrackers gives each caller a client: callers of one client would queue in
// their own process.
func openTrackers(_ context.Context, st *stand, n int) (crew, error) {
	c := crew{close: func() {}}
	key := &baton{}
	for i := range n {
		locks, err := newTracker(st)
		if err != nil {
			return crew{}, errors.Join(err, c.end())
		}
		c.first(locks.Close)
		c.workers = append(c.workers, &trackingWorker{take: bounded(locks), keys: []string{handoverKey}, key: key, number: i})
	}
	return c, nil
}

// bounded waits for a lock until its patience is over, which is an error.
func bounded(locks rueidislock.Locker) func(context.Context, string) (context.Context, context.CancelFunc, error) {
	return func(ctx context.Context, key string) (context.Context, context.CancelFunc, error) {
		ctx, cancel := context.WithTimeout(ctx, trackingPatience)
		held, release, err := locks.WithContext(ctx, key)
		if err != nil {
			cancel()
			return nil, nil, err
		}
		return held, func() { release(); cancel() }, nil
	}
}
