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
	// overtakenPause is how long a daemon waits that was refused a free key: the waiter that is
	// ahead of it is about to take the key, or dead.
	overtakenPause = 30 * time.Millisecond
	// fasterPause is how long a waiter waits whose ticket came too late on most masters.
	fasterPause = 2 * time.Millisecond
)

// enqueueCall proposes one ticket to all masters.
type enqueueCall struct {
	engine.Plain
	ballot engine.Ballot
	w      *waiter
	keys   []string

	full int // masters whose queue is full
}

var _ engine.Question = (*enqueueCall)(nil)

// enqueue gets a waiter its ticket before the waiter enters a wait queue of this daemon.
func (s *Queues) enqueue(b *engine.Batch, w *waiter) {
	s.mu.Lock()
	if !s.admitLocked(w) {
		return
	}
	s.enqueued++
	w.request.Ticket = &lease.Ticket{ID: s.name + "/" + strconv.FormatInt(s.enqueued, 36)}
	s.mu.Unlock()
	s.propose(b, w)
}

func (s *Queues) propose(b *engine.Batch, w *waiter) {
	e := &enqueueCall{w: w, keys: s.leases.QueueKeys(&w.request)}
	e.ballot.Ask(s.engine, b, s.engine.Pool.Group(w.request.DB), nil, e)
}

func (e *enqueueCall) Props() pool.Props {
	return pool.Props{Key: e.keys[0], Rest: e.keys[1:], StartsNew: true, Sealed: true}
}

// Command proposes the fence of the ballot as the ticket's number, so it rises over all daemons
// that have received one another's.
func (e *enqueueCall) Command(m *pool.SendContext, c *pool.Command) bool {
	s, r := e.w.waits, &e.w.request
	s.writeEnlist(m, c, e.keys, strconv.Itoa(s.maxPerKey))
	c.Args = append(c.Args, r.Ticket.ID, strconv.FormatInt(e.ballot.Proposal, 10), engine.Flag(r.Writes()))
	return true
}

// writeEnlist writes a command to which waiters are added.
func (s *Queues) writeEnlist(m *pool.SendContext, c *pool.Command, keys []string, full string) {
	c.Set("EVALSHA", s.engine.Scripts.Enlist, strconv.Itoa(len(keys)))
	c.Args = append(append(c.Args, keys...), strconv.FormatInt(m.Time/1000+ticketTimeout.Milliseconds(), 10), full)
}

// Read: a master refuses a ticket whose number is too low, or whose queue is full or other data.
func (e *enqueueCall) Read(answer pool.Answer) engine.Reading {
	n := engine.Numbers(answer.Reply)
	switch {
	case engine.IsWrongType(answer.Reply) && answer.Seal.Good:
		return engine.WrongType
	case answer.Reply.Err != nil || len(n) == 0 || !engine.CountsAsVote(answer):
		return engine.Uncounted
	case n[0] == 1:
		return engine.Yes
	case n[0] != 2:
		e.full++
	}
	return engine.No
}

// Decide waits for all masters unless the ticket is established: the error is about all of them.
func (e *enqueueCall) Decide(t *quorum.Tally) quorum.Result {
	if r := t.Result(); r == quorum.Granted || t.Pending() == 0 {
		return r
	}
	return quorum.Undecided
}

func (e *enqueueCall) Decided(r quorum.Result) {
	l, t := e.w.waits, &e.ballot.Tally
	switch {
	case r == quorum.Granted:
		l.established(e.w, e.ballot.Proposal)
	case e.full > t.N-t.Quorum:
		e.w.rejectEnqueue(&engine.Busy{What: "waiters for this key in all daemons", Limit: l.maxPerKey, Option: "--max-waiters-per-key"})
	case e.ballot.MostlyWrongType():
		e.w.rejectEnqueue(&engine.ForeignData{Keys: e.keys})
	default:
		l.engine.Clock.AfterFunc(l.engine.Spread(e.pause()), func() { l.proposeAgain(e.w) })
	}
}

// pause is how long the daemon waits before the next proposal. The end of the wait may have to report
// why this one failed.
func (e *enqueueCall) pause() time.Duration {
	w, t := e.w, &e.ballot.Tally
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	if t.Answered() >= t.Quorum {
		w.failures, w.everRefused = 0, true
		return fasterPause
	}
	w.firstErr = e.ballot.NoQuorum("it waits for its place in the queue")
	w.failures++
	return retryDelay(w.failures)
}

// proposeAgain proposes the next ticket, unless the wait is over.
func (s *Queues) proposeAgain(w *waiter) {
	s.mu.Lock()
	over := w.over || s.closed
	s.mu.Unlock()
	if over {
		w.rejectEnqueue(engine.ErrShutdown)
		return
	}
	s.propose(nil, w)
}

// rejectEnqueue ends a wait that got no ticket, unless it is over.
func (w *waiter) rejectEnqueue(err error) {
	w.waits.mu.Lock()
	if !w.over {
		w.endLocked(err)
		return
	}
	w.waits.mu.Unlock()
	w.leaveQueue()
}

// established puts a waiter into its wait queue, by the number of its ticket.
func (s *Queues) established(w *waiter, ticket int64) {
	s.mu.Lock()
	if w.over || s.closed { // while it was on its way into the wait queue
		s.mu.Unlock()
		w.rejectEnqueue(engine.ErrShutdown)
		return
	}
	w.request.Ticket.Number, w.request.Ticket.Since = ticket, s.engine.Clock.Now()
	w.firstErr = nil
	s.joinLocked(nil, w)
}

// leaveQueue takes the waiter out of its queues on the masters, if it is in any. On a master
// that does not receive it, the waiter's ticket expires in time.
func (w *waiter) leaveQueue() {
	if w.request.Ticket == nil {
		return
	}
	l := w.waits
	keys, id := l.leases.QueueKeys(&w.request), w.request.Ticket.ID
	l.engine.Submit(nil, l.engine.Pool.Group(w.request.DB), &engine.Message{
		Plan: pool.Props{Key: keys[0], Rest: keys[1:]},
		Write: func(_ *pool.SendContext, c *pool.Command) bool {
			c.Set("EVALSHA", l.engine.Scripts.Dequeue, strconv.Itoa(len(keys)))
			c.Args = append(append(c.Args, keys...), id)
			return true
		},
	})
}

// refreshTickets refreshes all tickets of a wait queue, and repeats.
func (ln *waitQueue) refreshTickets() {
	s := ln.waits
	s.mu.Lock()
	if ln.length == 0 { // a request of a waiter that left is still in flight: the next waiter sets the timer anew
		ln.refreshTimer = nil
		s.mu.Unlock()
		return
	}
	ln.refreshTimer.Reset(refreshInterval)
	parts, request := ln.partsLocked(), ln.head.request
	s.mu.Unlock()
	keys := s.leases.QueueKeys(&request)
	var b engine.Batch
	for part := range parts {
		b.Add(ln.group, ln.ticketRefresh(keys, part))
	}
	b.Send()
}

// partsLocked is how many commands refresh a wait queue.
func (ln *waitQueue) partsLocked() int {
	return (ln.length + maxTicketsPerRefresh - 1) / maxTicketsPerRefresh
}

// refreshAfterReconnect refreshes all tickets on a master that is back: it may have forgotten
// them, or counted them as dead. The order is that of the keys.
func (s *Queues) refreshAfterReconnect(db int) (again []pool.Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []*waitQueue
	for _, ln := range s.queues {
		if ln.fair && ln.db == db && ln.length > 0 {
			lines = append(lines, ln)
		}
	}
	slices.SortFunc(lines, func(a, b *waitQueue) int {
		return cmp.Or(cmp.Compare(a.queueID.keys, b.queueID.keys), cmp.Compare(engine.Flag(a.peekOnly), engine.Flag(b.peekOnly)))
	})
	for _, ln := range lines {
		keys := s.leases.QueueKeys(&ln.head.request)
		for part := range ln.partsLocked() {
			again = append(again, ln.ticketRefresh(keys, part))
		}
	}
	return again
}

// ticketRefresh refreshes one part of a wait queue. The waiters in it are looked up when the
// command is written: a waiter that left before must not be put back, and the command of one
// that leaves later comes later.
func (ln *waitQueue) ticketRefresh(keys []string, part int) *engine.Message {
	return &engine.Message{
		Plan:  pool.Props{Key: keys[0], Rest: keys[1:]},
		Write: func(m *pool.SendContext, c *pool.Command) bool { return ln.writeRefresh(m, c, keys, part) },
	}
}

func (ln *waitQueue) writeRefresh(m *pool.SendContext, c *pool.Command, keys []string, part int) bool {
	s := ln.waits
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeEnlist(m, c, keys, "")
	at, kept := 0, 0
	for w := ln.head; w != nil; w = w.next {
		if at++; (at-1)/maxTicketsPerRefresh != part {
			continue
		}
		stand := w.request.Ticket
		c.Args = append(c.Args, stand.ID, strconv.FormatInt(stand.Number, 10), engine.Flag(w.request.Writes()))
		kept++
	}
	return kept > 0
}
