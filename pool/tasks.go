// Tasks run the work of the lanes, and let it wait.

package pool

import (
	"context"
	"log/slog"
	"time"

	"github.com/panjf2000/ants/v2"
)

// Tasks runs the work of the lanes. The default is a bounded pool of
// goroutines; a simulation runs one task at a time, in an order of its choosing.
type Tasks interface {
	// Submit starts a task and does not wait for it.
	Submit(task func()) error
	// Await waits inside of a task: true when ready is closed, false when ctx has ended.
	Await(ctx context.Context, ready <-chan struct{}) bool
	// Sleep lets time pass for the code that starts a pool.
	Sleep(d time.Duration)
	// Release waits until no task runs any more, at most timeout.
	Release(timeout time.Duration)
}

type goroutinePool struct{ *ants.Pool }

var _ Tasks = goroutinePool{}

func (goroutinePool) Sleep(d time.Duration) { time.Sleep(d) }

func (g goroutinePool) Release(timeout time.Duration) { _ = g.ReleaseTimeout(timeout) }

func (goroutinePool) Await(ctx context.Context, ready <-chan struct{}) bool {
	select {
	case <-ready:
	case <-ctx.Done():
	}
	select {
	case <-ready: // also if ctx has ended meanwhile
		return true
	default:
		return false
	}
}

// newGoroutines logs panics of tasks. A lane has one task for each flush that is under way and
// one for the next, and is dialled by at most one more, its tracker has one, and one may repeat
// operations; a full pool would mean a leak, so Submit never has to wait.
func newGoroutines(masters, databases int, logger *slog.Logger) (Tasks, error) {
	size := (maxWindow + 4) * masters * databases
	tasks, err := ants.NewPool(size, ants.WithNonblocking(true), ants.WithPanicHandler(func(v any) {
		logger.Error("task of a lane panicked; its master was disconnected", "err", v)
	}))
	return goroutinePool{tasks}, err
}
