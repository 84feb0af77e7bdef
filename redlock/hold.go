// Leases that live as long as somebody lives: who renews them, and until when?
//
// A hold has one owner of its renewal. It is renewed when a third of its ttl has
// passed, together with all others that are due about then, and it ends in one
// of four ways: it is released, its owner ends it, its time is over, or it is
// lost. A lost lease is never revived: whoever holds it has been told.
//
// Beside contenders a quorum may be all that has a copy at first, so that the loss
// of one master ends the lease, although a majority is there. A renewal gives the
// others theirs; so the first one is early if a master has none, and so is the next
// one after a master has refused its copy.
package redlock

import (
	"container/heap"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

const (
	// gathering is how far apart renewals may be due and still leave together.
	gathering = 20 * time.Millisecond
	// renewals is how many of them are queued at once.
	renewals = 1024
	// afterBallot is how long after its ballot a hold is looked at: by then masters
	// have answered, and whoever competed has taken its copies back.
	afterBallot = 50 * time.Millisecond
)

// Why a hold is lost.
var (
	ErrLostHeld    = errors.New("a quorum of masters no longer holds it")
	ErrLostExpired = errors.New("it could not be renewed in time")
	ErrLostMax     = errors.New("its max-ms is over")
)

// Hold is a lease that the daemon renews.
type Hold struct {
	holds *holds
	grant Grant
	terms *HoldTerms
	stop  time.Duration // no renewal from here on; forever without an end

	// Guarded by holds.mu.
	until time.Duration // end of the validity
	tried time.Duration // when a renewal was asked for last
	due   time.Duration // of what is next: a renewal, or the end
	index int           // in the heap, −1 = not there
	ended bool
	made  *attempt      // the ballot, until it has been looked at
	early time.Duration // the next renewal is due then at the latest; 0 = when it is due
	wait  time.Duration // until a master is asked once more that refused a copy; 0 = none has
}

func (h *Hold) dueAt() time.Duration { return h.due }
func (h *Hold) standsAt(index int)   { h.index = index }

// holds are the holds of all connections, by when they are due.
type holds struct {
	locker *Locker
	count  atomic.Int64
	// draining: this daemon ends the connections, so their clients may still be at
	// work: what they hold runs out by itself.
	draining atomic.Bool

	mu    sync.Mutex
	byID  map[lockID]*Hold
	queue dueQueue[*Hold]
	alarm pool.Timer
	at    time.Duration // the alarm rings; 0 = it is off
}

// hold renews a grant, made by a ballot, until it is released, or ended with End,
// or lost.
func (l *Locker) hold(g Grant, made *attempt, terms *HoldTerms) *Hold {
	s := &l.holds
	h := &Hold{holds: s, grant: g, terms: terms, stop: forever, until: g.until, tried: g.start, index: -1}
	first := g.start + g.ttl/3
	if soon := l.clock.Now() + afterBallot; soon < first {
		first, h.made = soon, made
	}
	if terms.Longest > 0 {
		h.stop = g.start + terms.Longest
	}
	s.mu.Lock()
	if s.byID == nil {
		s.byID = map[lockID]*Hold{}
	}
	before := s.byID[h.id()] // the same token again, perhaps from another owner
	if before != nil {
		s.endLocked(before)
	}
	s.byID[h.id()] = h
	s.count.Add(1)
	s.scheduleLocked(h, first)
	s.mu.Unlock()
	if before != nil {
		before.terms.Over(before.grant, nil)
	}
	return h
}

func (h *Hold) id() lockID { return lockID{h.grant.db, h.grant.Key, h.grant.Token} }

// End ends the renewal and releases the lease, as when its connection has ended;
// a daemon that drains only ends the renewal.
func (h *Hold) End() {
	s := h.holds
	s.mu.Lock()
	ended := h.ended
	s.endLocked(h)
	s.mu.Unlock()
	if !ended {
		if !s.draining.Load() {
			s.locker.giveUp(h.grant, 0)
		}
		h.terms.Over(h.grant, nil)
	}
}

// endOf ends the renewal of one grant, not of a later one with the same token.
func (s *holds) endOf(g Grant) {
	if g.Hold == nil {
		return
	}
	s.mu.Lock()
	ended := g.Hold.ended
	s.endLocked(g.Hold)
	s.mu.Unlock()
	if !ended {
		g.Hold.terms.Over(g, nil)
	}
}

// giveUp releases what nobody will release any more; of a lease that was lost only
// copies that this daemon can have made, for leases up to ends: whoever holds the
// token may have extended it through another daemon, and was told for how long. A token that its owner
// chose may by now be held through another daemon, after the connection to this
// one broke: that lease is not this daemon's to end, and runs out by itself.
func (l *Locker) giveUp(g Grant, ends time.Duration) {
	if g.attempt != nil {
		return
	}
	var upTo time.Duration
	if ends != 0 {
		upTo = max(ends-l.recent()+l.late+2*grain*time.Millisecond, 1)
	}
	for _, key := range g.Keys() {
		l.inFlight.Add(1) // beyond the limit if it must be
		l.releaseAs(EventReleased, nil, lockID{g.db, key, g.Token}, upTo, nil, func(bool, error) {})
	}
}

// released ends the renewal of a lease that is being released; whatever renewal
// is under way comes before the release on every master.
func (s *holds) released(id lockID) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	h := s.byID[id]
	if h != nil {
		s.endLocked(h)
	}
	s.mu.Unlock()
	if h != nil {
		h.terms.Over(h.grant, nil)
	}
}

// endLocked takes a hold out of everything; a second time it does nothing.
func (s *holds) endLocked(h *Hold) {
	if h.ended {
		return
	}
	h.ended = true
	s.count.Add(-1)
	if s.byID[h.id()] == h {
		delete(s.byID, h.id())
	}
	if h.index >= 0 {
		heap.Remove(&s.queue, h.index)
	}
}

// scheduleLocked sets when the hold is looked at next. Once no renewal is left,
// that is the end of its validity.
func (s *holds) scheduleLocked(h *Hold, due time.Duration) {
	s.queueLocked(h, due)
	s.alarmLocked()
}

func (s *holds) queueLocked(h *Hold, due time.Duration) {
	if due >= h.stop {
		due = h.until
	}
	h.due = min(due, h.until)
	heap.Push(&s.queue, h)
}

// alarmLocked lets the alarm ring when the first hold is due.
func (s *holds) alarmLocked() {
	if len(s.queue) == 0 {
		return
	}
	first := s.queue[0].due
	if s.at != 0 && s.at <= first {
		return
	}
	s.at = first
	delay := max(first-s.locker.clock.Now(), 0)
	if s.alarm == nil {
		s.alarm = s.locker.clock.AfterFunc(delay, s.rings)
		return
	}
	s.alarm.Reset(delay)
}

// rings looks at every hold that is due about now.
func (s *holds) rings() {
	l := s.locker
	now := l.clock.Now()
	var lost, renewing []*Hold
	s.mu.Lock()
	s.at = 0
	for n := 0; n < renewals && len(s.queue) > 0 && s.queue[0].due <= now+gathering; n++ {
		h := heap.Pop(&s.queue).(*Hold)
		switch {
		case now >= h.until: // this process was paused, or nobody could decide for too long
			s.endLocked(h)
			lost = append(lost, h)
		case h.due >= h.until: // not yet over: its last milliseconds
			h.due = h.until
			heap.Push(&s.queue, h)
			n = renewals
		case h.settled():
			s.queueLocked(h, h.grant.start+h.grant.ttl/3)
		default:
			h.tried = now
			renewing = append(renewing, h)
		}
	}
	s.alarmLocked()
	s.mu.Unlock()
	var batch Batch
	for _, h := range renewing {
		l.inFlight.Add(1)
		l.extend(&batch, h.renewal(), h.renewed)
	}
	batch.Send()
	for _, h := range lost {
		h.isLost(h.reason(now))
	}
}

// healed hears whether a master that has lost its copy, or never had one, has taken it.
// Somebody who competes may have one there for as long as a ballot lasts; should a
// master of the quorum go away meanwhile, the lease would be over, so the refusal is
// not left to stand until a third of the ttl has passed. Each renewal that meets one
// waits twice as long for the next: what is in the way may also be a dead client's.
func (s *holds) healed(ids []lockID, taken bool) {
	if s.count.Load() == 0 {
		return
	}
	now := s.locker.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		h := s.byID[id]
		switch {
		case h == nil:
			continue
		case taken:
			h.wait = 0
			continue
		}
		wait := min(max(afterBallot, 2*h.wait), h.grant.ttl/3)
		switch due := now + wait; {
		case due >= h.stop:
			continue
		case h.index < 0: // a renewal is under way
			h.early = due
		case due < h.due:
			h.due = due
			heap.Fix(&s.queue, h.index)
			s.alarmLocked()
		default:
			continue
		}
		h.wait = wait
	}
}

// settled looks at the ballot, once: whether every master has a copy, so that there
// is time until the first renewal.
func (h *Hold) settled() bool {
	made := h.made
	h.made = nil
	return made != nil && made.everywhere()
}

// renewal is what is asked for a hold. Should the lease be released while it is
// being asked, it comes before the release on every master, or finds nothing.
func (h *Hold) renewal() ExtendRequest {
	return ExtendRequest{DB: h.grant.db, Key: h.grant.Key, More: h.grant.More, Token: h.grant.Token, TTL: h.grant.ttl}
}

// extended: the holder itself has extended its lease, and was told for how long.
// The hold is not lost, and nothing is given back, before that is over, whether or
// not a renewal is decided meanwhile.
func (s *holds) extended(ids []lockID, until time.Duration) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		h := s.byID[id]
		if h == nil || until <= h.until || !h.coveredBy(ids) {
			continue
		}
		last := h.due == h.until
		h.until = until
		if last && h.index >= 0 { // no renewal is left, the end is what is next
			h.due = until
			heap.Fix(&s.queue, h.index)
		}
	}
}

// coveredBy tells whether all keys of the hold are among these.
func (h *Hold) coveredBy(ids []lockID) bool {
	for _, key := range h.grant.Keys() {
		if !slices.Contains(ids, lockID{h.grant.db, key, h.grant.Token}) {
			return false
		}
	}
	return true
}

// reason of a hold whose validity is over.
func (h *Hold) reason(now time.Duration) error {
	if now >= h.stop {
		return ErrLostMax
	}
	return ErrLostExpired
}

// renewed takes the masters' answer to a renewal.
func (h *Hold) renewed(g Grant, err error) {
	s := h.holds
	now := s.locker.clock.Now()
	s.mu.Lock()
	if h.ended {
		s.mu.Unlock()
		return
	}
	switch {
	case err == nil:
		h.until = max(h.until, g.until)
		next := g.start + g.ttl/3
		if h.early > 0 {
			next = min(next, h.early)
		}
		h.early = 0
		s.scheduleLocked(h, next)
	case errors.Is(err, ErrNotHeld):
		s.endLocked(h)
		s.mu.Unlock()
		h.isLost(ErrLostHeld)
		return
	default: // not decided: the old validity stands, and there is time to try again
		s.scheduleLocked(h, now+max(h.grant.ttl/20, 2*time.Millisecond))
	}
	s.mu.Unlock()
}

// isLost gives back what is left and tells the holder.
func (h *Hold) isLost(reason error) {
	h.holds.locker.counts.holdsLost.Add(1)
	for _, key := range h.grant.Keys() {
		h.holds.locker.events.emit(EventLost, lockID{h.grant.db, key, h.grant.Token}, h.grant.Fence, 0)
	}
	h.holds.locker.giveUp(h.grant, max(h.until+drift(h.grant.ttl), h.tried+h.grant.ttl))
	h.terms.Over(h.grant, reason)
}

// Holds is how many leases are renewed now.
func (l *Locker) Holds() int { return int(l.holds.count.Load()) }
