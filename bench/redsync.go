// The main peer: redsync over go-redis, directly on the masters. In its pool no caller
// waits for a connection.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	peer "github.com/go-redsync/redsync/v4/redis"
)

func redsyncName(n int) string { return "redsync + go-redis, " + callers(n) }

func redsyncScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 8, 64, 256} {
		all = append(all, scenario{name: redsyncName(n), page: pagePairs, run: pairs(n, openRedsync)})
	}
	return all
}

func openRedsync(_ context.Context, tb *testbed, n int) (workerSet, error) {
	locks, closeAll := dialRedsync(tb.addresses(), n+2)
	c := workerSet{close: closeAll}
	for i := range n {
		c.workers = append(c.workers, &redsyncWorker{locks: locks, keys: workerKeys("redsync", i)})
	}
	return c, nil
}

// dialRedsync returns clients with at most this number of connections to each master.
func dialRedsync(addresses []string, connections int) (locks *redsync.Redsync, closeAll func()) {
	var pools []peer.Pool
	var clients []*redis.Client
	for _, address := range addresses {
		client := redis.NewClient(&redis.Options{Addr: address, PoolSize: connections})
		clients = append(clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	return redsync.New(pools...), func() {
		for _, client := range clients {
			client.Close()
		}
	}
}

// redsyncWorker builds a mutex for each lock, as programs do.
type redsyncWorker struct {
	locks *redsync.Redsync
	keys  []string
	next  int
}

func (w *redsyncWorker) turn(n *recorder) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	ctx := context.Background() // redsync has its own timeout
	stage, began := n.now()
	mutex := w.locks.NewMutex(key, redsync.WithExpiry(leaseTTL), redsync.WithTries(1))
	if err := mutex.LockContext(ctx); err != nil {
		return fmt.Errorf("redsync: %w", err)
	}
	n.acquired(stage, began)
	released, err := mutex.UnlockContext(ctx)
	if !released {
		return errors.Join(errNotReleased, err)
	}
	n.released()
	return nil
}
