// The engine in this process: what the product's own packages reach without a
// daemon and a socket to it. The counters that do not depend on the machine,
// commands per flush, mallocs and system calls per pair, are read here.
package main

import (
	"context"
	"io"
	"log/slog"

	"redlockd/pool"
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

// openEngineOn opens links with this dialer; nil is the product's own.
func openEngineOn(dialer pool.Dialer) opener {
	return func(_ context.Context, st *stand, n int) (crew, error) {
		c, locker, err := startEngine(st, dialer)
		if err != nil {
			return crew{}, err
		}
		for i := range n {
			c.workers = append(c.workers, newEngineWorker(locker, i))
		}
		return c, nil
	}
}

// startEngine uses the daemon's settings: the masters refuse daemons that differ.
// A nil dialer is the product's own.
func startEngine(st *stand, dialer pool.Dialer) (crew, *redlock.Locker, error) {
	options := pool.Options{Bootstrap: true, Dialer: dialer, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, address := range st.addresses() {
		options.Masters = append(options.Masters, pool.Master{Name: address, Network: "tcp", Address: address})
	}
	masters, err := pool.New(options)
	if err != nil {
		return crew{}, nil, err
	}
	locker, err := redlock.New(masters, redlock.Options{Logger: options.Logger, VolatileIDs: true})
	if err != nil {
		masters.Close()
		return crew{}, nil, err
	}
	return crew{
		flushes: func() (flushes, commands int64) {
			counters := masters.Counters()
			return counters.Flushes, counters.Commands
		},
		close: func() {
			_ = locker.Close(talkPatience) // what is left expires by itself
			masters.Close()
		},
	}, locker, nil
}

// engineWorker is a caller that waits for each outcome. Its completions are made
// once, so that the allocations counted are the engine's.
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

func (w *engineWorker) turn(n *notes) error {
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
