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
func (wq *waitQueue) setContenderLocked(w *waiter) {
	wq.contender, wq.hinted = w, false
	place := w.ticket
	if place != nil && place.Number == 0 {
		place = nil
	}
	w.request.Mode = lease.Waiting(lease.LookingIf(w.request.Mode, wq.fair || wq.reads || wq.contested), place)
	if wq.watch.confirmed = wq.unchangedLocked(); !wq.watch.confirmed {
		wq.unwatchLocked()
	}
}

// contend sends the waiter's request to the masters; b may be nil. A waiter that does not take the
// lock only looks whether it would be refused.
func (wq *waitQueue) contend(b *engine.Batch, w *waiter) {
	l := wq.list
	switch {
	case wq.work:
		w.work.contend(b, func(runs time.Duration, err error) {
			l.mu.Lock()
			wq.runsUntil = l.engine.Clock.Now() + runs
			l.mu.Unlock()
			wq.decided(w, lease.Grant{}, err)
		})
	case wq.peekOnly:
		l.leases.View(b, w.request.DB, w.request.Key, func(v lease.View, err error) {
			if err == nil && !v.Free {
				err = engine.ErrHeld
			}
			wq.decided(w, lease.Grant{}, err)
		})
	default:
		l.leases.Lock(b, w.request.LockRequest, func(g lease.Grant, err error) { wq.decided(w, g, err) })
	}
}

// handOverLocked is the waiter whose request leaves together with a release, if any.
func (wq *waitQueue) handOverLocked() *waiter {
	switch {
	case wq.contender != nil:
		wq.hinted = true
		return nil
	case wq.head == nil, wq.list.engine.Recent() < wq.busy.open: // then its timer is set
		return nil
	}
	wq.contested, wq.passed.woken = true, true
	wq.setContenderLocked(wq.head)
	return wq.head
}

func (wq *waitQueue) decided(w *waiter, g lease.Grant, err error) {
	l := wq.list
	l.mu.Lock()
	wq.contender = nil
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
	next := wq.nextLocked(g, err)
	var enlists *lease.LockRequest
	if stays {
		enlists = wq.enlistsLocked(w, err)
	}
	wq.dropIfDoneLocked()
	l.mu.Unlock()
	if enlists != nil {
		wq.enlist(w, enlists, wq.onTicket)
	}
	switch {
	case stays:
	case left:
		w.deliver(left, g, err)
	default:
		w.answer(g, err)
	}
	if next != nil {
		wq.contend(nil, next)
	}
}

// onTicket is called when the head has got its ticket. It contends if only that may have been missing.
func (wq *waitQueue) onTicket() {
	wq.list.mu.Lock()
	if wq.contender == nil && wq.head != nil && wq.watch.behind {
		wq.contendLocked()
		return
	}
	wq.list.mu.Unlock()
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
func (wq *waitQueue) dropIfDoneLocked() {
	if wq.head != nil || wq.contender != nil {
		return
	}
	for _, timer := range []pool.Timer{wq.timer, wq.refreshTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
	wq.unwatchLocked()
	wq.list.forgetLocked(wq)
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
func (wq *waitQueue) nextLocked(g lease.Grant, err error) *waiter {
	head := wq.head
	undecided := IsUndecided(err)
	if undecided {
		wq.lastErr = err
	} else {
		wq.failures, wq.lastErr, wq.everDecided = 0, nil, true
	}
	switch {
	case err == nil: // the key is a lock, or free again
		wq.reads, wq.passed = false, passes{}
	case errors.Is(err, engine.ErrHeld):
		wq.contested = true
		wq.passed.refused(wq.list.engine.Clock.Now())
	}
	switch {
	case head == nil:
		return nil
	case undecided:
		wq.failures++
		wq.setTimerLocked(wq.list.engine.Spread(retryDelay(wq.failures)))
		return nil
	case err == nil && g.Kind() == lease.Exclusive && !wq.hinted:
		// Held by a client that this daemon has just served; if it has left, its release
		// follows.
		if wq.fair { // the next one may be in another daemon's queue
			wq.watchLocked(0)
		} else {
			wq.watchLocked(settleDelay)
		}
		return nil
	case errors.Is(err, engine.ErrHeld) && !wq.hinted:
		if wq.unchangedLocked() {
			wq.pollLocked(wq.runsUntil)
			return nil
		}
		wq.watchLocked(0)
		wq.watch.behind = errors.Is(err, lease.ErrBehind)
		wq.watch.unseen = wq.watch.behind && head.request.Kind() != lease.Exclusive
		return nil
	}
	wq.setContenderLocked(head)
	return head
}

func (wq *waitQueue) setTimerLocked(delay time.Duration) {
	clock := wq.list.engine.Clock
	wq.wakeAt = clock.Now() + delay
	if wq.timer == nil {
		wq.timer = clock.AfterFunc(delay, wq.onTimer)
		return
	}
	wq.timer.Reset(delay)
}

// onTimer watches the key anew, or lets the head contend.
func (wq *waitQueue) onTimer() {
	l := wq.list
	l.mu.Lock()
	if wq.contender != nil || wq.head == nil {
		l.mu.Unlock()
		return
	}
	if early := wq.wakeAt - l.engine.Clock.Now(); early > 0 { // the timer was set anew while it fired, or its clock runs fast
		wq.timer.Reset(early)
		l.mu.Unlock()
		return
	}
	if wq.watch.due {
		wq.watchLocked(0)
		l.mu.Unlock()
		return
	}
	wq.contendLocked()
}

// contendLocked lets the head contend. It unlocks the mutex.
func (wq *waitQueue) contendLocked() {
	w := wq.head
	wq.setContenderLocked(w)
	closes := wq.busy.closes(wq.list.engine.Clock.Now())
	wq.list.mu.Unlock()
	if closes {
		wq.list.closeWindow(w.request.LockRequest)
	}
	wq.contend(nil, w)
}

// watchLocked queries the masters for the remaining time of their copies and subscribes
// to changes. With a delay it does so when that has passed.
func (wq *waitQueue) watchLocked(delay time.Duration) {
	wq.unwatchLocked()
	if delay > 0 {
		wq.watch.due = true
		wq.setTimerLocked(delay)
		return
	}
	wq.watch = queueWatch{active: true, round: wq.watch.round + 1, keys: make([]copies, len(wq.keys))}
	wq.pollLocked(wq.runsUntil)
	for i, key := range wq.keys {
		wq.group.Keys.Watch(wq.list.engine.MasterKey(key), 0, keyWatch{wq, i, wq.watch.round})
	}
}

func (wq *waitQueue) unwatchLocked() {
	for i, key := range wq.keys {
		if wq.watch.active {
			wq.group.Keys.Unwatch(wq.list.engine.MasterKey(key), keyWatch{wq, i, wq.watch.round})
		}
	}
	wq.watch = queueWatch{round: wq.watch.round}
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
func (wq *waitQueue) pollLocked(free time.Duration) {
	e, poll := wq.list.engine, pollUnwatched
	if wq.watch.tracked >= e.Pool.Quorum() && !wq.watch.unseen {
		poll = pollWatched
	}
	wq.setTimerLocked(max(min(free-e.Clock.Now(), e.Spread(poll)), time.Millisecond))
}

// freeAtLocked returns the time at which the head contends unless the masters report a change before. For work that
// is when the attempt has timed out, or now: once a quorum is watched, and if no quorum is left
// whose records have not changed.
func (wq *waitQueue) freeAtLocked(now time.Duration) time.Duration {
	p := wq.list.engine.Pool
	switch {
	case !wq.work:
		return wq.watch.quorumEnds(p.N(), p.Quorum())
	case wq.watch.keys[0].answered() < p.Quorum(), wq.watch.confirmed && wq.unchangedLocked():
		return wq.runsUntil
	}
	return now
}

// foreignLocked reports whether most masters have something at the key that lasts longer than any
// lease. It may be another application's data, for which a plain SET NX would wait for ever. So
// the head contends once more, and from now on with the script that looks at the key: if it
// holds no lock, the answer is ErrWrongType. If it holds one, as one without an expiry, the
// wait goes on. Until then, a wait costs the masters nothing more than a plain one.
func (wq *waitQueue) foreignLocked(now time.Duration) bool {
	e := wq.list.engine
	return !wq.work && !wq.peekOnly && wq.watch.keys[0].lasting(now+e.MaxTTL+e.Late+time.Second) >= e.Pool.Quorum()
}

// unchangedLocked reports, for work, whether a quorum is watched and has reported no change of the
// record. Each end of an attempt that a quorum has acknowledged changes one of these.
func (wq *waitQueue) unchangedLocked() bool {
	return wq.work && wq.watch.active && wq.watch.keys[0].unchanged() >= wq.list.engine.Pool.Quorum()
}
