package lease

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"redlockd/redlock/engine"
)

// Without a master each acquire ends while it starts. Those that waited for one with the same token
// are answered one after the other, in their order, on a stack that does not grow with the queue.
func TestTokenQueue_TakesNoStackForEachWaitingAcquire(t *testing.T) {
	d := newPureDaemon(t)
	r := LockRequest{Key: "k", Token: "token-of-mine", TTL: time.Minute}
	id := engine.LeaseID{Key: r.Key, Token: r.Token}
	d.tokenQueue.enter(id, nil, queuedOperation{holds: true, run: func(*engine.Batch) {}}) // stays in flight
	const n = 500
	deepest, order := 0, []int(nil)
	for i := range n {
		d.Lock(nil, r, func(_ Grant, err error) {
			if unknown := (*engine.NoQuorum)(nil); !errors.As(err, &unknown) {
				t.Errorf("answer %d: %v", i, err)
			}
			var frames [2000]uintptr
			deepest = max(deepest, runtime.Callers(0, frames[:]))
			order = append(order, i)
		})
	}
	d.engine.Pool.Close()
	d.tokenQueue.leave(id)
	if len(order) != n || !slices.IsSorted(order) || deepest > 200 {
		t.Errorf("%d of %d answered, %d frames deep", len(order), n, deepest)
	}
}
