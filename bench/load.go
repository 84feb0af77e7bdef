// How is load made, and what is noted about it? Workers run closed loops: each
// asks again when it has been answered, so the number of workers is the
// concurrency. Notes are kept by each worker alone and added up at the end.
package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// worker is one closed loop. turn does one round of it: it acquires, releases
// and notes both. It is called by one goroutine.
type worker interface {
	turn(n *notes) error
}

// notes are what one worker has seen, by stage.
type notes struct {
	stage    *atomic.Int32 // of the whole load
	acquires [stageDone + 1]histogram
	pairs    [stageDone + 1]int64
	handed   [stageDone + 1]int64
}

// now is the stage and the time, to be read before an acquire leaves.
func (n *notes) now() (stage int32, at time.Time) { return n.stage.Load(), time.Now() }

// over reports that nothing counts any more: whoever still waits may give up.
func (n *notes) over() bool { return n.stage.Load() == stageDone }

// acquired notes an acquire under the stage in which it began; if the fault came
// while it was under way, under that of the fault.
func (n *notes) acquired(stage int32, began time.Time) {
	took := time.Since(began)
	if now := n.stage.Load(); stage == stageSteady && (now == stageShock || now == stageAfter) {
		stage = stageShock
	}
	n.acquires[stage].add(took)
}

// released notes that a pair is complete, under the stage in which it became so.
func (n *notes) released() { n.pairs[n.stage.Load()]++ }

// baton is one lock that many callers want: who had it last?
type baton struct{ last atomic.Int64 }

// taken notes a grant that went to another caller than the one before; a caller
// that takes again what it has just given back has handed nothing over. The
// lock is held meanwhile, so callers do not race here. A nil baton is nobody's.
func (b *baton) taken(n *notes, caller int) {
	if b != nil && b.last.Swap(int64(caller)+1) != int64(caller)+1 {
		n.handed[n.stage.Load()]++
	}
}

// load is a set of workers at work.
type load struct {
	stage   atomic.Int32
	ended   atomic.Bool
	notes   []*notes
	workers sync.WaitGroup

	mu     sync.Mutex
	failed int
	first  error
}

// startLoad lets the workers begin in stageWarm.
func startLoad(workers []worker) *load {
	l := &load{}
	for _, w := range workers {
		n := &notes{stage: &l.stage}
		l.notes = append(l.notes, n)
		l.workers.Go(func() { l.loop(w, n) })
	}
	return l
}

// loop ends with the load. A failure is counted and the worker goes on: what a
// failure means depends on the scenario.
func (l *load) loop(w worker, n *notes) {
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

// stop waits for the turns under way and reports what went wrong since the start.
func (l *load) stop() error {
	l.ended.Store(true)
	l.workers.Wait()
	if l.failed > 0 {
		return fmt.Errorf("%d turns failed, the first with: %w", l.failed, l.first)
	}
	return nil
}

// handovers of a stage; only after stop.
func (l *load) handovers(stage int) (total int64) {
	for _, n := range l.notes {
		total += n.handed[stage]
	}
	return total
}

// sum adds up a stage; only after stop.
func (l *load) sum(stage int) (pairs int64, acquires *histogram) {
	acquires = &histogram{}
	for _, n := range l.notes {
		pairs += n.pairs[stage]
		acquires.merge(&n.acquires[stage])
	}
	return pairs, acquires
}
