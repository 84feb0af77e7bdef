// This file keeps the requests that wait while an attempt at a piece of work runs.
//
// Each request polls by itself every workPollInterval. There is no wait queue, because
// the end of an attempt is no release of a key that masters would announce. The requests
// count with those that wait for locks, towards the same limit, and end as those do.

package work

import (
	"cmp"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// workWait is the wait of one request; the mutex of Works guards it.
type workWait struct {
	counted bool // from the first "running" to the answer
	number  int64
	timer   pool.Timer
}

// finish answers, or waits while another attempt runs and the caller's wait lasts.
func (w *workCall) finish(a Work, err error) {
	s := w.works
	left := w.began + w.request.Wait - s.engine.Clock.Now()
	switch {
	case err != nil || a.State != Running || left <= 0 || w.left.Load():
		w.answer(a, err)
	case s.engine.Closing() || s.places.WaitsEnded():
		w.answer(Work{}, engine.ErrShutdown)
	default:
		w.park(max(time.Millisecond, min(a.Retry, workPollInterval, left)), a.Attempt)
	}
}

// park retries the attempt that runs after the delay. It retries that number, not the
// next one: if the attempt is given back, its number is not used up. The timer and the
// end of the daemon both take the call out of parked; the one that does so continues it.
// If the daemon ends between finish's check and here, the next poll finds it.
func (w *workCall) park(delay time.Duration, attempt int64) {
	s := w.works
	s.mu.Lock()
	if !w.wait.counted {
		if err := s.places.EnterWait(); err != nil {
			s.mu.Unlock()
			w.answer(Work{}, err)
			return
		}
		s.started++
		w.wait.counted, w.wait.number = true, s.started
	}
	if s.parked == nil {
		s.parked = map[*workCall]struct{}{}
	}
	s.parked[w] = struct{}{}
	w.wait.timer = s.engine.Clock.AfterFunc(delay, func() { w.poll(attempt) })
	s.mu.Unlock()
}

// poll tries again, unless the daemon ended first.
func (w *workCall) poll(attempt int64) {
	s := w.works
	s.mu.Lock()
	_, mine := s.parked[w]
	delete(s.parked, w)
	s.mu.Unlock()
	if mine {
		w.tries = 0
		w.try(nil, attempt)
	}
}

// answer ends the request, and its wait if it waited.
func (w *workCall) answer(a Work, err error) {
	s := w.works
	s.mu.Lock()
	if w.wait.counted {
		w.wait.counted = false
		s.places.LeaveWait()
	}
	s.mu.Unlock()
	w.done(a, err)
}

// EndWaits answers the requests that are between two polls, in order of arrival. A
// request that is polling now gets that poll's answer, or finds that waits have ended.
func (s *Works) EndWaits() {
	s.mu.Lock()
	all := make([]*workCall, 0, len(s.parked))
	for w := range s.parked {
		w.wait.timer.Stop()
		all = append(all, w)
	}
	clear(s.parked)
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *workCall) int { return cmp.Compare(a.wait.number, b.wait.number) })
	for _, w := range all {
		w.answer(Work{}, engine.ErrShutdown)
	}
}
