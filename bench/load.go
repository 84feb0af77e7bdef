// The load. Each worker is a closed loop that sends its next request after the last
// reply, so the number of workers is the concurrency. Each worker records for itself; the
// sum is taken at the end.

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// worker is one closed loop. turn is one round: it acquires, releases and records both. One
// goroutine calls it.
type worker interface {
	turn(n *recorder) error
}

// recorder has the counts of one worker, by stage.
type recorder struct {
	stage     *atomic.Int32 // of the whole load
	acquires  [stageDone + 1]histogram
	pairs     [stageDone + 1]int64
	handovers [stageDone + 1]int64
}

// now returns the stage and the time. Workers call it before they send an acquire.
func (r *recorder) now() (stage int32, at time.Time) { return r.stage.Load(), time.Now() }

// stopped reports that nothing counts any more. A worker that still waits may then stop.
func (r *recorder) stopped() bool { return r.stage.Load() == stageDone }

// acquired records an acquire in the stage in which it began. An acquire during which the
// fault began counts in the stage of the fault.
func (r *recorder) acquired(stage int32, began time.Time) {
	took := time.Since(began)
	if now := r.stage.Load(); stage == stageSteady && (now == stageFault || now == stageAfter) {
		stage = stageFault
	}
	r.acquires[stage].add(took)
}

// released records a complete pair in the present stage.
func (r *recorder) released() { r.pairs[r.stage.Load()]++ }

// handoverCounter counts the grants of one contended lock that go to another caller.
type handoverCounter struct{ last atomic.Int64 }

// granted records a grant to a caller other than the previous one. A caller that acquires
// the lock again right after its release is no hand-over. The caller holds the lock here,
// so callers do not race. A nil handoverCounter records nothing.
func (h *handoverCounter) granted(n *recorder, caller int) {
	if h != nil && h.last.Swap(int64(caller)+1) != int64(caller)+1 {
		n.handovers[n.stage.Load()]++
	}
}

// load is a set of running workers.
type load struct {
	stage     atomic.Int32
	ended     atomic.Bool
	recorders []*recorder
	workers   sync.WaitGroup

	mu     sync.Mutex
	failed int
	first  error
}

// startLoad starts the workers in stageWarm.
func startLoad(workers []worker) *load {
	l := &load{}
	for _, w := range workers {
		n := &recorder{stage: &l.stage}
		l.recorders = append(l.recorders, n)
		l.workers.Go(func() { l.loop(w, n) })
	}
	return l
}

// loop ends with the load. It counts a failure and continues: the meaning of a failure
// depends on the scenario.
func (l *load) loop(w worker, n *recorder) {
	for !l.ended.Load() {
		if err := w.turn(n); err != nil {
			l.fail(err)
		}
	}
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed++; l.first == nil {
		l.first = err
	}
}

// enter begins a stage.
func (l *load) enter(stage int32) { l.stage.Store(stage) }

// stop waits for the turns in progress, and returns the failures since the start.
func (l *load) stop() error {
	l.ended.Store(true)
	l.workers.Wait()
	if l.failed > 0 {
		return fmt.Errorf("%d turns failed, the first with: %w", l.failed, l.first)
	}
	return nil
}

// handovers returns the hand-overs of a stage. Call it only after stop.
func (l *load) handovers(stage int) (total int64) {
	for _, n := range l.recorders {
		total += n.handovers[stage]
	}
	return total
}

// sum adds up a stage. Call it only after stop.
func (l *load) sum(stage int) (pairs int64, acquires *histogram) {
	acquires = &histogram{}
	for _, n := range l.recorders {
		pairs += n.pairs[stage]
		acquires.merge(&n.acquires[stage])
	}
	return pairs, acquires
}
