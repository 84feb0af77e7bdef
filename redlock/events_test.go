package redlock

// events_test.go: the events of locks within a daemon.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"
)

// journal is what a listener has received.
type journal struct {
	mu  sync.Mutex
	all []Event
	end func()
}

func listen(t *testing.T, l *Locker) *journal {
	t.Helper()
	j := &journal{}
	j.end = l.Listen(0, func(e Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.all = append(j.all, e)
	})
	t.Cleanup(j.end)
	return j
}

// of are the events of a key, in order: "acquired 17".
func (j *journal) of(key Key) (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.all {
		if e.Key == key {
			lines = append(lines, fmt.Sprint(eventNames[e.Kind], " ", e.Fence))
		}
	}
	return lines
}

// wants waits for the events of a key and checks that there are no others
// before or between.
func (j *journal) wants(t *testing.T, key Key, lines ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d events of %q are told", len(lines), key), func() bool { return len(j.of(key)) >= len(lines) })
	j.has(t, key, lines...)
}

func (j *journal) has(t *testing.T, key Key, lines ...string) {
	t.Helper()
	if got := j.of(key); fmt.Sprint(got) != fmt.Sprint(lines) {
		t.Errorf("told of %q: %q, want %q", key, got, lines)
	}
}

func tale(kind EventKind, fence Fence) string { return fmt.Sprint(eventNames[kind], " ", fence) }

func TestEvents_ReportAGrantAndItsRelease(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	const key = "line\nbreak \x00 and space"
	before := time.Now()
	g := d.take(LockRequest{Key: key})
	d.take(LockRequest{Key: "other"})
	if released, err := d.unlock(UnlockRequest{Key: key, Token: g.Token}); !released || err != nil {
		t.Fatalf("released %v, %v", released, err)
	}
	if released, _ := d.unlock(UnlockRequest{Key: key, Token: g.Token}); released {
		t.Fatal("released twice")
	}
	again := d.take(LockRequest{Key: key})
	j.wants(t, key, tale(EventAcquired, g.Fence), tale(EventReleased, g.Fence), tale(EventAcquired, again.Fence))
	j.mu.Lock()
	defer j.mu.Unlock()
	sum := sha256.Sum256([]byte(g.Token))
	first := j.all[0]
	if first.TokenHash != hex.EncodeToString(sum[:4]) || first.At.Before(before.Add(-time.Minute)) || first.At.After(time.Now().Add(time.Minute)) {
		t.Errorf("%+v of token %s", first, g.Token)
	}
	if want := fmt.Sprintf("acquired %d %d %x", g.Fence, first.At.UnixMilli(), sum[:4]); first.Text() != want {
		t.Errorf("text %q, want %q", first.Text(), want)
	}
	if text := (Event{Kind: EventForced, At: time.UnixMilli(5)}).Text(); text != "forced 0 5 -" {
		t.Errorf("text %q", text)
	}
}

func TestEvents_ANewHolderIsReportedBehindTheOneBefore(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	const callers, rounds = 4, 25
	var all sync.WaitGroup
	for range callers {
		all.Add(1)
		go func() {
			defer all.Done()
			for range rounds {
				answers := make(chan Grant, 1)
				d.Wait(nil, LockRequest{Key: "k", TTL: 20 * time.Second, Wait: time.Minute}, func(g Grant, err error) {
					if err != nil {
						t.Error(err)
					}
					answers <- g
				})
				g := <-answers
				released := make(chan bool, 1)
				d.Unlock(nil, UnlockRequest{Key: "k", Token: g.Token}, func(was bool, _ error) { released <- was })
				<-released
			}
		}()
	}
	all.Wait()
	eventually(t, "all events are told", func() bool { return len(j.of("k")) >= 2*callers*rounds })
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, e := range j.all {
		want := EventAcquired
		if i%2 == 1 {
			want = EventReleased
		}
		if e.Kind != want || i%2 == 1 && e.Fence != j.all[i-1].Fence {
			t.Fatalf("event %d is %s, behind %s", i, e.Text(), j.all[max(i, 1)-1].Text())
		}
	}
}

func TestEvents_ALeaseThatRunsOutIsReportedOnce(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	short := d.take(LockRequest{Key: "k", TTL: 5 * time.Second})
	longer := d.take(LockRequest{Key: "longer", TTL: 10 * time.Second})
	if _, err := d.extend(ExtendRequest{Key: "longer", Token: longer.Token, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	s := d.events.ofDB(0)
	age := func(by time.Duration) { // as if that much time had passed
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, g := range s.ends.queue {
			g.due -= by
		}
		s.ends.timerAt = 0
		s.setExpiryTimerLocked(d.engine.Clock.Now())
	}
	age(30 * time.Second) // beyond the lease and the master timeout of either grant
	j.wants(t, "k", tale(EventAcquired, short.Fence), tale(EventExpired, short.Fence))
	j.has(t, "longer", tale(EventAcquired, longer.Fence))
	age(time.Minute)
	j.wants(t, "longer", tale(EventAcquired, longer.Fence), tale(EventExpired, longer.Fence))
	j.has(t, "k", tale(EventAcquired, short.Fence), tale(EventExpired, short.Fence))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ends.queue)+len(s.ends.byID) > 0 {
		t.Errorf("%d and %d grants are still watched", len(s.ends.queue), len(s.ends.byID))
	}
}

func TestEvents_ALostLockIsNotAlsoReleased(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	_, g, lost := d.holdFor("k", 3*time.Second, time.Second)
	if reason := <-lost; reason == nil {
		t.Fatal("released, want lost")
	}
	d.quiet()
	other := d.take(LockRequest{Key: "k"}) // what was left has been given back
	j.wants(t, "k", tale(EventAcquired, g.Fence), tale(EventLost, g.Fence), tale(EventAcquired, other.Fence))
}

func TestEvents_AForcedReleaseEndsEveryHolder(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	one := d.take(LockRequest{Key: "k", Mode: Shared, TTL: 20 * time.Second})
	two := d.take(LockRequest{Key: "k", Mode: Shared, TTL: 20 * time.Second})
	j.wants(t, "k", tale(EventAcquired, one.Fence), tale(EventAcquired, two.Fence))
	d.events.emit(EventForced, lockID{0, "k", ""}, 0, 0)
	d.events.emit(EventForced, lockID{0, "nobody's", ""}, 0, 0)
	d.events.emit(EventLost, lockID{0, "k", one.Token}, one.Fence, 0)
	d.events.emit(EventReleased, lockID{0, "k", two.Token}, two.Fence, 0)
	j.wants(t, "nobody's", tale(EventForced, 0))
	ends := map[string]bool{}
	eventually(t, "both ends are told", func() bool { return len(j.of("k")) >= 4 })
	for _, line := range j.of("k")[2:] {
		ends[line] = true
	}
	if len(j.of("k")) != 4 || !ends[tale(EventForced, one.Fence)] || !ends[tale(EventForced, two.Fence)] {
		t.Errorf("told %q", j.of("k"))
	}
}

// An operation of a busy daemon must not pay for listeners that are not there.
func TestEvents_CostNothingWithoutListeners(t *testing.T) {
	d := newPureDaemon(t, Options{})
	id := lockID{0, "k", "a-token-of-no-meaning"}
	tells := func() {
		d.events.emit(EventAcquired, id, 1, time.Second)
		d.events.extended(id, time.Second)
		d.events.emit(EventReleased, id, 1, 0)
	}
	if n := testing.AllocsPerRun(100, tells); n != 0 || d.events.byDB != nil {
		t.Errorf("%v allocations an operation, stages %v", n, d.events.byDB)
	}
	j := listen(t, d.Locker)
	g := d.take(LockRequest{Key: "k"})
	j.wants(t, "k", tale(EventAcquired, g.Fence))
	j.end()
	j.end() // a second time changes nothing
	if n := testing.AllocsPerRun(100, tells); n != 0 || d.engine.Pool.HasListeners() {
		t.Errorf("%v allocations an operation behind the last listener", n)
	}
	s := d.events.ofDB(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ends.queue) > 0 || s.senders != nil {
		t.Error("grants are watched with nobody listening")
	}
}

func TestEvents_AListenerThatIsTooSlowForThemLosesTheRest(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	gate := make(chan struct{})
	end := d.Listen(0, func(Event) { <-gate })
	defer end()
	id := lockID{0, "k", "a-token-of-no-meaning"}
	told := int64(0)
	for ; d.EventCounts().Dropped < 100; told++ {
		d.events.emit(EventReleased, id, 1, 0)
	}
	s := d.events.ofDB(0)
	s.mu.Lock()
	waiting := len(s.queue)
	s.mu.Unlock()
	if waiting > maxUndelivered {
		t.Errorf("%d events wait, allowed are %d", waiting, maxUndelivered)
	}
	close(gate)
	eventually(t, "all others are told", func() bool {
		n := d.EventCounts()
		return n.Delivered+n.Dropped == told && d.events.busy() == 0
	})
}
