// Hold: a lease that the daemon renews until its end.
//
// A hold has one owner of its renewal. The daemon renews it when a third of its ttl has passed,
// together with all others that are due about then. It ends in one of five ways: it is
// released, its owner ends it, the daemon abandons it, its time is over, or it is lost. A lost
// lease is never renewed again: its holder has been notified.

package renew

import (
	"container/heap"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/due"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/lease"
)

// Reasons of a lost hold.
var (
	ErrLostHeld    = errors.New("a quorum of masters no longer holds it")
	ErrLostExpired = errors.New("it could not be renewed in time")
	ErrLostMax     = errors.New("its max-ms is over")
	// ErrLostOverdue: the holder had it as long as it may have it, see package maxhold.
	ErrLostOverdue = errors.New("its longest time is over")
	// ErrLostForced: a client released or overwrote the lock without being its holder.
	ErrLostForced = errors.New("it was released by force")
)

// Terms bound the renewal of a lease, and have the functions that report its end.
type Terms struct {
	MaxTime time.Duration // since the granted ballot began; 0 = without an end
	// OnBegin is called, before the client receives the grant, with the renewal; nil = it is not.
	OnBegin func(Hold)
	// OnEnd is called once, from any goroutine: with nil when the lease was released, else with
	// the reason for its loss. The keys stay taken for goesOn after that, unless a release that is
	// under way is acknowledged before; 0 = they are released, or lost.
	OnEnd func(g lease.Grant, reason error, goesOn time.Duration)
	// OnWanted is called, from any goroutine, when a client requests that the holder lets go of
	// this key; nil = it is not. It may come shortly after OnEnd.
	OnWanted func(key engine.Key, text string)
}

// Hold is the renewal of a lease.
type Hold interface {
	// End ends the renewal and releases the lease, as when its connection has ended; with a linger,
	// the lease ends so much later. A daemon that drains only ends the renewal.
	End()
	// Abandon ends the renewal without a release, as when the daemon ends the connection of
	// a client that may be at work: the lease runs out by itself.
	Abandon(reason error)
}

// forever is the end of a hold that has none.
const forever = time.Duration(1<<63 - 1)

// hold is a lease that the daemon renews.
type hold struct {
	holds *Holds
	grant lease.Grant
	terms Terms
	stop  time.Duration // no renewal from here on; forever = without an end
	last  time.Duration // no renewal lasts longer; forever = without an end

	// Guarded by holds.mu.
	until        time.Duration // end of the validity
	due          time.Duration // of the next action: a renewal, or the end
	index        int           // in the heap
	renewing     bool          // a renewal is under way; what is due is the end
	ended        bool
	ballot       lease.Copies  // the ballot, until it has been evaluated
	renewBy      time.Duration // the next renewal is due then at the latest; 0 = at its regular time
	refusalPause time.Duration // from a master's refusal until the next try; 0 = no master has refused

	wanted   *revocation   // the latest request to let go; nil = there was none
	wantedAt time.Duration // when the holder was last notified of one
	met      string        // the latest request of another daemon

	watches []*holdWatch  // of its keys; nil while a renewal is under way
	hurried time.Duration // when the last renewal that an announcement caused was due
}

func (h *hold) DueAt() time.Duration { return h.due }
func (h *hold) SetIndex(index int)   { h.index = index }

// Holds are the holds of all connections, by when they are due.
type Holds struct {
	engine *engine.Engine
	events *events.Events
	leases *lease.Leases
	log    holdLog
	count  atomic.Int64
	// draining: this daemon ends the connections, so their clients may still be at work: their
	// leases run out by themselves.
	draining atomic.Bool

	mu       sync.Mutex
	byID     map[engine.LeaseID]*hold // by the first key
	multiKey int                      // holds with more than one key
	wanted   int                      // holds that a client requests to let go
	queue    due.Queue[*hold]
	timer    pool.Timer
	timerAt  time.Duration // when the timer fires; 0 = it is off
	watched  int           // keys, see holdwatch.go

	lists wantedLists
}

var _ lease.Changes = (*Holds)(nil)

// New returns the holds of a daemon.
func New(e *engine.Engine, v *events.Events, l *lease.Leases, logger *slog.Logger) *Holds {
	s := &Holds{engine: e, events: v, leases: l, log: holdLog{clock: e.Clock, logger: logger}}
	s.lists = wantedLists{holds: s, name: string(engine.NewToken()), patience: answerTime}
	return s
}

// Count returns the number of leases that are being renewed.
func (hs *Holds) Count() int { return int(hs.count.Load()) }

// Drain begins the end of this daemon: holds that end from here on are not released.
func (hs *Holds) Drain() { hs.draining.Store(true) }

// Begin renews a new grant until it is released, or ended with End, or lost.
func (hs *Holds) Begin(g lease.Grant, terms Terms) Hold {
	made := g.TakeCopies()
	h := &hold{holds: hs, grant: g, terms: terms, stop: forever, last: forever, until: g.Until()}
	first := g.Began() + g.TTL()/3
	if soon := hs.engine.Clock.Now() + afterBallot; soon < first {
		first, h.ballot = soon, made
	}
	if terms.MaxTime > 0 {
		h.stop = g.Began() + terms.MaxTime
	}
	if g.EndsBy > 0 {
		h.last = g.EndsBy
		h.stop = min(h.stop, h.last-minRenewal)
	}
	hs.mu.Lock()
	if hs.byID == nil {
		hs.byID = map[engine.LeaseID]*hold{}
	}
	before := hs.byID[h.id()] // the same token again, perhaps from another owner
	if before != nil {
		hs.endLocked(before)
	}
	hs.byID[h.id()] = h
	hs.count.Add(1)
	if len(g.More) > 0 {
		hs.multiKey++
	}
	if made.WasRefused() { // read now that a later refusal would find the hold
		h.refusalPause = afterRefusal
		first = min(first, hs.engine.Clock.Now()+h.refusalPause)
	}
	heap.Push(&hs.queue, h)
	gone := false // what ends the lease from now on finds the hold
	for _, id := range g.Leases() {
		until := hs.leases.Known(id).Until
		gone, h.until = gone || until == 0, min(h.until, until)
	}
	hs.scheduleLocked(h, first)
	if gone {
		hs.endLocked(h)
	}
	hs.mu.Unlock()
	hs.lists.follow(g.DB())
	if before != nil {
		before.terms.OnEnd(before.grant, nil, before.left())
	}
	if terms.OnBegin != nil {
		terms.OnBegin(h)
	}
	if gone {
		h.onLost(ErrLostHeld)
	}
	return h
}

// Of is the renewal of a grant; nil = it has none.
func (hs *Holds) Of(g *lease.Grant) Hold {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.byID[g.Lease()]; h != nil && h.grant.Fence == g.Fence {
		return h
	}
	return nil
}

func (h *hold) id() engine.LeaseID { return h.grant.Lease() }

// End and Abandon: see Hold.
func (h *hold) End() {
	s := h.holds
	if !s.end(h) {
		return
	}
	goesOn := h.left()
	if !s.draining.Load() {
		s.leases.GiveUp(&h.grant)
		if !h.grant.Chosen() {
			goesOn = h.grant.Linger()
		}
	}
	h.terms.OnEnd(h.grant, nil, goesOn)
}

func (h *hold) Abandon(reason error) {
	if h.holds.end(h) {
		h.terms.OnEnd(h.grant, reason, h.left())
	}
}

// left returns the time for which the keys of an ended hold stay taken, unless they are released.
func (h *hold) left() time.Duration {
	h.holds.mu.Lock()
	defer h.holds.mu.Unlock()
	return max(h.until-h.holds.engine.Recent(), 0) + h.grant.Linger()
}

// Released ends the renewal of a lease that is being released. A renewal that is under way
// comes before the release on every master.
func (hs *Holds) Released(id engine.LeaseID) {
	if hs.count.Load() == 0 {
		return
	}
	hs.mu.Lock()
	h := hs.byID[id]
	if h != nil {
		hs.endLocked(h)
	}
	hs.mu.Unlock()
	if h != nil {
		h.terms.OnEnd(h.grant, nil, h.left()) // until the release is acknowledged
	}
}

// Forced ends the renewal of a lease that is released by force. It notifies the holder before
// another client can get the lock. The lease may be one of several keys, and then all of them
// are lost. Without a token, any holder is meant.
func (hs *Holds) Forced(id engine.LeaseID) {
	if hs.count.Load() == 0 {
		return
	}
	var lost []*hold
	hs.mu.Lock()
	for _, h := range hs.ofLocked(id) {
		hs.endLocked(h)
		lost = append(lost, h)
	}
	hs.mu.Unlock()
	for _, h := range lost {
		h.onForced(id.Key)
	}
}

// onForced notifies the holder and gives up the keys besides the one that is being released.
func (h *hold) onForced(key engine.Key) {
	h.holds.engine.Counts.HoldsLost.Add(1)
	for _, other := range h.grant.Leases() {
		if other.Key != key {
			h.holds.leases.ReleaseAlways(other)
		}
	}
	h.terms.OnEnd(h.grant, ErrLostForced, 0)
}

// end ends a hold, and reports whether this call did.
func (hs *Holds) end(h *hold) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	ended := h.ended
	hs.endLocked(h)
	return !ended
}

// endLocked removes a hold from all lists; a second call does nothing.
func (hs *Holds) endLocked(h *hold) {
	if h.ended {
		return
	}
	h.ended = true
	hs.unwatchLocked(h)
	hs.count.Add(-1)
	if len(h.grant.More) > 0 {
		hs.multiKey--
	}
	if h.wanted != nil {
		hs.wanted--
	}
	if hs.byID[h.id()] == h {
		delete(hs.byID, h.id())
	}
	heap.Remove(&hs.queue, h.index)
}

// Extended notes that the holder itself has extended its lease, and knows for how long. The
// hold is not lost, and nothing is given back, before that is over, whether or not a renewal is
// decided meanwhile.
func (hs *Holds) Extended(ids []engine.LeaseID, until time.Duration) {
	if hs.count.Load() == 0 {
		return
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, id := range ids {
		h := hs.byID[id]
		if h == nil || until <= h.until || !h.coveredBy(ids) {
			continue
		}
		last := h.due == h.until
		h.until = until
		if last { // no renewal is left, or one is under way: the end comes next
			h.due = until
			heap.Fix(&hs.queue, h.index)
		}
	}
}

// Shortened notes that a lease ends earlier than its renewal assumes, and renews it now:
// otherwise another client would get it before its holder is notified. Without a token, any
// holder is meant.
func (hs *Holds) Shortened(id engine.LeaseID, until time.Duration) {
	if hs.count.Load() == 0 {
		return
	}
	now := hs.engine.Clock.Now()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.ofLocked(id) {
		if until >= h.until {
			continue
		}
		h.until, h.ballot = until, nil
		due := now
		if h.renewing {
			h.renewBy = now
		}
		if h.renewing || now >= h.stop { // its end comes next
			due = until
		}
		hs.moveLocked(h, due)
	}
}

// moveLocked changes the time of the next action of a hold in the queue.
func (hs *Holds) moveLocked(h *hold, due time.Duration) {
	h.due = due
	heap.Fix(&hs.queue, h.index)
	hs.setTimerLocked()
}

// ofLocked are the holds of a key, also as one of several, with this token; without a token,
// with any. Only a search without a token, or for holds of several keys, scans all of them.
func (hs *Holds) ofLocked(id engine.LeaseID) (found []*hold) {
	if id.Token != "" && hs.multiKey == 0 {
		if h := hs.byID[id]; h != nil {
			found = append(found, h)
		}
		return found
	}
	for at, h := range hs.byID {
		if at.DB == id.DB && (id.Token == "" || at.Token == id.Token) && slices.Contains(h.grant.Keys(), id.Key) {
			found = append(found, h)
		}
	}
	// Sorted: a replay has the same order.
	slices.SortFunc(found, func(a, b *hold) int { return strings.Compare(string(a.grant.Token), string(b.grant.Token)) })
	return found
}

// Renews reports whether a lease is renewed for a connection of this daemon.
func (hs *Holds) Renews(id engine.LeaseID) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return len(hs.ofLocked(id)) > 0
}

// coveredBy reports whether all keys of the hold are among these.
func (h *hold) coveredBy(ids []engine.LeaseID) bool {
	for _, id := range h.grant.Leases() {
		if !slices.Contains(ids, id) {
			return false
		}
	}
	return true
}

// reason returns the cause of the end of a hold whose validity is over.
func (h *hold) reason(now time.Duration) error {
	switch {
	case h.last != forever && h.last-h.until <= minRenewal+(h.last-h.grant.Began())/64: // what is left of it and the drift
		return ErrLostOverdue
	case now >= h.stop:
		return ErrLostMax
	}
	return ErrLostExpired
}

// onLost notifies the holder. What is left of the copies runs out: the holder may have extended the lock
// through another daemon and rely on it, and nobody can see on a master which end an extension promised.
func (h *hold) onLost(reason error) {
	s := h.holds
	s.engine.Counts.HoldsLost.Add(1)
	for _, id := range h.grant.Leases() {
		if reason == ErrLostOverdue {
			s.engine.Counts.Overdue.Add(1)
			s.events.Emit(events.Overdue, id, h.grant.Fence, 0)
		}
		s.events.Emit(events.Lost, id, h.grant.Fence, 0)
		s.log.note(id, reason)
	}
	h.terms.OnEnd(h.grant, reason, h.grant.Linger())
}
