// What do the lanes run on, and what makes them wait?
package pool

import (
	"context"
	"time"

	"github.com/panjf2000/ants/v2"
)

// Tasks runs what the lanes have to do. The default is a bounded pool of
// goroutines; a simulation runs one task at a time, in an order of its choosing.
type Tasks interface {
	// Submit starts a task and does not wait for it.
	Submit(task func()) error
	// Await waits inside of a task: true when ready is closed, false when ctx has ended.
	Await(ctx context.Context, ready <-chan struct{}) bool
	// Sleep lets time pass for whoever starts a pool.
	Sleep(d time.Duration)
	// Release waits until no task runs any more, at most patience.
	Release(patience time.Duration)
}

// goroutines are the Tasks of the product.
type goroutines struct{ *ants.Pool }

var _ Tasks = goroutines{}

func (goroutines) Sleep(d time.Duration) { time.Sleep(d) }

func (g goroutines) Release(patience time.Duration) { _ = g.ReleaseTimeout(patience) }

func (goroutines) Await(ctx context.Context, ready <-chan struct{}) bool {
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// newGoroutines takes panics to the log. A lane is drained by at most one task
// and dialled by at most one more, its tracker has one, and one may ask what it is
// to be told again; a full pool would mean a leak, so Submit never has to wait.
func newGoroutines(o *Options) (Tasks, error) {
	size := 4 * len(o.Masters) * o.Databases
	tasks, err := ants.NewPool(size, ants.WithNonblocking(true), ants.WithPanicHandler(func(v any) {
		o.Logger.Error("a lane's task panicked; its master was taken out", "panic", v)
	}))
	return goroutines{tasks}, err
}
