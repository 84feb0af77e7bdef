// What is a master told again when it is back?
//
// Some of what the masters keep lasts only as long as somebody repeats it. What
// is repeated while a master is away does not reach it, and the next time may be
// long in coming. So whoever repeats is asked at once when a master is back: when
// it has been admitted, when it answers after a pause, and when this process
// stood still itself, which is as if all masters had been away.
package pool

import (
	"slices"
	"sync/atomic"
	"time"
)

// stoodStill is how far apart two heartbeats are of a process that stood still:
// less than what is kept by repeating it lasts, and more than a busy machine takes.
const stoodStill = 10 * heartbeat

// returns is what a group knows of those who repeat; its lock is the group's.
type returns struct {
	repeats atomic.Pointer[func() []Operation]
	asked   uint16        // lanes, as bits, for which a task is about to ask
	pulsed  time.Duration // when the heart beat last, or began to
}

// OnReturn has repeats called whenever a master is back; there is one who repeats
// at a time. It is called without a lock, from several goroutines, and says what
// that master must be told again: operations that are not Sealed, each of which
// goes to this one master, in front of what is asked of it from then on.
func (g *Group) OnReturn(repeats func() []Operation) { g.returns.repeats.Store(&repeats) }

// again is what a master must be told that is back. What does not fit into a
// queue is left to the next time that it is repeated.
func (g *Group) again() (out []entry) {
	defer g.contain()
	repeats := g.returns.repeats.Load()
	if repeats == nil {
		return nil
	}
	for _, op := range (*repeats)() {
		if len(out) == g.pool.options.MaxQueue {
			break
		}
		out = append(out, entry{op: op, plan: op.Plan()})
	}
	return out
}

// againFirstLocked queues it in front of everything else.
func (l *lane) againFirstLocked(again []entry) {
	if len(again) > 0 {
		l.handOverLocked(append(slices.Clip(again), l.queue...))
	}
}

// repeatSoonLocked has a task ask what is to be repeated: here it may not be done,
// because who repeats has locks of his own.
func (l *lane) repeatSoonLocked() {
	r, bit := &l.group.returns, uint16(1)<<l.index
	if r.repeats.Load() == nil || r.asked&bit != 0 {
		return
	}
	if l.group.pool.tasks.Submit(l.repeat) == nil {
		r.asked |= bit
	}
}

func (l *lane) repeat() {
	g := l.group
	g.mu.Lock()
	g.returns.asked &^= uint16(1) << l.index
	g.mu.Unlock()
	again := g.again()
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.state != stateUp { // it has gone again, and will be back
		return
	}
	l.againFirstLocked(again)
	l.wakeLocked()
}

// stoodStillLocked notes a beat of the heart, and tells whether it came so late
// that this process stood still.
func (r *returns) stoodStillLocked(now time.Duration) bool {
	before := r.pulsed
	r.pulsed = now
	return now-before > stoodStill
}
