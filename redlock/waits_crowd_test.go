package redlock

// waits_crowd_test.go: many waiters cost the masters what one costs.

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// The figure logged is a hand-over as a client in this process sees it: from its
// release to the next one's grant.
func TestWait_AThousandWaitersAreServedInOrderForThePriceOfOne(t *testing.T) {
	const n = 1000
	c := newCluster(t, 5, long)
	d := c.daemon()
	held := d.take("k", long)
	out := make(chan waited, n) // every answer
	for i := range n {
		d.Wait(nil, LockRequest{Key: "k", TTL: long, Wait: 10 * time.Minute}, func(g Grant, err error) {
			out <- waited{fmt.Sprint(i), g, err}
		})
	}
	eventually(t, "the first has asked", func() bool { return d.Counters().Refused > 0 })
	before := d.engine.Pool.Counters()
	var took []time.Duration
	for i := range n {
		began := time.Now()
		d.Unlock(nil, UnlockRequest{Key: "k", Token: held.Token}, func(bool, error) {})
		w := <-out
		took = append(took, time.Since(began))
		if w.err != nil || w.name != fmt.Sprint(i) {
			t.Fatalf("hand-over %d went to %s, %v", i, w.name, w.err)
		}
		held = w.grant
	}
	after := d.engine.Pool.Counters()
	if flushes := float64(after.Flushes-before.Flushes) / n / 5; flushes > 3 {
		t.Errorf("%.2f flushes per hand-over on each master, want at most 3", flushes)
	}
	if commands := float64(after.Commands-before.Commands) / n / 5; commands > 2.5 {
		t.Errorf("%.2f commands per hand-over on each master, want a release and an acquire", commands)
	}
	slices.Sort(took)
	t.Logf("hand-over: median %v, p99 %v; %.2f flushes on each master",
		took[n/2], took[n*99/100], float64(after.Flushes-before.Flushes)/n/5)
}

// What waits is an entry and a timer: no goroutine, and little memory.
func TestWait_AHundredThousandWaitersCostNoGoroutines(t *testing.T) {
	keys, each := 1000, 10
	if longRun() {
		keys = 10_000
	}
	c := newCluster(t, 3, long)
	d := c.daemon()
	for k := range keys {
		d.take(key(k), long)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	var leave []func()
	for k := range keys {
		for range each {
			leave = append(leave, d.Wait(nil, LockRequest{Key: key(k), TTL: long, Wait: 10 * time.Minute}, func(Grant, error) {}))
		}
	}
	eventually(t, "the first of every line has asked", func() bool { return d.Counters().Refused >= int64(keys) })
	eventually(t, "nothing is on its way", func() bool { return d.engine.Pool.Busy() == 0 })
	n := keys * each
	if bytes := (int64(heap()) - int64(before)) / int64(n); bytes > 1024 {
		t.Errorf("%d bytes for each of %d waiters, want at most 1024", bytes, n)
	} else {
		t.Logf("%d bytes for each of %d waiters on %d keys", bytes, n, keys)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 60 {
		t.Errorf("%d more goroutines for %d waiters", more, n)
	}
	for _, one := range leave {
		one()
	}
	if d.Waiters() != 0 {
		t.Errorf("%d waiters left", d.Waiters())
	}
}
