// A peer without a quorum that receives releases: rueidislock on one Redis. It keeps a
// contended key in the client-side cache, and tries again when the server reports a
// change.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func trackingName(n int) string { return "rueidislock on one Redis, " + callers(n) }

func trackingScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 8, 64, 256} {
		all = append(all, scenario{
			name: trackingName(n),
			page: pagePairs, peer: redsyncName(n), run: pairs(n, openTracking),
		})
	}
	return all
}

// newTracker returns one client. One key for each lock is its cheapest setting: several keys
// on one server are no quorum.
func newTracker(tb *testbed) (rueidislock.Locker, error) {
	return rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{tb.masters[0].address}},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: leaseTTL,
	})
}

func openTracking(_ context.Context, tb *testbed, n int) (workerSet, error) {
	locks, err := newTracker(tb)
	if err != nil {
		return workerSet{}, err
	}
	c := workerSet{close: locks.Close}
	for i := range n {
		c.workers = append(c.workers, &trackingWorker{take: locks.TryWithContext, keys: workerKeys("tracking", i)})
	}
	return c, nil
}

// trackingWorker acquires locks with the function take.
type trackingWorker struct {
	take func(context.Context, string) (context.Context, context.CancelFunc, error)
	keys []string
	next int

	key    *handoverCounter // of the contended key, else nil
	number int
}

func (w *trackingWorker) turn(n *recorder) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	stage, began := n.now()
	held, release, err := w.take(context.Background(), key)
	if err != nil {
		return fmt.Errorf("rueidislock: %w", err)
	}
	n.acquired(stage, began)
	w.key.granted(n, w.number)
	if held.Err() != nil {
		return errors.Join(errNotReleased, held.Err())
	}
	release()
	n.released()
	return nil
}
