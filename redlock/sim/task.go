package sim

import (
	"context"
	"errors"
	"iter"
	"time"

	"redlockd/pool"
)

// task is a coroutine on which the product's code runs until it waits for
// something. One runs at a time; it hands the thread back by parking.
type task struct {
	owner *daemon
	job   func()
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	rests bool   // parked
	order uint64 // that of their start
}

// spawn starts a job on a coroutine of the world.
func (w *World) spawn(owner *daemon, job func()) {
	var t *task
	if n := len(w.idle); n > 0 {
		t = w.idle[n-1]
		w.idle = w.idle[:n-1]
	} else {
		t = &task{}
		t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
			for t.yield = yield; ; {
				t.job()
				t.job, t.owner = nil, nil
				w.idle = append(w.idle, t)
				if !yield(struct{}{}) {
					return
				}
			}
		})
	}
	w.serial++
	t.owner, t.job, t.order = owner, job, w.serial
	if owner != nil {
		owner.tasks[t] = true
	}
	w.resume(t)
}

func (w *World) resume(t *task) {
	before, owner := w.current, t.owner
	w.current = t
	t.next()
	w.current = before
	if t.job == nil && owner != nil {
		delete(owner.tasks, t)
	}
}

// park waits for wake.
func (w *World) park() {
	t := w.current
	t.rests = true
	t.yield(struct{}{})
	t.rests = false
}

// tasks are what a daemon's pool runs on.
type tasks struct{ daemon *daemon }

var _ pool.Tasks = tasks{}

var errDead = errors.New("the daemon is dead")

// Submit starts a task soon: in the meantime other tasks may queue operations.
func (t tasks) Submit(job func()) error {
	d := t.daemon
	if d.dead {
		return errDead
	}
	w := d.world
	w.after(w.between(0, 20*time.Microsecond), d, func() { w.spawn(d, job) })
	return nil
}

// Await polls; the context has another clock.
func (t tasks) Await(_ context.Context, ready <-chan struct{}) bool {
	for end := t.daemon.world.now + 8*masterTimeout; ; t.Sleep(time.Millisecond) {
		select {
		case <-ready:
			return true
		default:
		}
		if t.daemon.dead || t.daemon.world.now > end {
			return false
		}
	}
}

// Sleep parks the caller.
func (t tasks) Sleep(d time.Duration) {
	w := t.daemon.world
	if t.daemon.dead {
		return
	}
	sleeper := w.current
	w.after(d, t.daemon, func() {
		if sleeper.rests {
			w.resume(sleeper)
		}
	})
	w.park()
}

// Release has nothing to wait for: a world ends all at once.
func (t tasks) Release(time.Duration) {}

// daemonClock is a daemon's own clock: it may run faster or slower than the world's,
// and jump ahead as if the machine had been suspended.
type daemonClock struct {
	daemon *daemon
	origin time.Duration
	ppm    int64
	jumped time.Duration

	suspended time.Duration // how long its machine was, in all; timers do not run meanwhile
}

var _ pool.Clock = (*daemonClock)(nil)

func (c *daemonClock) Now() time.Duration {
	w := c.daemon.world
	if c.daemon.dead {
		return 1 << 60 // whatever still runs gives up
	}
	return c.origin + w.now + w.now/1000*time.Duration(c.ppm)/1000 + c.jumped
}

// awake is the time by which timers run.
func (c *daemonClock) awake() time.Duration { return c.Now() - c.jumped - c.suspended }

// world turns a moment of this clock into one of the world, if it goes on as it does.
func (c *daemonClock) world(moment time.Duration) time.Duration {
	w, left := c.daemon.world, moment-c.Now()
	return w.now + left - left/1000*time.Duration(c.ppm)/1000
}

func (c *daemonClock) AfterFunc(d time.Duration, f func()) pool.Timer {
	t := &timer{daemon: c.daemon, f: f}
	t.Reset(d)
	return t
}

type timer struct {
	daemon *daemon
	f      func()
	round  int
	armed  bool
}

func (t *timer) Stop() bool {
	was := t.armed
	t.armed = false
	t.round++
	return was
}

func (t *timer) Reset(d time.Duration) bool {
	was := t.armed
	t.armed = true
	t.round++
	t.expire(d, t.round, t.daemon.clock.awake()+d)
	return was
}

// expire calls the timer's function when it is due by the daemon's own clock, not by the
// world's: no real timer fires early by the clock that it was set by.
func (t *timer) expire(d time.Duration, round int, due time.Duration) {
	clock := t.daemon.clock
	t.daemon.world.after(d, t.daemon, func() {
		switch {
		case t.round != round || !t.armed:
		case clock.awake() < due:
			t.expire(due-clock.awake()+time.Microsecond, round, due)
		default:
			t.armed = false
			t.f()
		}
	})
}
