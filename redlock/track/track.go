// This file keeps what clients have seen of keys, until the first report that it changed.

package track

import (
	"sync"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// Seen has what a client has seen of a key.
type Seen struct {
	View lease.View
	// Lease is what is left of the lease that the client was granted, 0 = it was granted none. If
	// the masters show less, that is a change.
	Lease time.Duration
	// Refused: another token held the key.
	Refused bool
	// Undecided: the masters could not decide. The report follows as soon as they can.
	Undecided bool
}

// leaseTolerance is by how much the remaining time of copies may be less than that of the lease
// without being a change: copies are read in whole milliseconds, on the clocks of the masters.
const leaseTolerance = 50 * time.Millisecond

// Same reports whether both show the same holder.
func (s *Seen) Same(o *Seen) bool {
	return s.Refused == o.Refused && s.Undecided == o.Undecided && s.View.Kind == o.View.Kind && s.View.Value == o.View.Value
}

// Tracks are the keys that clients of this daemon have seen.
type Tracks struct {
	engine *engine.Engine
	leases *lease.Leases

	mu      sync.Mutex
	entries map[dbKey]*entry
	closed  bool
}

// dbKey identifies a key.
type dbKey struct {
	db  int
	key engine.Key
}

// New returns the tracked keys of a daemon.
func New(e *engine.Engine, l *lease.Leases) *Tracks { return &Tracks{engine: e, leases: l} }

// track keeps what one client has seen of a key. Tracks.mu guards it.
type track struct {
	seen   Seen
	until  time.Duration // when the lease ends, on the pool's clock
	report func(lost bool)
	views  uint64 // of the entry, before this client had seen the key
}

// still reports whether a quorum shows what was seen.
func (t *track) still(v lease.View, now time.Duration) bool {
	s := &t.seen
	switch {
	case s.Undecided:
		return false
	case s.Refused:
		return !v.Free
	}
	return v.Kind == s.View.Kind && v.Value == s.View.Value && (s.Lease == 0 || v.Left >= t.until-now-leaseTolerance)
}

// Track calls report once, from any goroutine, when the key is no longer as it was seen: it was
// released, has expired or is another's, its lease changed, or lost is true, because the masters
// cannot tell. After stop there is no call, but one may be under way.
func (ts *Tracks) Track(db int, key engine.Key, seen Seen, report func(lost bool)) (stop func()) {
	t := &track{seen: seen, until: ts.engine.Clock.Now() + seen.Lease, report: report}
	ts.mu.Lock()
	if ts.closed {
		ts.mu.Unlock()
		return func() {}
	}
	at := dbKey{db, key}
	e := ts.entries[at]
	if e == nil {
		if ts.entries == nil {
			ts.entries = map[dbKey]*entry{}
		}
		e = &entry{tracks: ts, dbKey: at, master: ts.engine.MasterKey(key), group: ts.engine.Pool.Group(db), members: map[*track]struct{}{}}
		ts.entries[at] = e
		e.watchLocked()
	}
	t.views = e.views
	e.members[t] = struct{}{}
	views := e.joinedLocked()
	ts.mu.Unlock()
	if views {
		e.view()
	}
	return func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		if delete(e.members, t); len(e.members) == 0 {
			e.dropLocked()
		}
	}
}

// DropMoved reports keys that have left the group as lost: their changes are not seen here any more.
func (ts *Tracks) DropMoved() {
	var over []*track
	ts.mu.Lock()
	for _, e := range ts.entries {
		if ts.engine.Ownership.Since(e.key) == 0 {
			for t := range e.members {
				over = append(over, t)
			}
			e.dropLocked()
		}
	}
	ts.mu.Unlock()
	for _, t := range over {
		t.report(true)
	}
}

// Tracked counts the keys that are tracked, each once however many clients track it.
func (ts *Tracks) Tracked() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.entries)
}

// End ends all tracking without a report, with the daemon.
func (ts *Tracks) End() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed = true
	for _, e := range ts.entries {
		e.dropLocked()
	}
}
