package events

// events_test.go: events within a daemon, without locks.

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// granted is a lease, as its events have it.
type granted struct {
	engine.LeaseID
	Fence engine.Fence
}

// daemon is the Events of a daemon on three embedded masters.
type daemon struct {
	*Events
	fence engine.Fence
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	p, err := pool.New(pool.Options{Embedded: 3, MasterTimeout: time.Minute, Late: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	e, texts, err := engine.New(p, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	p.Start(texts...)
	return &daemon{Events: New(e)}
}

// grant reports a grant of the next fence.
func (d *daemon) grant(key engine.Key, lasts time.Duration) granted {
	d.fence++
	g := granted{engine.LeaseID{Key: key, Token: engine.Token(fmt.Sprint("token-", d.fence))}, d.fence}
	d.Emit(Acquired, g.LeaseID, g.Fence, lasts)
	return g
}

// journal is what a listener has received.
type journal struct {
	mu  sync.Mutex
	all []Event
	end func()
}

func listen(t *testing.T, d *daemon) *journal {
	t.Helper()
	j := &journal{}
	j.end = d.Listen(0, func(e Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.all = append(j.all, e)
	})
	t.Cleanup(j.end)
	return j
}

// of are the events of a key, in order: "acquired 17".
func (j *journal) of(key engine.Key) (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.all {
		if e.Key == key {
			lines = append(lines, tale(e.Kind, e.Fence))
		}
	}
	return lines
}

// wants waits for the events of a key and checks that there are no others
// before or between.
func (j *journal) wants(t *testing.T, key engine.Key, lines ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d events of %q are reported", len(lines), key), func() bool { return len(j.of(key)) >= len(lines) })
	j.has(t, key, lines...)
}

func (j *journal) has(t *testing.T, key engine.Key, lines ...string) {
	t.Helper()
	if got := j.of(key); fmt.Sprint(got) != fmt.Sprint(lines) {
		t.Errorf("events of %q: %q, want %q", key, got, lines)
	}
}

func tale(kind Kind, fence engine.Fence) string { return fmt.Sprint(names[kind], " ", fence) }

// eventually waits until it is true, for a minute.
func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !true(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("within a minute it did not come about that %s", what)
		}
	}
}

func TestEvents_ALeaseThatRunsOutIsReportedOnce(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	j := listen(t, d)
	short, longer := d.grant("k", 5*time.Second), d.grant("longer", 10*time.Second)
	d.Emit(Extended, longer.LeaseID, longer.Fence, time.Minute)
	s := d.ofDB(0)
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
	j.wants(t, "k", tale(Acquired, short.Fence), tale(Expired, short.Fence))
	j.has(t, "longer", tale(Acquired, longer.Fence))
	age(time.Minute)
	j.wants(t, "longer", tale(Acquired, longer.Fence), tale(Expired, longer.Fence))
	j.has(t, "k", tale(Acquired, short.Fence), tale(Expired, short.Fence))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ends.queue)+len(s.ends.byID) > 0 {
		t.Errorf("%d and %d grants are still watched", len(s.ends.queue), len(s.ends.byID))
	}
}

func TestEvents_AForcedReleaseEndsEveryHolder(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	j := listen(t, d)
	one := d.grant("k", 20*time.Second)
	two := d.grant("k", 20*time.Second)
	j.wants(t, "k", tale(Acquired, one.Fence), tale(Acquired, two.Fence))
	d.Emit(Forced, engine.LeaseID{Key: "k"}, 0, 0)
	d.Emit(Forced, engine.LeaseID{Key: "nobody's"}, 0, 0)
	d.Emit(Lost, one.LeaseID, one.Fence, 0)
	d.Emit(Released, two.LeaseID, two.Fence, 0)
	j.wants(t, "nobody's", tale(Forced, 0))
	ends := map[string]bool{}
	eventually(t, "both ends are told", func() bool { return len(j.of("k")) >= 4 })
	for _, line := range j.of("k")[2:] {
		ends[line] = true
	}
	if len(j.of("k")) != 4 || !ends[tale(Forced, one.Fence)] || !ends[tale(Forced, two.Fence)] {
		t.Errorf("told %q", j.of("k"))
	}
}

// An operation of a busy daemon must not pay for listeners that are not there.
func TestEvents_CostNothingWithoutListeners(t *testing.T) {
	d := newDaemon(t)
	id := engine.LeaseID{Key: "k", Token: "a-token-of-no-meaning"}
	tells := func() {
		d.Emit(Acquired, id, 1, time.Second)
		d.Emit(Extended, id, 0, time.Second)
		d.Emit(Released, id, 1, 0)
	}
	if n := testing.AllocsPerRun(100, tells); n != 0 || d.byDB != nil {
		t.Errorf("%v allocations an operation, stages %v", n, d.byDB)
	}
	j := listen(t, d)
	g := d.grant("k", time.Minute)
	j.wants(t, "k", tale(Acquired, g.Fence))
	j.end()
	j.end() // a second time changes nothing
	if n := testing.AllocsPerRun(100, tells); n != 0 || d.engine.Pool.HasListeners() {
		t.Errorf("%v allocations an operation behind the last listener", n)
	}
	s := d.ofDB(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ends.queue) > 0 || s.senders != nil {
		t.Error("grants are watched with nobody listening")
	}
}

func TestEvents_AListenerThatIsTooSlowForThemLosesTheRest(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	gate := make(chan struct{})
	end := d.Listen(0, func(Event) { <-gate })
	defer end()
	id := engine.LeaseID{Key: "k", Token: "a-token-of-no-meaning"}
	told := int64(0)
	for ; d.EventCounts().Dropped < 100; told++ {
		d.Emit(Released, id, 1, 0)
	}
	s := d.ofDB(0)
	s.mu.Lock()
	waiting := len(s.queue)
	s.mu.Unlock()
	if waiting > maxUndelivered {
		t.Errorf("%d events wait, allowed are %d", waiting, maxUndelivered)
	}
	close(gate)
	eventually(t, "all others are told", func() bool {
		n := d.EventCounts()
		return n.Delivered+n.Dropped == told && d.Busy() == 0
	})
}
