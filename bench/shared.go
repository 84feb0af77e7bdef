// Readers of one hot key. The peer is exclusive locks of one key each.

package main

import (
	"context"
	"errors"

	"redlockd/redlock"
)

func sharedScenarios() []scenario {
	return modeScenarios("engine, readers of one key, ", func(int) []redlock.LockRequest {
		return []redlock.LockRequest{{Key: "bench:shared", TTL: leaseTTL, Mode: redlock.Readers}}
	})
}

// modeScenarios compare requests of a mode with exclusive locks of the engine.
func modeScenarios(name string, requests func(worker int) []redlock.LockRequest) []scenario {
	var all []scenario
	for _, n := range []int{1, 64} {
		all = append(all, scenario{
			name: name + callers(n), page: pageModes, peer: engineName(n),
			run: pairs(n, func(ctx context.Context, tb *testbed, n int) (workerSet, error) {
				c, err := openEngineOn(nil)(ctx, tb, n)
				if err != nil {
					return c, err
				}
				for i, w := range c.workers {
					c.workers[i] = newModeWorker(w.(*engineWorker), requests(i))
				}
				return c, nil
			}),
		})
	}
	return all
}

// modeWorker acquires its requests, one after the other, and releases all keys of each.
type modeWorker struct {
	*engineWorker
	requests []redlock.LockRequest
	released chan error // as many as there are keys: completions must not block
}

func newModeWorker(w *engineWorker, requests []redlock.LockRequest) *modeWorker {
	return &modeWorker{engineWorker: w, requests: requests, released: make(chan error, 1+len(requests[0].More))}
}

func (w *modeWorker) turn(n *recorder) error {
	r := w.requests[w.next%len(w.requests)]
	w.next++
	stage, began := n.now()
	w.locker.Lock(nil, r, w.locked)
	if err := <-w.outcome; err != nil {
		return err
	}
	n.acquired(stage, began)
	var b redlock.Batch
	keys := append([]redlock.Key{r.Key}, r.More...)
	for _, key := range keys {
		w.locker.Unlock(&b, redlock.UnlockRequest{Key: key, Token: w.grant.Token}, func(released bool, err error) {
			if err == nil && !released {
				err = errNotReleased
			}
			w.released <- err
		})
	}
	b.Send()
	var failed error
	for range keys {
		failed = errors.Join(failed, <-w.released)
	}
	if failed == nil {
		n.released()
	}
	return failed
}
