// This file keeps places for requests that do not wait but come again: the locks of client libraries,
// which poll with SET NX or a script, and a plain DLOCK.
//
// Waiters hand a key over to one another in the flush of the release, so a client that polls never finds it
// free. So a request that is refused again and again has a place, with the name of its connection, or of
// its pool: connections of one user, address and library. When the holder has changed while the client
// was refused, the place takes a ticket in the queue of FAIR. At its turn no waiter of any daemon takes
// the key, and the client's next try, which may be a plain SET NX, finds it free. The ticket is requested
// three quarters of an interval after a try, so that the key stays free for a short time only, and
// after minTries intervals, which bounds what polling costs. It expires after two intervals without a
// try. Of several clients that poll, the first one that comes gets the key; then a place of theirs has
// had its turn.
//
// A lock that one client holds for long costs those that poll for it one look in minTries tries,
// and no ticket.

package wait

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/quorum"
)

const (
	// minTries is how many intervals pass between two looks at the holder, and before a ticket.
	minTries = 4
	// minPolled bounds that for clients that poll without a pause.
	minPolled = 200 * time.Millisecond
	// maxPlaceTime is how long a place stays without a try. A client that comes less often has none.
	maxPlaceTime = 2 * time.Second
	// maxPlaces, maxPlacesOfKey and maxPlacesOfPoller bound the places of a daemon. Further requests are
	// refused as ever.
	maxPlaces, maxPlacesOfKey, maxPlacesOfPoller = 4096, 64, 64
)

// poller is a connection that comes again, or a pool of them.
type poller struct {
	connection          int64
	user, host, library string
}

func pollerOf(r *lease.Requester) poller {
	if r.LibName == "" {
		return poller{connection: r.ID}
	}
	return poller{user: r.User, host: r.Host, library: r.LibName}
}

// placeID identifies a place.
type placeID struct {
	dbKey
	poller
}

// place is the place of one poller for one key.
type place struct {
	id       placeID
	request  lease.LockRequest
	ticket   *lease.Ticket // nil = none is requested
	last     time.Duration // its latest try
	interval time.Duration // between its tries; 0 = only one was made
	looked   time.Duration // when the holder was looked at; 0 = never
	holder   lease.View    // at that time
	due      bool          // its ticket is about to be requested
	kept     time.Duration // when its ticket was made to last
	over     bool
	end      pool.Timer // it ends without a try
}

// places are all of a daemon's. At 0 a request costs one look at count.
type places struct {
	list     *waitList
	count    atomic.Int64
	mu       sync.Mutex
	all      map[placeID]*place
	ofKey    map[dbKey]int
	ofPoller map[poller]int
	tickets  int64 // number of the last one
	closed   bool
}

var _ lease.Tries = (*places)(nil)

func placeOf(r *lease.LockRequest) placeID {
	return placeID{dbKey{r.DB, r.Key}, pollerOf(r.Requester)}
}

// Begins gives a request that looks at the queue its ticket.
func (ps *places) Begins(r *lease.LockRequest) {
	if ps.count.Load() == 0 {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.all[placeOf(r)]; p != nil && p.established() {
		r.Mode = lease.Enqueued(r.Mode, p.ticket)
	}
}

// Ended notes a request that was granted or refused.
func (ps *places) Ended(r *lease.LockRequest, err error) {
	switch {
	case len(r.More) > 0:
	case errors.Is(err, engine.ErrHeld):
		ps.refused(r)
	case err == nil && ps.count.Load() > 0:
		ps.granted(r)
	}
}

func (p *place) established() bool { return p.ticket != nil && p.ticket.Number != 0 }

// life returns the time for which the place stays without a try.
func (p *place) life() time.Duration {
	if p.interval == 0 {
		return maxPlaceTime
	}
	return min(max(2*p.interval, minPolled), maxPlaceTime)
}

func (ps *places) refused(r *lease.LockRequest) {
	id, now := placeOf(r), ps.list.engine.Clock.Now()
	ps.mu.Lock()
	p := ps.all[id]
	if p == nil {
		ps.addLocked(id, r, now)
		ps.mu.Unlock()
		return
	}
	p.interval, p.last = max(now-p.last, p.interval*3/4), now
	p.end.Reset(p.life())
	refreshes := p.established() && now-p.kept >= p.life()/4
	if refreshes {
		p.kept = now
	}
	looks := p.ticket == nil && !p.due && (p.looked == 0 || now-p.looked >= max(minTries*p.interval, minPolled))
	if looks {
		p.looked = now
	}
	ps.mu.Unlock()
	switch {
	case refreshes:
		ps.refresh(p)
	case looks:
		ps.list.leases.View(nil, id.db, id.key, func(v lease.View, err error) { ps.saw(p, v, err) })
	}
}

func (ps *places) addLocked(id placeID, r *lease.LockRequest, now time.Duration) {
	if ps.closed || len(ps.all) >= maxPlaces || ps.ofKey[id.dbKey] >= maxPlacesOfKey || ps.ofPoller[id.poller] >= maxPlacesOfPoller {
		return
	}
	p := &place{id: id, last: now, request: lease.LockRequest{DB: r.DB, Key: r.Key, Mode: lease.Enqueued(r.Mode, nil)}}
	p.end = ps.list.engine.Clock.AfterFunc(p.life(), func() { ps.onTimer(p) })
	ps.all[id] = p
	ps.ofKey[id.dbKey]++
	ps.ofPoller[id.poller]++
	ps.count.Add(1)
}

// saw takes a look at the holder. If it is another one than at the last look, the key was granted to
// another client while this one was refused.
func (ps *places) saw(p *place, v lease.View, err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.over || err != nil {
		return
	}
	before := p.holder
	p.holder = v
	if before.Kind == "" || v.Kind == before.Kind && v.Value == before.Value && !v.Free {
		return
	}
	p.due = true
	ps.list.engine.Clock.AfterFunc(p.interval*3/4, func() { ps.enlist(p) })
}

// enlist requests the ticket of a place.
func (ps *places) enlist(p *place) {
	ps.mu.Lock()
	if p.over {
		ps.mu.Unlock()
		return
	}
	ps.tickets++
	request, life := p.request, p.life()
	ticket := &lease.Ticket{ID: ps.list.name + "-" + strconv.FormatInt(ps.tickets, 36)}
	request.Mode = lease.Enqueued(request.Mode, ticket)
	p.due, p.ticket = false, ticket
	ps.mu.Unlock()
	ps.list.propose(nil, &request, ps.list.maxPerKey, life, func(t *proposal, r quorum.Result) {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		switch {
		case r == quorum.Granted && !p.over:
			p.ticket = &lease.Ticket{ID: ticket.ID, Number: t.ballot.Proposal, Since: ps.list.engine.Clock.Now()}
		default: // the next try requests another
			p.ticket, p.looked = nil, 0
			ps.list.dequeue(&request)
		}
	})
}

// refresh makes the ticket of a place last.
func (ps *places) refresh(p *place) {
	l := ps.list
	keys := l.leases.QueueKeys(&p.request)
	l.engine.Submit(nil, l.engine.Pool.Group(p.id.db), &engine.Message{
		Plan: pool.Props{Key: keys[0], Rest: keys[1:]},
		Write: func(m *pool.SendContext, c *pool.Command) bool {
			ps.mu.Lock()
			over, t, life, writes := p.over, p.ticket, p.life(), p.request.Writes()
			ps.mu.Unlock()
			if over || t == nil {
				return false // its dequeuing is behind, or has been sent
			}
			l.writeEnlist(m, c, keys, "", life)
			c.Args = append(c.Args, t.ID, strconv.FormatInt(t.Number, 10), engine.Flag(writes))
			return true
		},
	})
}

// granted ends the place of a request. If it had none, another's has had its turn, which begins anew.
func (ps *places) granted(r *lease.LockRequest) {
	id := placeOf(r)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[id]
	if p == nil && ps.ofKey[id.dbKey] > 0 {
		for _, other := range ps.all {
			if other.id.dbKey == id.dbKey && other.established() && (p == nil || other.ticket.Number < p.ticket.Number) {
				p = other
			}
		}
	}
	if p != nil {
		ps.endLocked(p)
	}
}

func (ps *places) onTimer(p *place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !p.over {
		ps.endLocked(p)
	}
}

func (ps *places) endLocked(p *place) {
	p.over = true
	p.end.Stop()
	delete(ps.all, p.id)
	if ps.ofKey[p.id.dbKey]--; ps.ofKey[p.id.dbKey] == 0 {
		delete(ps.ofKey, p.id.dbKey)
	}
	if ps.ofPoller[p.id.poller]--; ps.ofPoller[p.id.poller] == 0 {
		delete(ps.ofPoller, p.id.poller)
	}
	ps.count.Add(-1)
	if p.ticket != nil {
		request := p.request
		request.Mode = lease.Enqueued(request.Mode, p.ticket)
		ps.list.dequeue(&request)
	}
}

// end ends all places, and no request gets one any more.
func (ps *places) end() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.closed = true
	for _, p := range ps.all {
		ps.endLocked(p)
	}
}
