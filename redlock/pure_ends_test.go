package redlock

// pure_ends_test.go: when copies end on embedded masters. All moments are those of the
// masters' clock, so that a slow machine widens the bounds on both sides.

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/events"
	"redlockd/redlock/quorum"
)

// newPunctualDaemon is a daemon on embedded masters whose copies outlast their leases as
// they do by default. The master timeout is wide, so that a busy machine fails nothing.
func newPunctualDaemon(t *testing.T) *pureDaemon { return newPunctualDaemonWith(t, pool.SystemClock()) }

func newPunctualDaemonWith(t *testing.T, c pool.Clock) *pureDaemon {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	p, err := pool.New(pool.Options{Embedded: 5, MasterTimeout: 30 * time.Second, Late: beyondLease, Clock: c, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l, err := New(p, Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return &pureDaemon{l, t}
}

// masterTime is the clock of all embedded masters.
func (d *pureDaemon) masterTime() time.Time { return d.engine.Pool.Embedded().At(0).Time() }

// beyondLease is how much longer than its lease a copy lasts, and
// rounding is what its end is rounded up by at most.
const beyondLease, rounding = 100 * time.Millisecond, (quorum.ExpiryGrain + 2) * time.Millisecond

func TestEnds_ACopyOutlastsItsLeaseExactlyAsLongAsItMayBeLate(t *testing.T) {
	t.Parallel()
	d := newPunctualDaemon(t)
	const ttl = time.Minute
	before := d.masterTime()
	d.take(LockRequest{Key: "k", TTL: ttl})
	d.quiet()
	after := d.masterTime()
	d.onMasters(func(lane int) {
		m := d.engine.Pool.Embedded().At(lane)
		from := m.Time()
		left := m.TTL("k")
		least, most := before.Add(ttl+beyondLease).Sub(m.Time()), after.Add(ttl+beyondLease+rounding).Sub(from)
		if left < least || left > most {
			t.Errorf("master %d keeps the copy for %v, want %v to %v", lane, left, least, most)
		}
	})
}

func TestEnds_AShortLockIsFreeAgainOnceItsCopiesHaveEnded(t *testing.T) {
	t.Parallel()
	d := newPunctualDaemon(t)
	const ttl = 300 * time.Millisecond
	var before time.Time
	eventually(t, "the key is granted", func() bool {
		before = d.masterTime()
		_, err := d.lock(LockRequest{Key: "k", TTL: ttl})
		return err == nil
	})
	d.quiet()
	last := d.masterTime().Add(ttl + beyondLease + rounding) // every copy has ended by then
	eventually(t, "the key is granted again", func() bool {
		asked := d.masterTime()
		_, err := d.lock(LockRequest{Key: "k", TTL: time.Minute})
		if errors.Is(err, ErrHeld) && asked.After(last) {
			t.Errorf("still held %v after its copies had to end", asked.Sub(last))
		}
		return err == nil
	})
	if again := d.masterTime(); again.Before(before.Add(ttl + beyondLease)) {
		t.Errorf("granted again %v after the first request, while its copies last", again.Sub(before))
	}
}

func TestEnds_RunningWorkIsToBeRetriedWhenItsCopiesEnd(t *testing.T) {
	t.Parallel()
	d := newPunctualDaemon(t)
	const timeout = 20 * time.Second
	work := func() Work {
		out := make(chan Work, 1) // its answer
		d.Work(nil, WorkRequest{Key: "w", Timeout: timeout, Max: 3}, func(w Work, err error) {
			if err != nil {
				t.Error(err)
			}
			out <- w
		})
		return <-out
	}
	before := d.masterTime()
	if w := work(); w.State != WorkAcquired {
		t.Fatalf("the first request: %+v", w)
	}
	d.quiet()
	w := work()
	after := d.masterTime()
	least := before.Add(timeout + beyondLease).Sub(after)
	most := timeout + beyondLease + rounding // if the first request was as late as the second
	if w.State != WorkRunning || w.Retry < least || w.Retry > most {
		t.Errorf("the second request: %s, retry in %v, want running and %v to %v", w.State, w.Retry, least, most)
	}
}

func TestEnds_AnExpiryIsReportedWhenTheCopiesHaveEnded(t *testing.T) {
	t.Parallel()
	const ttl = time.Minute
	for name, extended := range map[string]bool{"a grant": false, "an extension": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newStillClock()
			d := newPunctualDaemonWith(t, c)
			j := listen(t, d.Locker)
			g := d.take(LockRequest{Key: "k", TTL: ttl})
			d.quiet()
			if extended {
				c.move(ttl / 2)
				d.quiet()
				if _, err := d.extend(ExtendRequest{Key: "k", Token: g.Token, TTL: ttl}); err != nil {
					t.Fatal(err)
				}
				d.quiet()
			}
			c.move(ttl + beyondLease)
			if _, err := d.lock(LockRequest{Key: "k", TTL: ttl}); !errors.Is(err, ErrHeld) {
				t.Fatalf("%v while its copies last, want that it is held", err)
			}
			j.has(t, "k", tale(events.Acquired, g.Fence))
			c.move(50 * time.Millisecond) // copies have ended, and 0.15 s are over since the lease
			j.wants(t, "k", tale(events.Acquired, g.Fence), tale(events.Expired, g.Fence))
			if _, err := d.lock(LockRequest{Key: "k", TTL: ttl}); err != nil {
				t.Errorf("%v after its expiry was reported", err)
			}
		})
	}
}
