package lease

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// stoppedClock is moved by hand alone.
type stoppedClock struct {
	pool.Clock
	now atomic.Int64
}

func (c *stoppedClock) Now() time.Duration { return time.Duration(c.now.Load()) }

// A release that comes after the end of a short lease is counted, and logged once a minute. One that
// comes in time, and one of a lease of a second and more, is neither.
func TestShortLeases_AreFoundWhenTheyWereOverBeforeTheirRelease(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	var log strings.Builder
	short := WatchShortLeases(d.Leases, slog.New(slog.NewTextHandler(&log, nil)))
	clock := &stoppedClock{Clock: d.engine.Clock}
	clock.now.Store(int64(time.Hour))
	d.engine.Clock, d.engine.Recent = clock, clock.Now

	released := func(key engine.Key, ttl, after time.Duration) {
		t.Helper()
		g := d.take(LockRequest{Key: key, TTL: ttl, Requester: &Requester{Addr: "10.0.0.7:1234"}})
		clock.now.Add(int64(after))
		if _, err := d.unlock(key, g.Token); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		key        engine.Key
		ttl, after time.Duration
		over       int64
		lines      int
	}{
		{"in time", 600 * time.Millisecond, 0, 0, 0},
		{"long", 2 * time.Second, 3 * time.Second, 0, 0},
		{"invoices", 600 * time.Millisecond, 5 * time.Second, 1, 1},
		{"again at once", 600 * time.Millisecond, 5 * time.Second, 2, 1},
		{"a minute later", 600 * time.Millisecond, shortLeaseLines, 3, 2},
	} {
		released(c.key, c.ttl, c.after)
		if over, lines := short.Over(), strings.Count(log.String(), "\n"); over != c.over || lines != c.lines {
			t.Errorf("%s: %d short leases and %d lines, want %d and %d:\n%s", c.key, over, lines, c.over, c.lines, log.String())
		}
	}

	// An extension makes a lease long: its program knows what its times are.
	g, extended := d.take(LockRequest{Key: "extended", TTL: 600 * time.Millisecond}), make(chan error, 1)
	d.Extend(nil, ExtendRequest{Key: "extended", Token: g.Token, TTL: time.Minute}, func(_ Grant, err error) { extended <- err })
	if err := <-extended; err != nil {
		t.Fatal(err)
	}
	clock.now.Add(int64(time.Hour))
	if _, err := d.unlock("extended", g.Token); err != nil || short.Over() != 3 {
		t.Errorf("%v, %d short leases after an extended one, want 3", err, short.Over())
	}
	for _, want := range []string{"key=invoices", "client=10.0.0.7:1234", "times are milliseconds"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log.String())
		}
	}
}
