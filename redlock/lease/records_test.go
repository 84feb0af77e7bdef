package lease

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/engine"
)

func pureID(key string) engine.LeaseID {
	return engine.LeaseID{DB: 0, Key: engine.Key(key), Token: "token"}
}

func TestLeases_ALaterEndWinsAndCopiesAddUp(t *testing.T) {
	l := newLeaseRecords(time.Minute)
	l.note(pureID("a"), leaseRecord{until: 10, gone: 20, copies: 0b001}, 0)
	l.note(pureID("a"), leaseRecord{until: 5, gone: 30, copies: 0b100}, 1)
	if got, ok := l.find(pureID("a")); !ok || got != (leaseRecord{until: 10, gone: 30, copies: 0b101, number: 1}) {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, other := range []engine.LeaseID{{DB: 1, Key: "a", Token: "token"}, {DB: 0, Key: "b", Token: "token"}, {DB: 0, Key: "a", Token: "other"}} {
		if got, ok := l.find(other); ok {
			t.Errorf("%+v is %+v", other, got)
		}
	}
}

func TestLeases_WhatIsDroppedIsGoneFromBothGenerations(t *testing.T) {
	l := newLeaseRecords(time.Minute)
	l.note(pureID("a"), leaseRecord{until: 10}, 0)
	l.note(pureID("b"), leaseRecord{until: 1}, l.period+1) // a is old now
	if got, ok := l.release(pureID("a"), 0); !ok || got.until != 10 {
		t.Errorf("dropped %+v, %v", got, ok)
	}
	if _, ok := l.release(pureID("a"), 0); ok {
		t.Error("dropped twice")
	}
	if _, ok := l.find(pureID("a")); ok {
		t.Error("found after it was dropped")
	}
}

func TestLeases_AreKeptForAWholePeriodAndForgottenAfterTwo(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	l := newLeaseRecords(time.Minute)
	noted, now := map[string]time.Duration{}, time.Duration(0)
	for i := range 5000 {
		now += time.Duration(r.Int64N(int64(time.Second)))
		key := "k" + string(rune(i))
		l.note(pureID(key), leaseRecord{until: now + time.Minute}, now)
		noted[key] = now
	}
	for key, at := range noted {
		_, ok := l.find(pureID(key))
		if age := now - at; age <= l.period && !ok {
			t.Errorf("forgotten after %v of %v", age, l.period)
		} else if age > 2*l.period+2*time.Second && ok {
			t.Errorf("known after %v, twice the period is %v", age, 2*l.period)
		}
	}
	if n := len(l.current) + len(l.previous); n > 400 {
		t.Errorf("%d leases are kept, the last two periods had some 260", n)
	}
}

func TestLeases_ARepeatMovesALeaseIntoTheCurrentGeneration(t *testing.T) {
	l := newLeaseRecords(time.Minute)
	l.note(pureID("a"), leaseRecord{until: 10}, 0)
	l.note(pureID("a"), leaseRecord{until: 20}, l.period+1)
	l.note(pureID("b"), leaseRecord{}, 2*(l.period+1))
	if got, ok := l.find(pureID("a")); !ok || got.until != 20 {
		t.Errorf("%+v, %v, want the repeat to be remembered", got, ok)
	}
}

func TestTokenQueue_AnAcquireHoldsBackWhatFollowsUntilItIsOver(t *testing.T) {
	var list perTokenQueue
	var order []string
	id := pureID("a")
	say := func(what string, holds bool) queuedOperation {
		return queuedOperation{holds: holds, run: func(b *engine.Batch) {
			if b != nil {
				what += " in a batch"
			}
			order = append(order, what)
		}}
	}
	var batch engine.Batch
	list.enter(id, &batch, say("release", false))
	list.enter(id, &batch, say("acquire", true))
	list.enter(id, &batch, say("extend", false))
	list.enter(id, &batch, say("release", false))
	list.enter(id, &batch, say("again", true))
	list.enter(id, &batch, say("last", false))
	list.enter(pureID("b"), &batch, say("other", false))
	if list.idle() {
		t.Error("idle with an acquire in flight")
	}
	want := "release in a batch,acquire in a batch,other in a batch"
	if got := strings.Join(order, ","); got != want {
		t.Errorf("at once: %s, want %s", got, want)
	}
	list.leave(id)
	// What was deferred must not touch a batch that has left long ago.
	if got := strings.Join(order, ","); got != want+",extend,release,again" {
		t.Errorf("after the acquire: %s", got)
	}
	list.leave(id)
	if got := strings.Join(order, ","); got != want+",extend,release,again,last" || !list.idle() {
		t.Errorf("in the end: %s, idle %v", got, list.idle())
	}
}

func TestTokenQueue_AcquiresOfOneTokenAreSerialHoweverManyThereAre(t *testing.T) {
	var list perTokenQueue
	var mu sync.Mutex
	var wg sync.WaitGroup
	running, done := 0, 0
	id := pureID("a")
	const callers = 200
	for range callers {
		wg.Add(1)
		go list.enter(id, nil, queuedOperation{holds: true, run: func(*engine.Batch) {
			mu.Lock()
			running++
			if running > 1 {
				t.Errorf("%d acquires of one token at once", running)
			}
			mu.Unlock()
			go func() {
				defer wg.Done()
				mu.Lock()
				running--
				done++
				mu.Unlock()
				list.leave(id)
			}()
		}})
	}
	wg.Wait()
	if done != callers || !list.idle() {
		t.Errorf("%d of %d ran, idle %v", done, callers, list.idle())
	}
}

func TestLeases_CountWhatRunsAndHowLongItWasHeld(t *testing.T) {
	const s = time.Second
	l := newLeaseRecords(time.Minute)
	grant := func(key string, at, ttl time.Duration) {
		l.note(pureID(key), leaseRecord{until: at + ttl, granted: at}, at)
	}
	grant("released", 1*s, 30*s)
	grant("lapsed", 1*s, 2*s)
	grant("again", 1*s, 1*s)
	grant("extended", 1*s, 5*s)
	of := l.findOrAdd(pureID("extended"), 2*s)
	l.prolong(pureID("extended"), leaseRecord{until: 60 * s}, of.number, 3*s)
	others := l.findOrAdd(pureID("others"), 2*s)
	l.prolong(pureID("others"), leaseRecord{until: 60 * s}, others.number, 3*s)
	grant("again", 10*s, 5*s) // its first lease has lapsed
	grant("twice", 1*s, 40*s)
	grant("twice", 8*s, 40*s) // its first lease runs on
	if n := l.held(11 * s); n != 4 {
		t.Errorf("%d leases run, want 4", n)
	}
	for key, at := range map[string]time.Duration{"released": 11 * s, "lapsed": 11 * s, "again": 12 * s, "extended": 31 * s, "twice": 41 * s, "others": 31 * s, "unknown": 31 * s} {
		l.release(pureID(key), at)
	}
	want := HoldTimes{Sum: 10*s + 2*s + 30*s + 40*s}
	want.Counts[7], want.Counts[6], want.Counts[8] = 1, 1, 2
	if got := l.heldFor.load(); got != want {
		t.Errorf("held %+v, want %+v", got, want)
	}
	if n := l.held(11 * s); n != 0 {
		t.Errorf("%d leases run after all were released", n)
	}
}

func TestLeases_EstimateHowManyRunFromSome(t *testing.T) {
	l := newLeaseRecords(time.Minute)
	for i := range 3 * maxCounted {
		l.note(pureID(strconv.Itoa(i)), leaseRecord{until: time.Minute, granted: 1}, 1)
	}
	if n := l.held(time.Second); n != 3*maxCounted {
		t.Errorf("%d of %d leases run", n, 3*maxCounted)
	}
	if n := l.held(time.Hour); n != 0 {
		t.Errorf("%d leases run after their end", n)
	}
}

func TestHoldTimes_EveryDurationIsBelowTheBoundOfItsBucket(t *testing.T) {
	for _, held := range []time.Duration{-1, 0, time.Millisecond - 1, time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond, 5 * time.Second, time.Hour, 18 * time.Hour, 1000 * time.Hour} {
		var h holdTimes
		h.note(held)
		counts := h.load().Counts
		i := slices.Index(counts[:], 1)
		if above := i < holdBuckets-1 && held >= (HoldTimes{}).Bound(i); above || i > 0 && held < (HoldTimes{}).Bound(i-1) {
			t.Errorf("%v is in bucket %d, which ends at %v", held, i, (HoldTimes{}).Bound(i))
		}
	}
}

// A part of a joint lock may have been released before the lock is complete.
func TestRecords_AnUpdateBringsNoReleasedLeaseBack(t *testing.T) {
	l := newLeaseRecords(time.Minute)
	l.note(pureID("a"), leaseRecord{until: time.Second, fence: 1}, 0)
	rise := func(known *leaseRecord) { known.fence++ }
	if known, ok := l.update(pureID("a"), rise); !ok || known.fence != 2 {
		t.Errorf("%+v, %v", known, ok)
	}
	l.release(pureID("a"), 0)
	if known, ok := l.update(pureID("a"), rise); ok {
		t.Errorf("%+v is back", known)
	}
	if known, ok := l.find(pureID("a")); ok {
		t.Errorf("%+v is known", known)
	}
}
