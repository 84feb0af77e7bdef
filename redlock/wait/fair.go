// FAIR: locks in the order of arrival, over all daemons.
//
// A waiter with FAIR has a ticket in a queue on the masters. Its number is the same on all of
// them: so masters can disagree about which waiters are in the queue, but never about their
// order. A master accepts a ticket only above the last one it has. A waiter is established once
// a quorum has accepted its ticket. A lock script of FAIR refuses every request but that of the
// first live waiter in the queue. A quorum for another request would need one of the masters
// where an established waiter is ahead of it. See lease/queuecheck.go for requests without FAIR.
//
// A daemon refreshes the tickets of its waiters every refreshInterval. It also refreshes them
// at once on a master that is back, before any other command, and on all masters when the
// daemon finds that it was paused. Tickets of a dead daemon expire after ticketTimeout. The
// queue's keys go with the last waiter.
//
// What can still be lost: a master that has received nothing from a daemon for ticketTimeout
// counts the daemon as dead. So a daemon that was paused, or cut off from masters, for longer
// than ticketTimeout less refreshInterval may find its waiters gone there. Once they are gone
// from a quorum, other requests overtake them: nothing distinguishes this from a dead daemon.
// Each master gives the waiters their old places back, with their tickets, when it receives
// them again. Until then it may have voted for daemons that were back before. A master that has
// forgotten everything is quarantined until long after that, unless the operator has switched
// this off.

package wait

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/quorum"
)

const (
	// ticketTimeout is how long a ticket stays in a queue without a refresh from its daemon: a
	// dead daemon blocks no waiter for longer.
	ticketTimeout = 3 * time.Second
	// refreshInterval leaves room for two lost messages.
	refreshInterval = ticketTimeout / 3
	// maxTicketsPerRefresh is how many tickets one command refreshes.
	maxTicketsPerRefresh = 64
	// fasterPause is how long a waiter waits whose ticket came too late on most masters.
	fasterPause = 2 * time.Millisecond
)

// proposal proposes one ticket to all masters.
type proposal struct {
	engine.Plain
	ballot  engine.Ballot
	list    *waitList
	request *lease.LockRequest
	keys    []string
	most    int           // waiters of one key, in all daemons
	life    time.Duration // how long the ticket stays without a refresh
	full    int           // masters whose queue is full
	decided func(*proposal, quorum.Result)
}

var _ engine.Question = (*proposal)(nil)

func (l *waitList) propose(b *engine.Batch, r *lease.LockRequest, most int, life time.Duration, decided func(*proposal, quorum.Result)) {
	p := &proposal{list: l, request: r, keys: l.leases.QueueKeys(r), most: most, life: life, decided: decided}
	p.ballot.Ask(l.engine, b, l.engine.Pool.Group(r.DB), nil, p)
}

func (p *proposal) Props() pool.Props {
	return pool.Props{Key: p.keys[0], Rest: p.keys[1:], StartsNew: true, Sealed: true}
}

// Command proposes the fence of the ballot as the ticket's number, so it rises over all daemons
// that have received one another's.
func (p *proposal) Command(m *pool.SendContext, c *pool.Command) bool {
	p.list.writeEnlist(m, c, p.keys, strconv.Itoa(p.most), p.life)
	c.Args = append(c.Args, p.request.Ticket().ID, strconv.FormatInt(p.ballot.Proposal, 10), engine.Flag(p.request.Writes()))
	return true
}

// writeEnlist writes a command to which waiters are added.
func (l *waitList) writeEnlist(m *pool.SendContext, c *pool.Command, keys []string, full string, life time.Duration) {
	c.Set("EVALSHA", l.engine.Scripts.Enlist, strconv.Itoa(len(keys)))
	c.Args = append(append(c.Args, keys...), strconv.FormatInt(m.Time/1000+life.Milliseconds(), 10), full)
}

// Read: a master refuses a ticket whose number is too low, or whose queue is full or other data.
func (p *proposal) Read(answer pool.Answer) engine.Reading {
	n := engine.Numbers(answer.Reply)
	switch {
	case engine.IsWrongType(answer.Reply) && answer.Seal.Good:
		return engine.WrongType
	case answer.Reply.Err != nil || len(n) == 0 || !engine.CountsAsVote(answer):
		return engine.Uncounted
	case n[0] == 1:
		return engine.Yes
	case n[0] != 2:
		p.full++
	}
	return engine.No
}

// Decide waits for all masters unless the ticket is established: the error is about all of them.
func (p *proposal) Decide(t *quorum.Tally) quorum.Result {
	if r := t.Result(); r == quorum.Granted || t.Pending() == 0 {
		return r
	}
	return quorum.Undecided
}

func (p *proposal) Decided(r quorum.Result) { p.decided(p, r) }

// err returns the reason for which no further proposal can succeed, nil if one can.
func (p *proposal) err() error {
	switch t := &p.ballot.Tally; {
	case p.full > t.N-t.Quorum:
		return &engine.Busy{What: "waiters for this key in all daemons", Limit: p.most, Option: "--max-waiters-per-key"}
	case p.ballot.MostlyWrongType():
		return &engine.ForeignData{Keys: p.keys}
	}
	return nil
}

// leaveQueue takes the waiter out of its queues on the masters, if it is in any. On a master
// that does not receive it, the waiter's ticket expires in time.
func (w *waiter) leaveQueue() {
	r := w.request.LockRequest
	if r.Mode = lease.Enqueued(r.Mode, w.ticket); w.ticket != nil {
		w.list.dequeue(&r)
	}
}

// dequeue takes the ticket of a request out of its queues.
func (l *waitList) dequeue(r *lease.LockRequest) {
	keys, id := l.leases.QueueKeys(r), r.Ticket().ID
	l.engine.Submit(nil, l.engine.Pool.Group(r.DB), &engine.Message{
		Plan: pool.Props{Key: keys[0], Rest: keys[1:]},
		Write: func(_ *pool.SendContext, c *pool.Command) bool {
			c.Set("EVALSHA", l.engine.Scripts.Dequeue, strconv.Itoa(len(keys)))
			c.Args = append(append(c.Args, keys...), id)
			return true
		},
	})
}

// windowID is the ticket of a window, see window.go.
const windowID = "window"

// closeWindow takes the window before a request out of the queues, so that no master is behind the others with
// its end: a lock of a bare quorum lasts less well.
func (l *waitList) closeWindow(r lease.LockRequest) {
	r.Mode = lease.Enqueued(r.Mode, &lease.Ticket{ID: windowID})
	l.dequeue(&r)
}

// refreshLocked makes sure that the tickets of a wait queue are refreshed.
func (wq *waitQueue) refreshLocked() {
	if wq.refreshTimer != nil {
		return
	}
	l, db := wq.list, wq.db
	wq.refreshTimer = l.engine.Clock.AfterFunc(refreshInterval, wq.refreshTickets)
	wq.group.OnReconnect(func() []pool.Operation { return l.refreshAfterReconnect(db) })
}

// refreshTickets refreshes all tickets of a wait queue, and repeats.
func (wq *waitQueue) refreshTickets() {
	l := wq.list
	l.mu.Lock()
	if wq.ticketsLocked() == 0 { // the next ticket sets the timer anew
		wq.refreshTimer = nil
		l.mu.Unlock()
		return
	}
	wq.refreshTimer.Reset(refreshInterval)
	again := wq.refreshesLocked()
	l.mu.Unlock()
	var b engine.Batch
	for _, one := range again {
		b.Add(wq.group, one)
	}
	b.Send()
}

// refreshAfterReconnect refreshes all tickets on a master that is back: it may have forgotten
// them, or counted them as dead. The order is that of the keys.
func (l *waitList) refreshAfterReconnect(db int) (again []pool.Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var queues []*waitQueue
	for _, ln := range l.queues {
		if ln.db == db && ln.ticketsLocked() > 0 {
			queues = append(queues, ln)
		}
	}
	slices.SortFunc(queues, func(a, b *waitQueue) int {
		return cmp.Or(cmp.Compare(a.queueID.keys, b.queueID.keys), cmp.Compare(engine.Flag(a.fair), engine.Flag(b.fair)))
	})
	for _, ln := range queues {
		again = append(again, ln.refreshesLocked()...)
	}
	return again
}

// ticketsLocked counts the first waiters that have an established ticket: all, or the head of a
// queue without FAIR at most.
func (wq *waitQueue) ticketsLocked() int {
	switch {
	case wq.fair:
		return wq.length
	case wq.head != nil && wq.head.ticket != nil && wq.head.ticket.Number != 0:
		return 1
	}
	return 0
}

// refreshesLocked are the commands that refresh all tickets of a wait queue.
func (wq *waitQueue) refreshesLocked() (again []pool.Operation) {
	keys := wq.list.leases.QueueKeys(&wq.head.request.LockRequest)
	for part := 0; part*maxTicketsPerRefresh < wq.ticketsLocked(); part++ {
		again = append(again, &engine.Message{
			Plan:  pool.Props{Key: keys[0], Rest: keys[1:]},
			Write: func(m *pool.SendContext, c *pool.Command) bool { return wq.writeRefresh(m, c, keys, part) },
		})
	}
	return again
}

// writeRefresh refreshes one part of a wait queue. The waiters in it are looked up when the
// command is written: a waiter that left before must not be put back, and the command of one
// that leaves later comes later.
func (wq *waitQueue) writeRefresh(m *pool.SendContext, c *pool.Command, keys []string, part int) bool {
	wq.list.mu.Lock()
	defer wq.list.mu.Unlock()
	wq.list.writeEnlist(m, c, keys, "", ticketTimeout)
	at, kept := 0, 0
	for w := wq.head; w != nil && at < wq.ticketsLocked(); w = w.next {
		if at++; (at-1)/maxTicketsPerRefresh != part {
			continue
		}
		stand := w.ticket
		c.Args = append(c.Args, stand.ID, strconv.FormatInt(stand.Number, 10), engine.Flag(w.request.Writes()))
		kept++
	}
	return kept > 0
}
