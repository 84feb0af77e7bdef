package redlock

// pure_bench_test.go: what a pair of lock and release costs on five real masters.

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/setup"
)

// pureBench is a Locker whose five masters all vote.
func pureBench(t testing.TB) *Locker {
	t.Helper()
	o := pool.Options{MasterTimeout: 5 * time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for i, s := range faulty.StartGroup(t, 5) {
		o.Masters = append(o.Masters, pool.Master{Name: string(rune('a' + i)), Network: "tcp", Address: s.Addr()})
	}
	if err := setup.BootstrapIfBlank(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l, err := New(p, Options{Logger: o.Logger})
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Group(0).Voters(); n != 5 {
		t.Fatalf("%d of 5 masters vote: %v", n, p.Group(0).Statuses())
	}
	return l
}

// purePairs has callers take and release locks, each of a key of its own, until
// n pairs are done; it returns how many were not granted or not released.
func purePairs(l *Locker, callers, n int) (failed int64) {
	var left, bad atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for caller := range callers {
		key := Key("bench-" + strconv.Itoa(caller))
		wg.Go(func() {
			done := make(chan bool, 1) // 1: the answer of the pair under way
			for left.Add(-1) >= 0 {
				purePair(l, key, done)
				if !<-done {
					bad.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return bad.Load()
}

// purePair takes and releases one lock; the release starts where the grant is
// handed over.
func purePair(l *Locker, key Key, done chan<- bool) {
	l.Lock(nil, LockRequest{Key: key, TTL: 30 * time.Second}, func(g Grant, err error) {
		if err != nil {
			done <- false
			return
		}
		l.Unlock(nil, UnlockRequest{Key: key, Token: g.Token}, func(released bool, err error) { done <- released && err == nil })
	})
}

// pureIO counts this process's reads and writes so far; ok is false where the
// system does not tell.
func pureIO() (calls int64, ok bool) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		if string(name) == "syscr" || string(name) == "syscw" {
			n, _ := strconv.ParseInt(string(value), 10, 64)
			calls += n
		}
	}
	return calls, true
}

func TestFlush_HoldsAtLeast25CommandsWith64Callers(t *testing.T) {
	l := pureBench(t)
	purePairs(l, 64, 640)
	before := l.engine.Pool.Counters()
	if failed := purePairs(l, 64, 6400); failed > 0 {
		t.Fatalf("%d of 6400 pairs failed", failed)
	}
	after := l.engine.Pool.Counters()
	commands, flushes := after.Commands-before.Commands, after.Flushes-before.Flushes
	t.Logf("%d commands in %d flushes, %.1f each", commands, flushes, float64(commands)/float64(flushes))
	if commands < 25*flushes {
		t.Errorf("%.1f commands a flush, want at least 25", float64(commands)/float64(flushes))
	}
}

func BenchmarkLocker_Pairs(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(strconv.Itoa(callers)+"-callers", func(b *testing.B) {
			l := pureBench(b)
			purePairs(l, callers, 10*callers)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			flushes := l.engine.Pool.Counters()
			calls, told := pureIO()
			b.ResetTimer()
			failed := purePairs(l, callers, b.N)
			b.StopTimer()
			callsAfter, _ := pureIO()
			flushesAfter := l.engine.Pool.Counters()
			runtime.ReadMemStats(&after)
			if failed > 0 {
				b.Fatalf("%d of %d pairs failed", failed, b.N)
			}
			pairs := float64(b.N)
			b.ReportMetric(pairs/b.Elapsed().Seconds(), "pairs/s")
			b.ReportMetric(float64(flushesAfter.Commands-flushes.Commands)/float64(flushesAfter.Flushes-flushes.Flushes), "commands/flush")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/pairs, "mallocs/pair")
			if told {
				b.ReportMetric(float64(callsAfter-calls)/pairs, "syscalls/pair")
			}
		})
	}
}
