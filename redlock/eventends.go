// Which grants have not ended? Every grant that was heard of ends once: it is
// released, lost or forced, or it is watched until no copy of it can be left, and
// then it has expired. Each listening daemon watches for itself: it hears of all
// grants and extensions, and so needs nobody to be alive to tell it of the end.
package redlock

import (
	"container/heap"
	"time"

	"redlockd/pool"
)

const (
	// mostOpen bounds the grants that are watched; the ends of others are told
	// by whoever ends them, but not that they expire.
	mostOpen = 1 << 17
	// afterEnd is how long an end is remembered that may be told twice: what is
	// given back of a lost lock is not also released.
	afterEnd = 10 * time.Second
	// grantPatience is how long a release waits for the news of its grant. A lock
	// that one daemon grants and another one releases is told of by two, whose
	// messages overtake one another.
	grantPatience = 10 * postEvery
)

// openGrant is a grant that was heard of.
type openGrant struct {
	openID
	daemon string // who told of it
	fence  Fence
	due    time.Duration
	ended  bool   // its end has been told, or waits for the news of the grant
	early  *Event // the release that waits
	index  int    // in the queue
}

func (g *openGrant) dueAt() time.Duration { return g.due }
func (g *openGrant) standsAt(index int)   { g.index = index }

type openID struct {
	key  Key
	mark string
}

// openGrants are a database's open grants. The stage guards them.
type openGrants struct {
	by    map[openID]*openGrant
	queue dueQueue[*openGrant]
	alarm pool.Timer
	at    time.Duration // the alarm rings; 0 = it is off
}

// judge notes an event and says which ones are to be delivered: usually itself,
// or one for each holder if somebody was forced who is not named.
func (e *openGrants) judge(ev Event, daemon string, now time.Duration) []Event {
	if ev.Kind == EventForced && ev.Mark == "" {
		return e.judgeAll(ev, now)
	}
	g := e.by[openID{ev.Key, ev.Mark}]
	if ev.Kind == EventAcquired || ev.Kind == eventExtended {
		return e.opens(g, ev, daemon, now)
	}
	if g != nil { // its daemon may not know the last grant of the token, or none
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
			e.remove(g) // nobody else will tell of it
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

// judgeAll ends every holder of a key. It is rare enough to look at all grants.
func (e *openGrants) judgeAll(ev Event, now time.Duration) (told []Event) {
	for id, g := range e.by {
		if id.key == ev.Key && !g.ended {
			one := ev
			one.Fence, one.Mark = g.fence, g.mark
			told = append(told, one)
			e.over(g, now+afterEnd)
		}
	}
	if told == nil {
		return []Event{ev}
	}
	return told
}

// opens notes a grant or that it lasts longer; an extension of what has ended
// was decided before the end and changes nothing.
func (e *openGrants) opens(g *openGrant, ev Event, daemon string, now time.Duration) (told []Event) {
	if ev.Kind == EventAcquired {
		told = append(told, ev)
	}
	due := now + ev.lasts
	switch {
	case g == nil:
		e.add(&ev, daemon, due)
		return told
	case g.early != nil && told != nil:
		released := *g.early
		released.Fence = ev.Fence
		e.remove(g)
		return append(told, released)
	case told != nil:
		g.fence, g.daemon, g.ended = ev.Fence, daemon, false
	case g.ended:
		return nil
	}
	if due > g.due {
		g.due = due
		heap.Fix(&e.queue, g.index)
	}
	return told
}

// over notes an end, to be remembered until due.
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

// watchLocked lets the alarm ring when the first grant is due.
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

// rings tells of the grants that have run out, and of releases whose grant
// nobody has heard of, and forgets those that had ended.
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
