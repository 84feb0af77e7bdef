// openLeases tracks the grants that have not ended, and detects that they expire.
//
// Every grant that this daemon has received ends once: it is released, lost or forced. If not,
// the daemon watches it until no copy of it can be left, and then it has expired. Each
// listening daemon watches for itself. It receives all grants and extensions, so the end is
// reported even if all other daemons are dead.

package events

import (
	"container/heap"
	"time"

	"redlockd/pool"
	"redlockd/redlock/due"
	"redlockd/redlock/engine"
)

const (
	// maxOpenLeases bounds the grants that are watched. The daemons that end other grants still
	// report those ends, but no daemon reports that they expire.
	maxOpenLeases = 1 << 17
	// endedKept is how long an end is remembered that may be reported twice: a lost lock that
	// is given back is not also released.
	endedKept = 10 * time.Second
	// grantTimeout is how long a release waits for the event of its grant, and how long it is
	// remembered for events of the lease that come after it. Messages overtake one another: those
	// of two daemons if one grants a lock and the other one releases it, and those of one daemon
	// if a master was away.
	grantTimeout = 10 * batchInterval
)

// openLease is a grant that this daemon has received.
type openLease struct {
	openLeaseID
	daemon       string // the daemon that reported it
	fence        engine.Fence
	due          time.Duration
	ended        bool   // its end has been reported, or waits for the event of the grant
	earlyRelease *Event // the release that waits
	index        int    // in the queue
}

func (o *openLease) DueAt() time.Duration { return o.due }
func (o *openLease) SetIndex(index int)   { o.index = index }

type openLeaseID struct {
	key       engine.Key
	tokenHash string
}

// openLeases are a database's open leases. dbEvents.mu guards them.
type openLeases struct {
	byID    map[openLeaseID]*openLease
	queue   due.Queue[*openLease]
	timer   pool.Timer
	timerAt time.Duration // when the timer fires; 0 = it is off
}

// filter notes an event and returns the events to deliver: usually the event itself, or one for
// each holder if the event forces an unnamed holder.
func (o *openLeases) filter(ev Event, daemon string, now time.Duration) []Event {
	if ev.Kind == Wanted || ev.Kind == Overdue {
		return []Event{ev}
	}
	if ev.Kind == Forced && ev.TokenHash == "" {
		return o.filterForced(ev, now)
	}
	g := o.byID[openLeaseID{ev.Key, ev.TokenHash}]
	if ev.Kind == Acquired || ev.Kind == Extended {
		return o.onGrant(g, ev, daemon, now)
	}
	if ev.Kind == Shortened {
		if due := now + ev.lasts; g != nil && due < g.due {
			g.due = due
			heap.Fix(&o.queue, g.index)
		}
		return nil
	}
	return o.onEnd(g, ev, daemon, now)
}

// onEnd notes that a lease ends, and returns the event unless the end has been reported.
func (o *openLeases) onEnd(g *openLease, ev Event, daemon string, now time.Duration) []Event {
	unknownGrant := g == nil || ev.Fence > g.fence
	if g != nil { // the daemon that ended it may not know the last grant of the token, or none
		ev.Fence = max(ev.Fence, g.fence)
	}
	waits := ev.Kind == Released && (ev.Fence == 0 || unknownGrant && daemon != "") // this daemon's events are in order
	switch {
	case g != nil && g.ended && !unknownGrant:
		return nil
	case g == nil && ev.Kind == Released && !waits:
		return []Event{ev}
	case g == nil:
		if g = o.add(&ev, daemon, now); g == nil {
			return []Event{ev}
		}
	}
	if waits {
		var before []Event
		if g.earlyRelease != nil {
			before = []Event{*g.earlyRelease}
		}
		g.earlyRelease = &ev
		o.endLease(g, now+grantTimeout)
		return before
	}
	kept := endedKept
	if ev.Kind == Released && g.daemon == daemon {
		kept = grantTimeout // no other daemon reports it
	}
	g.fence, g.earlyRelease = ev.Fence, nil
	o.endLease(g, now+kept)
	return []Event{ev}
}

// filterForced ends every holder of a key. It is rare enough to scan all grants.
func (o *openLeases) filterForced(ev Event, now time.Duration) (out []Event) {
	for id, g := range o.byID {
		if id.key == ev.Key && !g.ended {
			one := ev
			one.Fence, one.TokenHash = g.fence, g.tokenHash
			out = append(out, one)
			o.endLease(g, now+endedKept)
		}
	}
	if out == nil {
		return []Event{ev}
	}
	return out
}

// onGrant notes a grant or that it lasts longer. An extension of an ended lease was decided
// before the end and changes nothing.
func (o *openLeases) onGrant(g *openLease, ev Event, daemon string, now time.Duration) (out []Event) {
	if ev.Kind == Acquired {
		out = append(out, ev)
	}
	due := now + ev.lasts
	switch {
	case g == nil:
		o.add(&ev, daemon, due)
		return out
	case g.earlyRelease != nil && out != nil:
		released := *g.earlyRelease
		if released.Fence == 0 {
			released.Fence = ev.Fence
		}
		if released.Fence > ev.Fence {
			return out // the grant of the release is still to come
		}
		g.fence, g.earlyRelease = ev.Fence, nil
		if released.Fence == ev.Fence {
			o.endLease(g, now+grantTimeout)
			return append(out, released)
		}
		g.daemon, g.ended = daemon, false
		out = []Event{released, ev}
	case out != nil && (ev.Fence > g.fence || ev.Fence == 0):
		g.fence, g.daemon, g.ended = ev.Fence, daemon, false
	case g.ended:
		return out // a grant that was overtaken by its end
	}
	if due > g.due {
		g.due = due
		heap.Fix(&o.queue, g.index)
	}
	return out
}

// endLease notes an end. It is remembered until due.
func (o *openLeases) endLease(g *openLease, due time.Duration) {
	g.ended, g.due = true, due
	heap.Fix(&o.queue, g.index)
}

func (o *openLeases) add(ev *Event, daemon string, due time.Duration) *openLease {
	if len(o.queue) >= maxOpenLeases {
		return nil
	}
	if o.byID == nil {
		o.byID = map[openLeaseID]*openLease{}
	}
	g := &openLease{openLeaseID: openLeaseID{ev.Key, ev.TokenHash}, daemon: daemon, fence: ev.Fence, due: due}
	o.byID[g.openLeaseID] = g
	heap.Push(&o.queue, g)
	return g
}

// expire forgets what is due. It returns the expiry of the grants that have run out, and the
// releases whose grant was never received.
func (o *openLeases) expire(now time.Duration, at time.Time) (ready []Event) {
	for len(o.queue) > 0 && o.queue[0].due <= now {
		g := heap.Pop(&o.queue).(*openLease)
		delete(o.byID, g.openLeaseID)
		switch {
		case g.earlyRelease != nil:
			ready = append(ready, *g.earlyRelease)
		case !g.ended:
			ready = append(ready, Event{Kind: Expired, Key: g.key, Fence: g.fence, TokenHash: g.tokenHash, At: at})
		}
	}
	return ready
}

func (o *openLeases) forget() {
	if o.timer != nil {
		o.timer.Stop()
	}
	o.byID, o.queue, o.timerAt = nil, nil, 0
}
