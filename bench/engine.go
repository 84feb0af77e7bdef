// The engine in this process: the packages of redlockd without a daemon and its socket.
// The counters that do not depend on the machine come from here: commands per flush,
// mallocs and system calls per pair.

package main

import (
	"context"
	"io"
	"log/slog"

	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/redlock"
)

func engineName(n int) string { return "engine in process, " + callers(n) }

func engineScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 8, 64, 256} {
		all = append(all, scenario{
			name: engineName(n),
			page: pagePairs, peer: redsyncName(n), run: pairs(n, openEngineOn(nil)),
		})
	}
	return all
}

// openEngineOn opens links with this dialer. nil is the dialer of redlockd.
func openEngineOn(dialer pool.Dialer) opener {
	return func(_ context.Context, tb *testbed, n int) (workerSet, error) {
		c, locker, err := startEngine(tb, dialer)
		if err != nil {
			return workerSet{}, err
		}
		for i := range n {
			c.workers = append(c.workers, newEngineWorker(locker, i))
		}
		return c, nil
	}
}

// startEngine uses the settings of the daemon, because the masters reject other settings.
// A nil dialer is the dialer of redlockd.
func startEngine(tb *testbed, dialer pool.Dialer) (workerSet, *redlock.Locker, error) {
	options := pool.Options{Dialer: dialer, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, address := range tb.addresses() {
		options.Masters = append(options.Masters, pool.Master{Name: address, Network: "tcp", Address: address})
	}
	if err := setup.BootstrapIfBlank(context.Background(), options); err != nil {
		return workerSet{}, nil, err
	}
	masters, err := pool.New(options)
	if err != nil {
		return workerSet{}, nil, err
	}
	locker, err := redlock.New(masters, redlock.Options{Logger: options.Logger, VolatileIDs: true})
	if err != nil {
		masters.Close()
		return workerSet{}, nil, err
	}
	return workerSet{
		flushes: func() (flushes, commands int64) {
			counters := masters.Counters()
			return counters.Flushes, counters.Commands
		},
		close: func() {
			_ = locker.Close(ioTimeout) // leases that remain expire
			masters.Close()
		},
	}, locker, nil
}

// engineWorker is a caller that waits for each outcome. It builds its completions once, so
// that the counted allocations are those of the engine.
type engineWorker struct {
	locker   *redlock.Locker
	keys     []string
	next     int
	grant    redlock.Grant
	outcome  chan error // 1: the completion must not block
	locked   redlock.LockDone
	unlocked redlock.UnlockDone
}

func newEngineWorker(l *redlock.Locker, i int) *engineWorker {
	w := &engineWorker{locker: l, keys: workerKeys("engine", i), outcome: make(chan error, 1)}
	w.locked = func(g redlock.Grant, err error) {
		w.grant = g
		w.outcome <- err
	}
	w.unlocked = func(released bool, err error) {
		if err == nil && !released {
			err = errNotReleased
		}
		w.outcome <- err
	}
	return w
}

func (w *engineWorker) turn(n *recorder) error {
	key := redlock.Key(w.keys[w.next%len(w.keys)])
	w.next++
	stage, began := n.now()
	w.locker.Lock(nil, redlock.LockRequest{Key: key, TTL: leaseTTL}, w.locked)
	if err := <-w.outcome; err != nil {
		return err
	}
	n.acquired(stage, began)
	w.locker.Unlock(nil, redlock.UnlockRequest{Key: key, Token: w.grant.Token}, w.unlocked)
	if err := <-w.outcome; err != nil {
		return err
	}
	n.released()
	return nil
}
