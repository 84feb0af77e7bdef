package proxy

// writers.go answers: on whose goroutine does a session write when a reply is
// completed by a lane? On a task of this pool: one per session with something
// to write, none while it has nothing, so a client that does not read costs a
// task of its own and nobody else.

import (
	"log/slog"
	"sync"
	"time"

	"github.com/panjf2000/ants/v2"
)

type writers struct {
	pool *ants.Pool
	rest sync.WaitGroup // tasks that the pool did not take
}

// newWriters sizes the pool at twice the clients: every session has at most one
// task, and the task of one that has just left may still be ending while its
// place is taken.
func newWriters(clients int, log *slog.Logger, panicked func()) (*writers, error) {
	pool, err := ants.NewPool(2*clients, ants.WithNonblocking(true), ants.WithPanicHandler(func(cause any) {
		panicked()
		log.Error("panic in a writer task", "cause", cause)
	}))
	if err != nil {
		return nil, err
	}
	return &writers{pool: pool}, nil
}

// wake runs task soon, once, and returns at once. A task must not be lost, since
// its session counts on it: one the pool refuses gets a goroutine; there is at
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
