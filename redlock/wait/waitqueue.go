// This file serves the wait queue of one key. Only its head contends on the masters: a thousand
// waiters cost them what one costs.
//
// The head contends when it becomes the head of a queue whose key is not known to be held. It
// contends again at every hint that the key may be free:
//
//   - a release through this daemon: the release and the head's request leave in one
//     flush, so nothing is wasted between two holders of one daemon;
//   - a report from the masters (pool.Watch): a key that went away or changed on a
//     quorum, or the moment at which the copies of a quorum will have expired;
//   - a timer, for reports that were lost.
//
// A hint is only a hint: the masters always decide the grant. If a hint comes while the head's
// request is in flight, the queue remembers it and the head contends again afterwards. So no
// hint falls between a request and its answer.

package wait

import (
	"errors"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/work"
)

const (
	// settleDelay is how long a queue behind a lock that was granted here waits before it
	// watches the masters. Most such locks are released here, and then the reports would be
	// about this daemon's own release.
	settleDelay = 50 * time.Millisecond
	// pollWatched and pollUnwatched bound what a lost report costs, with a quorum of masters
	// watched and without.
	pollWatched   = 5 * time.Second
	pollUnwatched = 500 * time.Millisecond
	// overtakenPause is how long a daemon waits that was refused a free key: the waiter that is
	// ahead of it is about to take the key, or dead.
	overtakenPause = 30 * time.Millisecond
)

// setContenderLocked notes that the waiter's request is about to leave. The first one for a key is a plain
// SET NX. Whoever comes for a key that others want, too, does not pass the queue of FAIR.
func (ln *waitQueue) setContenderLocked(w *waiter) {
	ln.contender, ln.hinted = w, false
	w.request.Mode = lease.LookingIf(w.request.Mode, ln.reads || ln.contested)
	if w.ticket != nil && w.ticket.Number != 0 {
		w.request.Mode = lease.Enqueued(w.request.Mode, w.ticket)
	}
	if ln.watch.confirmed = ln.unchangedLocked(); !ln.watch.confirmed {
		ln.unwatchLocked()
	}
}

// contend sends the waiter's request to the masters; b may be nil. A waiter that does not take the
// lock only looks whether it would be refused.
func (ln *waitQueue) contend(b *engine.Batch, w *waiter) {
	l := ln.list
	switch {
	case ln.work:
		w.work.contend(b, func(runs time.Duration, err error) {
			l.mu.Lock()
			ln.runsUntil = l.engine.Clock.Now() + runs
			l.mu.Unlock()
			ln.decided(w, lease.Grant{}, err)
		})
	case ln.peekOnly:
		l.leases.View(b, w.request.DB, w.request.Key, func(v lease.View, err error) {
			if err == nil && !v.Free {
				err = engine.ErrHeld
			}
			ln.decided(w, lease.Grant{}, err)
		})
	default:
		l.leases.Lock(b, w.request, func(g lease.Grant, err error) { ln.decided(w, g, err) })
	}
}

// handOverLocked is the waiter whose request leaves together with a release, if any.
func (ln *waitQueue) handOverLocked() *waiter {
	switch {
	case ln.contender != nil:
		ln.hinted = true
		return nil
	case ln.head == nil, ln.list.engine.Recent() < ln.busy.open: // then its timer is set
		return nil
	}
	ln.contested, ln.passed.woken = true, true
	ln.setContenderLocked(ln.head)
	return ln.head
}

func (ln *waitQueue) decided(w *waiter, g lease.Grant, err error) {
	l := ln.list
	l.mu.Lock()
	ln.contender = nil
	left := w.over
	w.noteDowngrade(err)
	stays := !left && (errors.Is(err, engine.ErrHeld) || IsUndecided(err)) && l.engine.Clock.Now() < w.end && !l.closed
	if stays {
		w.firstErr = nil // from here on the wait queue has it
		if errors.Is(err, engine.ErrHeld) {
			if deadlock := l.cycleLocked(w); deadlock != nil {
				stays, err = false, deadlock
			}
		}
	}
	if stays && l.engine.Ownership != nil {
		if moving := w.movingLocked(); moving != nil {
			stays, err = false, moving
		}
	}
	if !stays && !left {
		w.removeLocked()
	}
	next := ln.nextLocked(g, err)
	var enlists *lease.LockRequest
	if stays {
		enlists = ln.enlistsLocked(w, err)
	}
	ln.dropIfDoneLocked()
	l.mu.Unlock()
	if enlists != nil {
		ln.enlist(w, enlists, ln.onTicket)
	}
	switch {
	case stays:
	case left:
		w.deliver(left, g, err)
	default:
		w.answer(g, err)
	}
	if next != nil {
		ln.contend(nil, next)
	}
}

// onTicket is called when the head has got its ticket. It contends if only that may have been missing.
func (ln *waitQueue) onTicket() {
	ln.list.mu.Lock()
	if ln.contender == nil && ln.head != nil && ln.watch.behind {
		ln.contendLocked()
		return
	}
	ln.list.mu.Unlock()
}

// noteDowngrade keeps an error that a later refusal must not hide.
func (w *waiter) noteDowngrade(err error) {
	if n, ok := errors.AsType[*engine.NoQuorum](err); ok && n.Downgrading {
		w.downgrading = n
	}
}

// IsUndecided reports whether the masters could not decide now, but may decide later, in this group.
func IsUndecided(err error) bool {
	if n, ok := errors.AsType[*engine.NoQuorum](err); ok {
		return n.Moving == nil // else it waits for another group
	}
	_, late := errors.AsType[*engine.Expired](err)
	_, busy := errors.AsType[*engine.Busy](err)
	return late || busy
}

// movingLocked is the error of a waiter one of whose keys has left the group.
func (w *waiter) movingLocked() *engine.Moving {
	for _, key := range w.queue.keys {
		if w.work != nil {
			key = work.NameOf(key)
		}
		if o := w.list.engine.Ownership; o.Since(key) == 0 {
			return o.Moving(key)
		}
	}
	return nil
}

// removeLocked removes a waiter from its queue, if it is in one. The caller must then
// answer it, which removes it from the queues on the masters.
func (w *waiter) removeLocked() {
	w.over = true
	if w.timer == nil {
		return // its token is being tried
	}
	w.timer.Stop()
	if e := w.list.edges[w]; e != nil {
		e.stop()
	}
	w.list.count.Add(-1)
	if w.queue != nil {
		w.queue.unlinkLocked(w)
		w.queue.dropIfDoneLocked()
	}
}

// dropIfDoneLocked drops a queue without waiters and without a request in flight.
func (ln *waitQueue) dropIfDoneLocked() {
	if ln.head != nil || ln.contender != nil {
		return
	}
	for _, timer := range []pool.Timer{ln.timer, ln.refreshTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
	ln.unwatchLocked()
	ln.list.forgetLocked(ln)
}

// answer answers a waiter that has been removed, once it has no edges.
func (w *waiter) answer(g lease.Grant, err error) {
	w.leaveQueue()
	l := w.list
	l.mu.Lock()
	e := l.edges[w]
	w.pending = e != nil
	delete(l.edges, w)
	l.mu.Unlock()
	if e == nil {
		w.done(g, err)
		return
	}
	e.delete(func() {
		l.mu.Lock()
		left := !w.pending
		w.pending = false
		l.mu.Unlock()
		w.deliver(left, g, err)
	})
}

// deliver answers a waiter. If its client has left, a grant is given back.
func (w *waiter) deliver(left bool, g lease.Grant, err error) {
	switch {
	case !left:
		w.done(g, err)
	case err == nil:
		w.list.leases.Undelivered(g) // and its release hands over to the next
	}
}

// nextLocked is the waiter that contends after an answer; if nil, the timer is set instead.
func (ln *waitQueue) nextLocked(g lease.Grant, err error) *waiter {
	head := ln.head
	undecided := IsUndecided(err)
	if undecided {
		ln.lastErr = err
	} else {
		ln.failures, ln.lastErr, ln.everDecided = 0, nil, true
	}
	switch {
	case err == nil: // the key is a lock, or free again
		ln.reads, ln.passed = false, passes{}
	case errors.Is(err, engine.ErrHeld):
		ln.contested = true
		ln.passed.refused(ln.list.engine.Clock.Now())
	}
	switch {
	case head == nil:
		return nil
	case undecided:
		ln.failures++
		ln.setTimerLocked(ln.list.engine.Spread(retryDelay(ln.failures)))
		return nil
	case err == nil && g.Kind() == lease.Exclusive && !ln.hinted:
		// Held by a client that this daemon has just served; if it has left, its release
		// follows.
		if ln.fair { // the next one may be in another daemon's queue
			ln.watchLocked(0)
		} else {
			ln.watchLocked(settleDelay)
		}
		return nil
	case errors.Is(err, engine.ErrHeld) && !ln.hinted:
		if ln.unchangedLocked() {
			ln.pollLocked(ln.runsUntil)
			return nil
		}
		ln.watchLocked(0)
		ln.watch.behind = errors.Is(err, lease.ErrBehind)
		ln.watch.unseen = ln.watch.behind && head.request.Kind() != lease.Exclusive
		return nil
	}
	ln.setContenderLocked(head)
	return head
}

func (ln *waitQueue) setTimerLocked(delay time.Duration) {
	clock := ln.list.engine.Clock
	ln.wakeAt = clock.Now() + delay
	if ln.timer == nil {
		ln.timer = clock.AfterFunc(delay, ln.onTimer)
		return
	}
	ln.timer.Reset(delay)
}

// onTimer watches the key anew, or lets the head contend.
func (ln *waitQueue) onTimer() {
	l := ln.list
	l.mu.Lock()
	if ln.contender != nil || ln.head == nil {
		l.mu.Unlock()
		return
	}
	if early := ln.wakeAt - l.engine.Clock.Now(); early > 0 { // the timer was set anew while it fired, or its clock runs fast
		ln.timer.Reset(early)
		l.mu.Unlock()
		return
	}
	if ln.watch.due {
		ln.watchLocked(0)
		l.mu.Unlock()
		return
	}
	ln.contendLocked()
}

// contendLocked lets the head contend. It unlocks the mutex.
func (ln *waitQueue) contendLocked() {
	w := ln.head
	ln.setContenderLocked(w)
	closes := ln.busy.closes(ln.list.engine.Clock.Now())
	ln.list.mu.Unlock()
	if closes {
		ln.list.closeWindow(w.request)
	}
	ln.contend(nil, w)
}

// watchLocked queries the masters for the remaining time of their copies and subscribes
// to changes. With a delay it does so when that has passed.
func (ln *waitQueue) watchLocked(delay time.Duration) {
	ln.unwatchLocked()
	if delay > 0 {
		ln.watch.due = true
		ln.setTimerLocked(delay)
		return
	}
	ln.watch = queueWatch{active: true, round: ln.watch.round + 1, keys: make([]copies, len(ln.keys))}
	ln.pollLocked(ln.runsUntil)
	for i, key := range ln.keys {
		ln.group.Keys.Watch(ln.list.engine.MasterKey(key), 0, keyWatch{ln, i, ln.watch.round})
	}
}

func (ln *waitQueue) unwatchLocked() {
	for i, key := range ln.keys {
		if ln.watch.active {
			ln.group.Keys.Unwatch(ln.list.engine.MasterKey(key), keyWatch{ln, i, ln.watch.round})
		}
	}
	ln.watch = queueWatch{round: ln.watch.round}
}

// keyWatch takes what the masters report of one key of a queue in one round.
type keyWatch struct {
	queue *waitQueue
	index int
	round uint64
}

var _ pool.Watcher = keyWatch{}

// Remains takes one master's answer to Watch.
func (k keyWatch) Remains(lane int, _ uint64, left time.Duration, tracked bool) {
	end := forever
	if left >= 0 {
		end = k.queue.list.engine.Clock.Now() + left
	}
	k.note(lane, end, tracked, false)
}

// Gone takes a master's report that its copy was deleted or changed.
func (k keyWatch) Gone(lane int) { k.note(lane, k.queue.list.engine.Clock.Now(), false, true) }

// note takes when a master's copy ends. If a quorum has none, the head contends for the key;
// otherwise the timer is set to when that will be so.
func (k keyWatch) note(lane int, end time.Duration, tracked, changed bool) {
	ln, l := k.queue, k.queue.list
	l.mu.Lock()
	if !ln.watch.active || k.round != ln.watch.round {
		l.mu.Unlock()
		return
	}
	if tracked && k.index == 0 {
		ln.watch.tracked++
	}
	ln.watch.keys[k.index].note(lane, end, changed)
	if ln.contender != nil {
		l.mu.Unlock()
		return
	}
	now := l.engine.Clock.Now()
	free := ln.freeAtLocked(now)
	switch {
	case ln.head != nil && !ln.reads && ln.foreignLocked(now):
		ln.reads = true
	case free > now || ln.head == nil:
		if !ln.work && ln.watch.keys[0].answered() >= l.engine.Pool.Quorum() {
			ln.busy.free = 0
		}
		ln.pollLocked(free)
		l.mu.Unlock()
		return
	}
	ln.busy.noteFree(now)
	if left := ln.busy.open - now; left > 0 {
		ln.setTimerLocked(left + windowSlack)
		l.mu.Unlock()
		return
	}
	if ln.watch.behind && !changed { // the key is free, but an earlier ticket may take it first
		ln.setTimerLocked(l.engine.Spread(overtakenPause))
		l.mu.Unlock()
		return
	}
	ln.passed.woken = !ln.work && !ln.peekOnly
	ln.contendLocked()
}

// pollLocked sets the timer to when the keys will be free, or to the next poll if that is earlier.
func (ln *waitQueue) pollLocked(free time.Duration) {
	e, poll := ln.list.engine, pollUnwatched
	if ln.watch.tracked >= e.Pool.Quorum() && !ln.watch.unseen {
		poll = pollWatched
	}
	ln.setTimerLocked(max(min(free-e.Clock.Now(), e.Spread(poll)), time.Millisecond))
}

// freeAtLocked is when the head contends unless the masters report a change before. For work that
// is when the attempt has timed out, or now: once a quorum is watched, and if no quorum is left
// whose records have not changed.
func (ln *waitQueue) freeAtLocked(now time.Duration) time.Duration {
	p := ln.list.engine.Pool
	switch {
	case !ln.work:
		return ln.watch.quorumEnds(p.N(), p.Quorum())
	case ln.watch.keys[0].answered() < p.Quorum(), ln.watch.confirmed && ln.unchangedLocked():
		return ln.runsUntil
	}
	return now
}

// foreignLocked reports whether most masters have something at the key that lasts longer than any
// lease. It may be another application's data, for which a plain SET NX would wait for ever. So
// the head contends once more, and from now on with the script that looks at the key: if it
// holds no lock, the answer is ErrWrongType. If it holds one, as one without an expiry, the
// wait goes on. Until then, a wait costs the masters nothing more than a plain one.
func (ln *waitQueue) foreignLocked(now time.Duration) bool {
	e := ln.list.engine
	return !ln.work && !ln.peekOnly && ln.watch.keys[0].lasting(now+e.MaxTTL+e.Late+time.Second) >= e.Pool.Quorum()
}

// unchangedLocked reports, for work, whether a quorum is watched and has reported no change of the
// record. Each end of an attempt that a quorum has acknowledged changes one of these.
func (ln *waitQueue) unchangedLocked() bool {
	return ln.work && ln.watch.active && ln.watch.keys[0].unchanged() >= ln.list.engine.Pool.Quorum()
}
