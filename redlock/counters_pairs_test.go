package redlock

// counters_pairs_test.go: what does not depend on the machine's speed, so that a
// change for the worse shows without a stopwatch: commands per flush, system
// calls and allocations per pair, bytes per waiter. Whatever else the process
// does only adds to a count, so the least of several runs is what is compared.

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// counterSlack is how much worse than its base a counter may be.
	counterSlack = 1.10
	counterRuns  = 40
	counterPairs = 64
)

// counter is one count, and what it was when it was last checked.
type counter struct {
	name string
	base float64
}

// check fails with the number. What has become better for good should be the new
// base, or the next change may take it away again.
func (c counter) check(t *testing.T, got float64) {
	t.Helper()
	t.Logf("%s: %.2f, base %.2f", c.name, got, c.base)
	if got > c.base*counterSlack {
		t.Errorf("%s: %.2f are %.0f %% more than the base of %.2f, at most 10 %% are allowed", c.name, got, 100*(got/c.base-1), c.base)
	}
}

// counted is what happened so far.
type counted struct{ flushes, seals, commands, mallocs, calls float64 }

func countNow(l *Locker) counted {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c := l.engine.Pool.Counters()
	calls, _ := pureIO()
	return counted{float64(c.Flushes), float64(c.Seals), float64(c.Commands), float64(m.Mallocs), float64(calls)}
}

// least keeps the smallest of each count since before.
func (c *counted) least(before, after counted) {
	keep := func(to *float64, difference float64) {
		if *to == 0 || difference < *to {
			*to = difference
		}
	}
	keep(&c.flushes, after.flushes-before.flushes)
	keep(&c.seals, after.seals-before.seals)
	keep(&c.commands, after.commands-before.commands)
	keep(&c.mallocs, after.mallocs-before.mallocs)
	keep(&c.calls, after.calls-before.calls)
}

// pairsInBatches takes n locks in one batch, and releases them in another: as the
// edge does with what one read from clients brought.
type pairsInBatches struct {
	locker *Locker
	keys   []Key
	grants []Grant
	under  sync.WaitGroup
	failed atomic.Int64
}

func newPairsInBatches(l *Locker, n int) *pairsInBatches {
	p := &pairsInBatches{locker: l, grants: make([]Grant, n)}
	for i := range n {
		p.keys = append(p.keys, Key(fmt.Sprintf("counted-%d", i)))
	}
	return p
}

func (p *pairsInBatches) run() {
	var b Batch
	p.under.Add(len(p.keys))
	for i, key := range p.keys {
		p.locker.Lock(&b, LockRequest{Key: key, TTL: long}, func(g Grant, err error) {
			p.grants[i] = g
			p.done(err == nil)
		})
	}
	b.Send()
	p.settle()
	p.under.Add(len(p.keys))
	for i, key := range p.keys {
		p.locker.Unlock(&b, UnlockRequest{Key: key, Token: p.grants[i].Token}, func(released bool, err error) {
			p.done(released && err == nil)
		})
	}
	b.Send()
	p.settle()
}

func (p *pairsInBatches) done(ok bool) {
	if !ok {
		p.failed.Add(1)
	}
	p.under.Done()
}

// settle waits for all outcomes, and for the answers that were not needed any more.
func (p *pairsInBatches) settle() {
	p.under.Wait()
	for p.locker.engine.Pool.Busy() > 0 {
		runtime.Gosched()
	}
}

func TestCounters_OfAPairAreNotWorseThanTheirBase(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	l := pureBench(t)
	p := newPairsInBatches(l, counterPairs)
	for range 5 { // buffers find their size
		p.run()
	}
	var least counted
	for range counterRuns {
		before := countNow(l)
		p.run()
		least.least(before, countNow(l))
	}
	if failed := p.failed.Load(); failed > 0 {
		t.Fatalf("%d of %d operations failed", failed, 2*counterPairs*(counterRuns+5))
	}
	const masters, pairs = 5, float64(counterPairs)
	counter{"flushes for 64 locks and 64 releases on five masters", 2 * masters}.check(t, least.flushes)
	counter{"seals for 64 locks and 64 releases on five masters", masters}.check(t, least.seals)
	counter{"commands per pair and master", 2}.check(t, least.commands/pairs/masters)
	counter{"allocations per pair", 6.4}.check(t, least.mallocs/pairs)
	if _, told := pureIO(); told {
		// A flush is one write and at most two reads: one that finds nothing
		// yet, and one that finds all. Looking at the count is two reads.
		counter{"reads and writes per pair", (3*2*masters + 2) / pairs}.check(t, least.calls/pairs)
	}
}

func TestCounters_OfAWaiterAreNotWorseThanTheirBase(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector keeps memory of its own")
	}
	const waiters = 5000
	l := pureBench(t)
	held := make(chan Grant, 1) // its one answer
	l.Lock(nil, LockRequest{Key: "counted", TTL: long}, func(g Grant, _ error) { held <- g })
	<-held
	var ended sync.WaitGroup
	wait := func(n int) (leave []func()) {
		for range n {
			ended.Add(1)
			leave = append(leave, l.Wait(nil, LockRequest{Key: "counted", TTL: long, Wait: time.Hour}, func(Grant, error) { ended.Done() }))
		}
		return leave
	}
	first := wait(50) // the line itself, and what it hears from the masters
	// What else the process allocates meanwhile is added to one round or another.
	least := math.Inf(1)
	for range 3 {
		before := bytesInUse()
		began := time.Now()
		leave := wait(waiters)
		least = min(least, float64(bytesInUse()-before)/waiters)
		if waited := time.Since(began); waited > long/4 {
			t.Skipf("%v for %d waiters: the lock may end meanwhile", waited, waiters)
		}
		for _, end := range leave {
			end()
		}
	}
	// A waiter has a ticket although its queue is not FAIR: the queues of several daemons take turns.
	counter{"bytes per waiter", 450}.check(t, least)
	for _, end := range first {
		end()
	}
	ended.Wait()
}

func bytesInUse() uint64 {
	runtime.GC()
	runtime.GC() // the second empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
