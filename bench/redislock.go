// A peer without a quorum: bsm/redislock on one Redis. The failure of one machine loses
// its locks, which is the gain of five masters for their cost.

package main

import (
	"context"
	"fmt"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

func redislockName(n int) string { return "bsm/redislock on one Redis, " + callers(n) }

func redislockScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 8, 64, 256} {
		all = append(all, scenario{
			name: redislockName(n),
			page: pagePairs, peer: redsyncName(n), run: pairs(n, openRedislock),
		})
	}
	return all
}

func openRedislock(_ context.Context, tb *testbed, n int) (workerSet, error) {
	client := redis.NewClient(&redis.Options{Addr: tb.masters[0].address, PoolSize: n + 2})
	c := workerSet{close: func() { client.Close() }}
	locks := redislock.New(client)
	for i := range n {
		c.workers = append(c.workers, &redislockWorker{locks: locks, keys: workerKeys("redislock", i)})
	}
	return c, nil
}

// redislockWorker tries each lock once.
type redislockWorker struct {
	locks *redislock.Client
	keys  []string
	next  int
}

func (w *redislockWorker) turn(n *recorder) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	ctx := context.Background() // go-redis has its own timeouts
	stage, began := n.now()
	lock, err := w.locks.Obtain(ctx, key, leaseTTL, nil)
	if err != nil {
		return fmt.Errorf("redislock: %w", err)
	}
	n.acquired(stage, began)
	if err := lock.Release(ctx); err != nil {
		return fmt.Errorf("redislock: %w", err)
	}
	n.released()
	return nil
}
