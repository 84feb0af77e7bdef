// entry is one tracked key. It makes every master announce the next change of its copy, as
// a wait queue does, and reads the key behind that: so no change falls between what a client
// has seen and the watch. An announcement is a hint:
//
//   - if a quorum may have changed, the clients receive a report at once;
//   - if fewer have, or the watch of a master was lost, or a lease ends, the key is read again.
//
// A report is never missing because announcements were lost: without a quorum that announces
// changes the key is read again and again, and a read without an answer is a report, too.

package track

import (
	"math/bits"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/lease"
	"redlockd/redlock/quorum"
)

const (
	// settleDelay is how long after the change of a minority's copies the key is read again:
	// most are the last copies of a grant or of an extension, which come together. With each
	// tracked key it may be settleSpread longer, because the loss of a master concerns all.
	settleDelay  = 20 * time.Millisecond
	settleSpread = 20 * time.Microsecond
	// pollUnwatched is how often the key is read without a quorum that announces changes, and
	// pollWatched how often with one, as the bound of what a lost announcement costs.
	pollUnwatched = 500 * time.Millisecond
	pollWatched   = 30 * time.Second
	// watchTimeout is how long the masters have for an answer to the watch.
	watchTimeout = 500 * time.Millisecond
)

type phase uint8

const (
	watching phase = iota // the masters are to announce changes
	viewing               // the key is being read
	armed                 // clients have seen what a quorum holds
)

// entry is guarded by Tracks.mu. It is dropped with its last member.
type entry struct {
	tracks *Tracks
	dbKey
	master string // the key on the masters
	group  *pool.Group

	members map[*track]struct{}
	phase   phase
	views   uint64 // that have begun
	again   bool   // a member has joined since the view began
	dropped bool

	round   uint64
	tracked uint16 // bits: masters that announce the next change
	early   uint16 // bits: announcements before the entry was armed, which may be older than the watch
	changed uint16 // bits: announcements since
	ends    [quorum.MaxMasters]time.Duration
	timer   pool.Timer
}

var _ pool.Watcher = (*entry)(nil)

// watchLocked begins a new watch.
func (e *entry) watchLocked() {
	keys := &e.group.Keys
	if e.round > 0 {
		keys.Unwatch(e.master, e)
	}
	e.phase, e.tracked, e.early, e.changed = watching, 0, 0, 0
	e.ends = [quorum.MaxMasters]time.Duration{}
	e.round++
	e.setTimerLocked(watchTimeout)
	keys.Watch(e.master, e.round, e)
}

func (e *entry) setTimerLocked(delay time.Duration) {
	if e.timer == nil {
		e.timer = e.tracks.engine.Clock.AfterFunc(delay, e.onTimer)
	} else {
		e.timer.Reset(delay)
	}
}

// onTimer reads the key if too few masters have answered to the watch, else it begins anew. One
// that fires too early costs no more than that.
func (e *entry) onTimer() {
	e.tracks.mu.Lock()
	views := !e.dropped && e.phase == watching
	switch {
	case views:
		e.viewLocked()
	case !e.dropped && e.phase == armed:
		e.watchLocked()
	}
	e.tracks.mu.Unlock()
	if views {
		e.view()
	}
}

// joinedLocked takes a new member. If true, the caller must call view.
func (e *entry) joinedLocked() bool {
	switch e.phase {
	case viewing:
		e.again = true
	case armed:
		e.viewLocked()
		return true
	}
	return false
}

func (e *entry) viewLocked() {
	e.phase, e.again = viewing, false
	e.views++
}

// view reads the key. No lock is held: without a master the answer comes at once.
func (e *entry) view() { e.tracks.leases.View(nil, e.db, e.key, e.viewed) }

// viewed compares what a quorum holds with what the members have seen.
func (e *entry) viewed(v lease.View, err error) {
	s := e.tracks
	s.mu.Lock()
	now := s.engine.Clock.Now()
	var over []*track
	for t := range e.members {
		if t.views < e.views && (err == nil && !t.still(v, now) || err != nil && !t.seen.Undecided) {
			over = append(over, t)
			delete(e.members, t)
		}
	}
	again := false
	switch {
	case e.dropped:
	case len(e.members) == 0:
		e.dropLocked()
	case e.again:
		again = true
		e.viewLocked()
	default:
		e.armLocked(err == nil, now)
	}
	s.mu.Unlock()
	for _, t := range over {
		t.report(err != nil)
	}
	if again {
		e.view()
	}
}

// armLocked waits for announcements, or for the time at which the key is read again.
func (e *entry) armLocked(decided bool, now time.Duration) {
	e.phase = armed
	delay, needed := pollWatched, e.tracks.engine.Pool.Quorum()
	if end := e.endLocked(needed); end > now {
		delay = min(delay, end-now+time.Millisecond)
	}
	switch {
	case !decided || bits.OnesCount16(e.tracked) < needed:
		delay = min(delay, e.tracks.engine.Spread(pollUnwatched))
	case e.early != 0:
		delay = min(delay, e.settleLocked())
	}
	e.setTimerLocked(delay)
}

func (e *entry) settleLocked() time.Duration {
	return settleDelay + e.tracks.engine.Pool.Jitter(time.Duration(len(e.tracks.entries))*settleSpread)
}

// endLocked returns the time from which a quorum will no longer have a copy; 0 if that is so or not known.
func (e *entry) endLocked(needed int) time.Duration {
	ends := slices.Sorted(slices.Values(e.ends[:e.tracks.engine.Pool.N()]))
	return ends[needed-1]
}

// Remains takes one master's answer to Watch.
func (e *entry) Remains(lane int, round uint64, left time.Duration, tracked bool) {
	s := e.tracks
	s.mu.Lock()
	if e.dropped || round != e.round || lane >= len(e.ends) {
		s.mu.Unlock()
		return
	}
	if left > 0 {
		e.ends[lane] = s.engine.Clock.Now() + left
	} else if left < 0 {
		e.ends[lane] = 1<<63 - 1
	}
	if tracked {
		e.tracked |= 1 << lane
	}
	views := e.phase == watching && bits.OnesCount16(e.tracked) >= s.engine.Pool.Quorum()
	if views {
		e.viewLocked()
	}
	s.mu.Unlock()
	if views {
		e.view()
	}
}

// Gone takes a master's announcement, or the end of its connection.
func (e *entry) Gone(lane int) {
	s := e.tracks
	s.mu.Lock()
	var over map[*track]struct{}
	switch {
	case e.dropped:
	case e.phase != armed:
		e.early |= 1 << lane
	default:
		e.changed |= 1 << lane
		if bits.OnesCount16(e.changed) > s.engine.Pool.N()-s.engine.Pool.Quorum() {
			over = e.members
			e.dropLocked()
		} else {
			e.setTimerLocked(e.settleLocked())
		}
	}
	s.mu.Unlock()
	for t := range over {
		t.report(false)
	}
}

// dropLocked ends the watch; a second time it does nothing.
func (e *entry) dropLocked() {
	if e.dropped {
		return
	}
	e.dropped, e.members = true, nil
	e.timer.Stop()
	e.group.Keys.Unwatch(e.master, e)
	delete(e.tracks.entries, e.dbKey)
}
