// Waiting until somebody else lets go, without taking the lock: for libraries
// that ask again themselves when they are woken. The masters are asked from
// time to time, so nothing has to be remembered of the wait but this.
package redlock

import (
	"sync"
	"time"

	"redlockd/pool"
)

const (
	// firstLook and lastLook are the pauses between two looks; they double.
	firstLook = 20 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// AwaitFree calls done once, with true as soon as no quorum holds the key, with
// false after patience or once leave was called. err is *Busy or ErrShutdown.
func (l *Locker) AwaitFree(db int, key Key, patience time.Duration, done func(free bool, err error)) (leave func()) {
	if n := l.waits.count.Add(1); n > int64(l.options.MaxWaiters) {
		l.waits.count.Add(-1)
		done(false, &Busy{What: "waiters", Limit: l.options.MaxWaiters, Option: "--max-waiters"})
		return func() {}
	}
	w := &lookout{locker: l, db: db, key: key, end: l.clock.Now() + patience, pause: firstLook, done: done}
	w.look()
	return func() { w.finish(false, nil) }
}

// lookout is one AwaitFree.
type lookout struct {
	locker *Locker
	db     int
	key    Key
	end    time.Duration // on the pool's clock
	pause  time.Duration
	done   func(bool, error)

	mu    sync.Mutex
	timer pool.Timer
	over  bool
}

// look asks the masters. What they cannot say now they may say later.
func (w *lookout) look() {
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if over {
		return
	}
	s := &w.locker.waits
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if ended {
		w.finish(false, ErrShutdown)
		return
	}
	w.locker.View(nil, w.db, w.key, func(v View, err error) {
		switch {
		case err == ErrShutdown:
			w.finish(false, err)
		case err == nil && v.Kind == "none":
			w.finish(true, nil)
		default:
			w.again(v.Left)
		}
	})
}

// again looks after a pause, at the latest when the lease will have ended.
func (w *lookout) again(left time.Duration) {
	clock := w.locker.clock
	now := clock.Now()
	if now >= w.end {
		w.finish(false, nil)
		return
	}
	pause := w.pause/2 + w.locker.pool.Jitter(w.pause)
	if w.pause = min(2*w.pause, lastLook); left > 0 {
		pause = min(pause, left+w.locker.late)
	}
	pause = max(min(pause, w.end-now), time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.timer = clock.AfterFunc(pause, w.look)
	}
}

func (w *lookout) finish(free bool, err error) {
	w.mu.Lock()
	over := w.over
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	if over {
		return
	}
	w.locker.waits.count.Add(-1)
	w.done(free, err)
}
