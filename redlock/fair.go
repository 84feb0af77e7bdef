// FAIR: locks in the order of arrival, over all daemons.
//
// A waiter with FAIR has a ticket in a queue on the masters. Its number is the same on all of
// them: so masters can disagree about which waiters are in the queue, but never about their
// order. A master accepts a ticket only above the last one it has. A waiter is established once
// a quorum has accepted its ticket. A lock script of FAIR refuses every request but that of the
// first live waiter in the queue. A quorum for another request would need one of the masters
// where an established waiter is ahead of it. Requests without FAIR do not check the queue.
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

package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"redlockd/pool"
)

const (
	// ticketTimeout is how long a ticket stays in a queue without a refresh from its daemon: a
	// dead daemon blocks no waiter for longer.
	standLife = 3 * time.Second
	// refreshInterval leaves room for two lost messages.
	keepEvery = standLife / 3
	// maxTicketsPerRefresh is how many tickets one command refreshes.
	keptTogether = 64
	// overtakenPause is how long a daemon waits that was refused a free key: the waiter that is
	// ahead of it is about to take the key, or dead.
	overtakenPause = 30 * time.Millisecond
)

// errBehind: refused because another waiter is ahead in the queue.
var errBehind = fmt.Errorf("%w, or another waiter is ahead in the queue", ErrHeld)

// ticket is a place in a queue.
type standing struct {
	id     string
	ticket int64         // 0 until it is established
	since  time.Duration // when that was
}

// queueKeys are the keys of the queues of a request.
func (l *Locker) queueKeys(r *LockRequest) []string {
	var keys []string
	for _, key := range append([]Key{r.Key}, r.More...) {
		for _, kind := range []string{"q:", "qx:", "qw:"} {
			keys = append(keys, l.options.KeyPrefix+"redlockd:"+kind+string(key))
		}
	}
	return keys
}

// fairMode is a lockMode that checks the queue first.
type fairly struct {
	form
	behind int // masters where another waiter is ahead
}

var _ form = (*fairly)(nil)

func (f *fairly) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	f.form.command(a, m, c, end)
	r := &a.call.request
	ticket, id := "", ""
	if r.stand != nil {
		ticket, id = strconv.FormatInt(r.stand.ticket, 10), r.stand.id
	}
	locks := 1 + len(r.More)
	queues := a.call.locker.queueKeys(r)
	words := append([]string{"EVALSHA", a.call.locker.script.fair[c.Args[1]], strconv.Itoa(locks + len(queues))}, c.Args[3:3+locks]...)
	words = append(append(words, queues...), c.Args[3+locks:]...)
	c.Set(append(words, ticket, id, flag(r.Mode != Shared), strconv.Itoa(locks))...)
}

func (f *fairly) read(a *attempt, answer pool.Answer) said {
	if n := words(answer.Reply); answer.Reply.Err == nil && len(n) == 1 && n[0] == -2 {
		f.behind++
		return said{refused: true}
	}
	return f.form.read(a, answer)
}

func (f *fairly) after(a *attempt, v verdict) (form, error) {
	next, err := f.form.after(a, v)
	a.mu.Lock()
	behind := f.behind
	a.mu.Unlock()
	if errors.Is(err, ErrHeld) && behind > 0 {
		err = errBehind
	}
	if next == nil {
		return nil, err
	}
	return &fairly{form: next}, err
}

// enqueueCall proposes one ticket to all masters.
type enlisting struct {
	w      *waiter
	keys   []string
	ticket int64

	mu       sync.Mutex
	missing  missing
	accepted int
	refused  int // the ticket's number was too low
	full     int
	silent   int
	over     bool
}

var _ pool.Operation = (*enlisting)(nil)

// enqueue gets a waiter its ticket before the waiter enters a wait queue of this daemon.
func (s *waiters) enlist(b *Batch, w *waiter) {
	s.mu.Lock()
	if w.over {
		s.mu.Unlock()
		return
	}
	if err := s.roomLocked(w); err != nil {
		w.over = true
		s.mu.Unlock()
		w.done(Grant{}, err)
		return
	}
	s.stood++
	w.request.stand = &standing{id: s.name + "/" + strconv.FormatInt(s.stood, 36)}
	s.count.Add(1)
	w.timer = s.locker.clock.AfterFunc(max(w.end-s.locker.clock.Now(), 0), w.timeOver)
	s.mu.Unlock()
	s.propose(b, w)
}

func (s *waiters) propose(b *Batch, w *waiter) {
	e := &enlisting{w: w, keys: s.locker.queueKeys(&w.request)}
	s.locker.submit(b, s.locker.pool.Group(w.request.DB), e)
}

func (e *enlisting) Plan() pool.Plan {
	return pool.Plan{Key: e.keys[0], Rest: e.keys[1:], Begins: true, Sealed: true}
}

// Propose: the ticket's number is a fence, so it rises over all daemons that have received one
// another's.
func (e *enlisting) Propose(fence int64) { e.ticket = fence }

func (e *enlisting) Command(m *pool.Moment, c *pool.Command) bool {
	l, r := e.w.waits.locker, &e.w.request
	c.Set("EVALSHA", l.script.enlist, strconv.Itoa(len(e.keys)))
	c.Args = append(c.Args, e.keys...)
	c.Args = append(c.Args, strconv.FormatInt(e.ticket, 10), r.stand.id,
		strconv.FormatInt(m.Time/1000+standLife.Milliseconds(), 10), flag(r.Mode != Shared), strconv.Itoa(l.options.MaxWaitersPerKey))
	return true
}

func (e *enlisting) Answer(answer pool.Answer) {
	l := e.w.waits.locker
	n := words(answer.Reply)
	e.mu.Lock()
	if e.over { // the fields are now read without the lock
		e.mu.Unlock()
		return
	}
	e.missing.counts(answer.Lane)
	switch {
	case answer.Reply.Err != nil || len(n) == 0 || !answer.Seal.Good || answer.Seal.Young:
		e.silent++
		e.missing.counted &^= 1 << answer.Lane
		e.missing.lacks(answer.Lane, l.pool.Absence(&answer))
	case n[0] == 1:
		e.accepted++
	case n[0] == 2:
		e.refused++
	default:
		e.full++
	}
	all := e.accepted+e.refused+e.full+e.silent == l.pool.N()
	quorum := l.pool.Quorum()
	if e.accepted < quorum && !all {
		e.mu.Unlock()
		return
	}
	e.over = true
	established, full, answered := e.accepted >= quorum, e.full > l.pool.N()-quorum, l.pool.N()-e.silent
	e.mu.Unlock()
	switch {
	case established:
		e.w.waits.established(e.w, e.ticket)
	case full:
		e.w.refusedPlace(&Busy{What: "waiters for this key in all daemons", Limit: l.options.MaxWaitersPerKey, Option: "--max-waiters-per-key"})
	default:
		delay := 2 * time.Millisecond // another waiter was faster
		var trouble error
		if answered < quorum {
			delay = 50 * time.Millisecond
			trouble = l.noQuorum(&e.missing, "it waits for its place in the queue")
		}
		e.w.waits.noPlace(e.w, trouble)
		l.clock.AfterFunc(delay/2+l.pool.Options().Jitter(delay), func() { e.w.waits.proposeAgain(e.w) })
	}
}

// noteEnqueueFailed notes the result of a proposal: the end of the wait may have to report it.
func (s *waiters) noPlace(w *waiter, trouble error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if trouble != nil {
		w.trouble = trouble
		return
	}
	w.known = true
}

// proposeAgain proposes the next ticket, unless the wait is over.
func (s *waiters) proposeAgain(w *waiter) {
	s.mu.Lock()
	over, ended := w.over, s.ended
	s.mu.Unlock()
	switch {
	case over:
		w.stepOut()
	case ended:
		w.refusedPlace(ErrShutdown)
	default:
		s.propose(nil, w)
	}
}

// rejectEnqueue ends a wait that got no ticket.
func (w *waiter) refusedPlace(err error) {
	s := w.waits
	s.mu.Lock()
	over := w.over
	if !over {
		w.over = true
		w.timer.Stop()
		s.count.Add(-1)
	}
	s.mu.Unlock()
	w.stepOut()
	if !over {
		w.done(Grant{}, err)
	}
}

// established puts a waiter into its wait queue, by the number of its ticket.
func (s *waiters) established(w *waiter, ticket int64) {
	s.mu.Lock()
	if w.over {
		s.mu.Unlock()
		w.stepOut()
		return
	}
	if s.ended { // while it was on its way into the wait queue
		s.mu.Unlock()
		w.refusedPlace(ErrShutdown)
		return
	}
	w.request.stand.ticket, w.request.stand.since = ticket, s.locker.clock.Now()
	w.trouble = nil
	ln := s.lineLocked(w)
	ln.insertLocked(w)
	if ln.keep == nil {
		ln.keep = s.locker.clock.AfterFunc(keepEvery, ln.keepStanding)
		db := ln.db
		ln.group.OnReturn(func() []pool.Operation { return s.keptAgain(db) })
	}
	contends := ln.head == w && ln.asked == nil
	if contends {
		ln.askedLocked(w)
	}
	s.mu.Unlock()
	if contends {
		ln.ask(nil, w)
	}
}

// leaveQueue takes the waiter out of its queues on the masters, if it is in any.
func (w *waiter) stepOut() {
	if w.request.stand == nil {
		return
	}
	l := w.waits.locker
	l.submit(nil, l.pool.Group(w.request.DB), &steppingOut{l, l.queueKeys(&w.request), w.request.stand.id})
}

// dequeueCall takes one waiter out of its queues. On a master that does not receive it, the
// waiter's ticket expires in time.
type steppingOut struct {
	locker *Locker
	keys   []string
	id     string
}

var _ pool.Operation = (*steppingOut)(nil)

func (s *steppingOut) Plan() pool.Plan    { return pool.Plan{Key: s.keys[0], Rest: s.keys[1:]} }
func (s *steppingOut) Propose(int64)      {}
func (s *steppingOut) Answer(pool.Answer) {}
func (s *steppingOut) Command(_ *pool.Moment, c *pool.Command) bool {
	c.Set("EVALSHA", s.locker.script.stepOut, strconv.Itoa(len(s.keys)))
	c.Args = append(append(c.Args, s.keys...), s.id)
	return true
}

// refreshTickets refreshes all tickets of a wait queue, and repeats.
func (ln *line) keepStanding() {
	s := ln.waits
	s.mu.Lock()
	if ln.length == 0 { // a request of a waiter that left is still in flight: the next waiter sets the timer anew
		ln.keep = nil
		s.mu.Unlock()
		return
	}
	ln.keep.Reset(keepEvery)
	parts, request := ln.partsLocked(), ln.head.request
	s.mu.Unlock()
	keys := s.locker.queueKeys(&request)
	var b Batch
	for part := range parts {
		b.Add(ln.group, &keeping{line: ln, keys: keys, part: part})
	}
	b.Send()
}

// partsLocked is how many commands refresh a wait queue.
func (ln *line) partsLocked() int { return (ln.length + keptTogether - 1) / keptTogether }

// refreshAfterReconnect refreshes all tickets on a master that is back: it may have forgotten
// them, or counted them as dead. The order is that of the keys.
func (s *waiters) keptAgain(db int) (again []pool.Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []*line
	for _, ln := range s.lines {
		if ln.fair && ln.db == db && ln.length > 0 {
			lines = append(lines, ln)
		}
	}
	slices.SortFunc(lines, func(a, b *line) int {
		return cmp.Or(cmp.Compare(a.lineID.keys, b.lineID.keys), cmp.Compare(flag(a.looks), flag(b.looks)))
	})
	for _, ln := range lines {
		keys := s.locker.queueKeys(&ln.head.request)
		for part := range ln.partsLocked() {
			again = append(again, &keeping{line: ln, part: part, keys: keys})
		}
	}
	return again
}

// ticketRefresh refreshes one part of a wait queue. The waiters in it are looked up when the
// command is written: a waiter that left before must not be put back, and the command of one
// that leaves later comes later.
type keeping struct {
	line *line
	keys []string
	part int
}

var _ pool.Operation = (*keeping)(nil)

func (k *keeping) Plan() pool.Plan    { return pool.Plan{Key: k.keys[0], Rest: k.keys[1:]} }
func (k *keeping) Propose(int64)      {}
func (k *keeping) Answer(pool.Answer) {}
func (k *keeping) Command(m *pool.Moment, c *pool.Command) bool {
	s := k.line.waits
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Set("EVALSHA", s.locker.script.keep, strconv.Itoa(len(k.keys)))
	c.Args = append(append(c.Args, k.keys...), strconv.FormatInt(m.Time/1000+standLife.Milliseconds(), 10))
	at, kept := 0, 0
	for w := k.line.head; w != nil; w = w.next {
		if at++; (at-1)/keptTogether != k.part {
			continue
		}
		stand := w.request.stand
		c.Args = append(c.Args, stand.id, strconv.FormatInt(stand.ticket, 10), flag(w.request.Mode != Shared))
		kept++
	}
	return kept > 0
}
