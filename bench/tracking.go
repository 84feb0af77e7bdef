// A peer without a quorum that is told of releases: rueidislock on one Redis. It
// keeps what it waits for in the client-side cache, and tries again when the
// server says that it changed.
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

// newTracker is one client. One key a lock is the cheapest it can do: several
// keys on one server are no quorum.
func newTracker(st *stand) (rueidislock.Locker, error) {
	return rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{st.masters[0].address}},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: leaseTTL,
	})
}

func openTracking(_ context.Context, st *stand, n int) (crew, error) {
	locks, err := newTracker(st)
	if err != nil {
		return crew{}, err
	}
	c := crew{close: locks.Close}
	for i := range n {
		c.workers = append(c.workers, &trackingWorker{take: locks.TryWithContext, keys: workerKeys("tracking", i)})
	}
	return c, nil
}

// trackingWorker takes a lock in the way it is given.
type trackingWorker struct {
	take func(context.Context, string) (context.Context, context.CancelFunc, error)
	keys []string
	next int

	key    *baton // where all callers want the same
	number int
}

func (w *trackingWorker) turn(n *notes) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	stage, began := n.now()
	held, release, err := w.take(context.Background(), key)
	if err != nil {
		return fmt.Errorf("rueidislock: %w", err)
	}
	n.acquired(stage, began)
	w.key.taken(n, w.number)
	if held.Err() != nil {
		return errors.Join(errNotReleased, held.Err())
	}
	release()
	n.released()
	return nil
}
