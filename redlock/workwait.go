// This file keeps the requests that wait while an attempt at a piece of work runs.
//
// Each request polls by itself every workPollInterval. There is no wait queue, because
// the end of an attempt is no release of a key that masters would announce. The requests
// count with those that wait for locks, towards the same limit, and end as those do.

package redlock

import (
	"cmp"
	"slices"
	"time"

	"redlockd/pool"
)

// workWaits are the requests for work that wait; the mutex of waiters guards them.
type workWaits struct {
	parked  map[*workCall]struct{} // between two polls
	started int64                  // how many have begun to wait
}

// workWait is the wait of one request; the mutex of waiters guards it.
type workWait struct {
	counted bool // from the first "running" to the answer
	number  int64
	timer   pool.Timer
}

// finish answers, or waits while another attempt runs and the caller's wait lasts.
func (w *workCall) finish(a Work, err error) {
	l := w.locker
	left := w.began + w.request.Wait - l.engine.Clock.Now()
	switch {
	case err != nil || a.State != WorkRunning || left <= 0 || w.left.Load():
		w.answer(a, err)
	case l.engine.Closing() || l.waits.isClosed():
		w.answer(Work{}, ErrShutdown)
	default:
		w.park(max(time.Millisecond, min(a.Retry, workPollInterval, left)), a.Attempt)
	}
}

// park retries the attempt that runs after the delay. It retries that number, not the
// next one: if the attempt is given back, its number is not used up. The timer and the
// end of the daemon both take the call out of parked; the one that does so continues it.
// If the daemon ends between finish's check and here, the next poll finds it.
func (w *workCall) park(delay time.Duration, attempt int64) {
	l, s, limit := w.locker, &w.locker.waits, w.locker.options.MaxWaiters
	s.mu.Lock()
	if !w.wait.counted && s.count.Load() >= int64(limit) {
		s.mu.Unlock()
		w.answer(Work{}, &Busy{What: "waiters", Limit: limit, Option: "--max-waiters"})
		return
	}
	if !w.wait.counted {
		l.workWaits.started++
		w.wait.counted, w.wait.number = true, l.workWaits.started
		s.count.Add(1)
	}
	if l.workWaits.parked == nil {
		l.workWaits.parked = map[*workCall]struct{}{}
	}
	l.workWaits.parked[w] = struct{}{}
	w.wait.timer = l.engine.Clock.AfterFunc(delay, func() { w.poll(attempt) })
	s.mu.Unlock()
}

// poll tries again, unless the daemon ended first.
func (w *workCall) poll(attempt int64) {
	l := w.locker
	l.waits.mu.Lock()
	_, mine := l.workWaits.parked[w]
	delete(l.workWaits.parked, w)
	l.waits.mu.Unlock()
	if mine {
		w.tries = 0
		w.try(nil, attempt)
	}
}

// answer ends the request, and its wait if it waited.
func (w *workCall) answer(a Work, err error) {
	s := &w.locker.waits
	s.mu.Lock()
	if w.wait.counted {
		w.wait.counted = false
		s.count.Add(-1)
	}
	s.mu.Unlock()
	w.done(a, err)
}

// endWorkWaits answers the requests that are between two polls, in order of arrival. A
// request that is polling now gets that poll's answer, or finds that waits have ended.
func (l *Locker) endWorkWaits() {
	s := &l.waits
	s.mu.Lock()
	all := make([]*workCall, 0, len(l.workWaits.parked))
	for w := range l.workWaits.parked {
		w.wait.timer.Stop()
		all = append(all, w)
	}
	clear(l.workWaits.parked)
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *workCall) int { return cmp.Compare(a.wait.number, b.wait.number) })
	for _, w := range all {
		w.answer(Work{}, ErrShutdown)
	}
}
