package proxy

// writers.go contains the pool of goroutines on which sessions write replies that lanes
// complete. A session with something to write has one task, else none. So a client that
// does not read blocks a task of its own and no other session.

import (
	"log/slog"
	"sync"
	"time"

	"github.com/panjf2000/ants/v2"
)

type writers struct {
	pool *ants.Pool
	rest sync.WaitGroup // tasks that the pool rejected
}

// newWriters sizes the pool at twice the clients: every session has at most one
// task, and the task of one that has just closed may still be ending while its
// successor is connected.
func newWriters(clients int, log *slog.Logger, panicked func()) (*writers, error) {
	pool, err := ants.NewPool(2*clients, ants.WithNonblocking(true), ants.WithPanicHandler(func(value any) {
		panicked()
		log.Error("panic recovered in a writer task", "err", value)
	}))
	if err != nil {
		return nil, err
	}
	return &writers{pool: pool}, nil
}

// wake runs task soon, once, and returns at once. A task must not be lost, since
// its session depends on it: one that the pool rejects gets a goroutine; there is at
// most one per session.
func (w *writers) wake(task func()) {
	if w.pool.Submit(task) != nil {
		w.rest.Go(task)
	}
}

// close waits for the tasks; their sockets are closed, so they end by themselves.
func (w *writers) close() error {
	w.rest.Wait()
	return w.pool.ReleaseTimeout(10 * time.Second)
}
