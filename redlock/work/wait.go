// This file requests attempts, and keeps the requests that wait while another attempt runs.
//
// The latter stand in the wait queues of locks, those for one work in one queue. The first of a queue
// requests the work again when its record may have changed: the attempt was ended through this
// daemon, the masters announce a change, or the attempt has timed out.

package work

import (
	"errors"
	"time"

	"redlockd/redlock/engine"
)

// Work requests an attempt; done is called exactly once. leave ends the wait of a client
// that has left: an attempt that is granted after that is given back.
func (ws *Works) Work(b *engine.Batch, r Request, done Completion) (leave func()) {
	if err := ws.engine.Enter(); err != nil {
		done(Work{}, err)
		return func() {}
	}
	if r.Keep == 0 {
		r.Keep = min(2*r.Timeout, ws.engine.Pool.Options().MaxKeep)
	}
	w := &workCall{works: ws, group: ws.engine.Pool.Group(r.DB), request: r, began: ws.engine.Clock.Now()}
	w.answer = func(a Work, err error) { ws.engine.Leave(); done(a, err) }
	w.decided = w.wait
	w.try(b, 1)
	return w.leave
}

// errAnswered: the request has an answer that is no attempt.
var errAnswered = errors.New("answered")

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
