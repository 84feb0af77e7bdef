// This file keeps the requests that wait while an attempt at a piece of work runs.
//
// They stand in the wait queues of locks, those for one work in one queue. The first of a queue
// requests the work again when its record may have changed: the attempt was ended through this
// daemon, the masters announce a change, or the attempt has timed out.

package work

import (
	"errors"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/stored"
)

// Await puts a request into the queue of a work's record, for wait at most. The attempt before it
// will last for runs. The queue calls contend whenever the record may have changed, for one
// request at a time, and done at the end: with contend's error, with ErrHeld when the wait is
// over, or with *Busy or ErrShutdown. leave ends the wait.
type Await func(db int, record engine.Key, wait, runs time.Duration, contend Contend, done func(error)) (leave func())

// Contend requests the work. Its answer is ErrHeld while another attempt runs, nil for a new
// attempt, each with the time for which that attempt will last, and another error if the work is
// over or undecided.
type Contend func(b *engine.Batch, done func(runs time.Duration, err error))

// errAnswered: the request has an answer that is no attempt.
var errAnswered = errors.New("answered")

// record is the key of a work's record, as a lock's key would be.
func record(k engine.Key) engine.Key { return stored.Works + k }

// NameOf is the name of the work that a record is of.
func NameOf(record engine.Key) engine.Key { return record[len(stored.Works):] }

// wait answers, or waits while another attempt runs and the caller's wait lasts.
func (w *workCall) wait(a Work, err error) {
	s, r := w.works, &w.request
	left := w.began + r.Wait - s.engine.Clock.Now()
	if err != nil || a.State != Running || left <= 0 || w.left.Load() {
		w.answer(a, err)
		return
	}
	leave := s.await(r.DB, record(r.Key), left, a.Retry, w.contend, w.ended)
	w.leaveQueue.Store(&leave)
	if w.left.Load() {
		leave()
	}
}

// leave ends the wait of a client that has left.
func (w *workCall) leave() {
	w.left.Store(true)
	if leave := w.leaveQueue.Load(); leave != nil {
		(*leave)()
	}
}

// contend requests the attempt that runs, not the next one: if the attempt is given back, its
// number is not used up.
func (w *workCall) contend(b *engine.Batch, done func(runs time.Duration, err error)) {
	w.decided = func(a Work, err error) {
		switch {
		case err == nil && a.State == Running:
			done(a.Retry, engine.ErrHeld)
		case err == nil && a.State == Acquired:
			if done(a.Validity(), nil); !w.granted { // the wait has ended meanwhile
				w.works.WorkGiveBack(a)
			}
		default:
			done(0, errAnswered)
		}
	}
	w.try(b, w.last.Attempt)
}

// ended answers when the wait has ended. At the end of its time, the answer is how the work
// stands then.
func (w *workCall) ended(err error) {
	switch {
	case err == nil, errors.Is(err, errAnswered):
		w.granted = err == nil
		w.answer(w.last, w.err)
	case errors.Is(err, engine.ErrShutdown): // also while it contends
		w.answer(Work{}, err)
	case w.left.Load():
		w.answer(w.last, nil)
	case errors.Is(err, engine.ErrHeld):
		w.decided = w.answer
		w.try(nil, w.last.Attempt)
	default:
		w.answer(Work{}, err)
	}
}
