package sim

import (
	"errors"
	"fmt"
	"time"

	"redlockd/redlock"
)

// drain ends a daemon in order: it ends all waits, then its clients' connections
// end, then it is gone and another one starts.
// What is held with HOLD is not released: its holder may still be at work.
func drain(w *World) {
	d := w.daemons[w.random.IntN(len(w.daemons))]
	if !d.serves() || d.drained != 0 {
		return
	}
	d.drained = w.now
	w.after(0, d, func() {
		w.trace.note("", "daemon %d ends all waits", d.index)
		d.drained = w.now
		d.engine.EndWaits()
		w.checker().draining(d)
	})
	w.after(w.between(0, 300*time.Millisecond), d, func() {
		for _, c := range w.clients {
			if one, is := c.(*waiting); is {
				one.onDrain(d)
			}
		}
	})
	w.after(w.between(drainGrace+100*time.Millisecond, 1500*time.Millisecond), nil, func() { kill(w, d) })
}

// drainGrace is what a wait's answer may take once no client may wait: its ticket in
// a queue, or its token, may be with the masters.
const drainGrace = 700 * time.Millisecond

// onDrain: the daemon ends the connection. The holder receives that, not that its
// lease is over: it relies on what a lease that was being renewed has left.
func (c *waiting) onDrain(d *daemon) {
	t := c.tenure
	if t == nil || t.owner != d || t.hold == nil || c.busy() {
		return
	}
	w := c.world
	if h := w.checker().waiting.holds[string(t.token)]; w.Scenario.Reliable && h.maxTime == 0 {
		for _, key := range t.keys {
			record := w.checker().token(key, string(t.token))
			record.until = max(record.until, w.now+t.ttl/2) // it is renewed when a third of it is over
		}
	}
	t.hold.End()
	c.tenure = nil
	c.soon(0, w.Scenario.think())
}

// draining: every client in a wait queue has its answer; the others get it soon.
func (j *checker) draining(d *daemon) {
	w := j.world
	for _, r := range j.waiting.all {
		if r.daemon == d && r.waits && !r.over {
			j.mustEndSoon(r)
		}
	}
	w.after(time.Millisecond, d, func() {
		if n := d.engine.Waiters(); n > 0 && !w.unsettled(d) {
			w.violate("answers", "", fmt.Sprintf("daemon %d has ended all waits, and counts %d waiters", d.index, n))
		}
	})
}

// unsettled reports whether a request may be on its way into a wait queue.
func (w *World) unsettled(d *daemon) bool {
	for _, r := range w.checker().waiting.all {
		if r.daemon == d && !r.over && r.waits && (r.token != "" || r.fair) {
			return true
		}
	}
	return false
}

// mustEndSoon: a wait in a daemon that ends all waits is answered. A daemon that stood still meanwhile
// answers when it goes on: a ballot of the wait that was under way is decided only then.
func (j *checker) mustEndSoon(r *waitRecord) {
	w, d := j.world, r.daemon
	w.after(max(r.began, d.drained, d.resumed)+drainGrace-w.now, d, func() {
		switch {
		case r.over:
		case d.resumed+drainGrace > w.now:
			j.mustEndSoon(r)
		default:
			w.violate("answers", r.keys[0], fmt.Sprintf("a wait for %s goes on in daemon %d, which has ended all waits at %.3f ms", r.keySet, d.index, ms(d.drained)))
		}
	})
}

// isShutdown reports whether an error is that of a daemon that ends.
func isShutdown(err error) bool { return errors.Is(err, redlock.ErrShutdown) }
