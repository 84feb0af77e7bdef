// openLeases tracks the grants that have not ended, and detects that they expire.
//
// Every grant that this daemon has received ends once: it is released, lost or forced. If not,
// the daemon watches it until no copy of it can be left, and then it has expired. Each
// listening daemon watches for itself. It receives all grants and extensions, so the end is
// reported even if all other daemons are dead.

package redlock

import (
	"container/heap"
	"time"

	"redlockd/pool"
)

const (
	// maxOpenLeases bounds the grants that are watched. The daemons that end other grants still
	// report those ends, but no daemon reports that they expire.
	mostOpen = 1 << 17
	// endedKept is how long an end is remembered that may be reported twice: a lost lock that
	// is given back is not also released.
	afterEnd = 10 * time.Second
	// grantTimeout is how long a release waits for the event of its grant. If one daemon grants
	// a lock and another one releases it, two daemons report on it, and their messages overtake
	// one another.
	grantPatience = 10 * postEvery
)

// openLease is a grant that this daemon has received.
type openGrant struct {
	openID
	daemon string // the daemon that reported it
	fence  Fence
	due    time.Duration
	ended  bool   // its end has been reported, or waits for the event of the grant
	early  *Event // the release that waits
	index  int    // in the queue
}

func (g *openGrant) dueAt() time.Duration { return g.due }
func (g *openGrant) standsAt(index int)   { g.index = index }

type openID struct {
	key  Key
	mark string
}

// openLeases are a database's open leases. dbEvents.mu guards them.
type openGrants struct {
	by    map[openID]*openGrant
	queue dueQueue[*openGrant]
	alarm pool.Timer
	at    time.Duration // when the timer fires; 0 = it is off
}

// filter notes an event and returns the events to deliver: usually the event itself, or one for
// each holder if the event forces an unnamed holder.
func (e *openGrants) judge(ev Event, daemon string, now time.Duration) []Event {
	if ev.Kind == EventForced && ev.Mark == "" {
		return e.judgeAll(ev, now)
	}
	g := e.by[openID{ev.Key, ev.Mark}]
	if ev.Kind == EventAcquired || ev.Kind == eventExtended {
		return e.opens(g, ev, daemon, now)
	}
	if g != nil { // the daemon that ended it may not know the last grant of the token, or none
		ev.Fence = max(ev.Fence, g.fence)
	}
	switch {
	case g != nil && g.ended:
		return nil
	case ev.Kind == EventReleased && ev.Fence == 0:
		if g == nil {
			g = e.add(&ev, daemon, now)
		}
		if g == nil {
			return []Event{ev}
		}
		g.early = &ev
		e.over(g, now+grantPatience)
		return nil
	case ev.Kind == EventReleased && (g == nil || g.daemon == daemon):
		if g != nil {
			e.remove(g) // no other daemon reports it
		}
		return []Event{ev}
	}
	if g == nil {
		g = e.add(&ev, daemon, now)
	}
	if g == nil {
		return []Event{ev}
	}
	e.over(g, now+afterEnd)
	return []Event{ev}
}

// filterForced ends every holder of a key. It is rare enough to scan all grants.
func (e *openGrants) judgeAll(ev Event, now time.Duration) (out []Event) {
	for id, g := range e.by {
		if id.key == ev.Key && !g.ended {
			one := ev
			one.Fence, one.Mark = g.fence, g.mark
			out = append(out, one)
			e.over(g, now+afterEnd)
		}
	}
	if out == nil {
		return []Event{ev}
	}
	return out
}

// onGrant notes a grant or that it lasts longer. An extension of an ended lease was decided
// before the end and changes nothing.
func (e *openGrants) opens(g *openGrant, ev Event, daemon string, now time.Duration) (out []Event) {
	if ev.Kind == EventAcquired {
		out = append(out, ev)
	}
	due := now + ev.lasts
	switch {
	case g == nil:
		e.add(&ev, daemon, due)
		return out
	case g.early != nil && out != nil:
		released := *g.early
		released.Fence = ev.Fence
		e.remove(g)
		return append(out, released)
	case out != nil:
		g.fence, g.daemon, g.ended = ev.Fence, daemon, false
	case g.ended:
		return nil
	}
	if due > g.due {
		g.due = due
		heap.Fix(&e.queue, g.index)
	}
	return out
}

// endLease notes an end. It is remembered until due.
func (e *openGrants) over(g *openGrant, due time.Duration) {
	g.ended, g.due = true, due
	heap.Fix(&e.queue, g.index)
}

func (e *openGrants) add(ev *Event, daemon string, due time.Duration) *openGrant {
	if len(e.queue) >= mostOpen {
		return nil
	}
	if e.by == nil {
		e.by = map[openID]*openGrant{}
	}
	g := &openGrant{openID: openID{ev.Key, ev.Mark}, daemon: daemon, fence: ev.Fence, due: due}
	e.by[g.openID] = g
	heap.Push(&e.queue, g)
	return g
}

func (e *openGrants) remove(g *openGrant) {
	heap.Remove(&e.queue, g.index)
	delete(e.by, g.openID)
}

func (e *openGrants) forget() {
	if e.alarm != nil {
		e.alarm.Stop()
	}
	e.by, e.queue, e.at = nil, nil, 0
}

// setExpiryTimerLocked sets the timer to fire when the first grant is due.
func (s *stage) watchLocked(now time.Duration) {
	e := &s.ends
	if len(e.queue) == 0 {
		return
	}
	due := e.queue[0].due
	if e.at != 0 && e.at <= due {
		return
	}
	e.at = due
	delay := max(due-now, time.Millisecond)
	if e.alarm == nil {
		e.alarm = s.clock().AfterFunc(delay, s.rings)
		return
	}
	e.alarm.Reset(delay)
}

// onExpiryTimer reports the grants that have run out, and the releases whose grant was never
// received. It forgets the grants that had ended.
func (s *stage) rings() {
	at := s.time()
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.ends
	now := s.clock().Now()
	e.at = 0
	for len(e.queue) > 0 && e.queue[0].due <= now {
		g := e.queue[0]
		e.remove(g)
		switch {
		case g.early != nil:
			s.deliverLocked(*g.early)
		case !g.ended:
			s.deliverLocked(Event{Kind: EventExpired, Key: g.key, Fence: g.fence, Mark: g.mark, At: at})
		}
	}
	s.watchLocked(now)
}
