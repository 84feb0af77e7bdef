// This file leaves a busy key free for a moment now and then.
//
// Clients that use the masters themselves, as plain Redlock does, leave no trace there when they are
// refused, and a key that daemons hand over is never free for them. So when a key has been busy for
// busyInterval, the release opens a window: for windowTime a ticket stands in the queue of FAIR, before all
// others, that is nobody's. All daemons' waiters contend with scripts, which respect it, and a plain
// SET NX does not. A window costs a twentieth of the busy time. Daemons do not add theirs up: when
// one finds that the key was free for half a window, its own time begins anew.

package wait

import (
	"slices"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// windowLocked returns the keys of the queues on the masters if a key that is being released stays free
// for a window. Then no wait queue for it contends before the window is over.
func (l *waitList) windowLocked(lines []*waitQueue) (keys []string) {
	now := l.engine.Recent()
	for _, ln := range lines {
		if ln.head == nil || ln.work || ln.peekOnly {
			continue
		}
		if ln.busy.since == 0 {
			ln.busy.since = now
		}
		if now-ln.busy.since >= busyInterval {
			keys = l.leases.QueueKeys(&ln.head.request.LockRequest)
		}
	}
	if keys == nil || slices.ContainsFunc(lines, func(ln *waitQueue) bool { return ln.contender != nil && !ln.peekOnly }) {
		return nil
	}
	for _, ln := range lines {
		if ln.head != nil && !ln.peekOnly {
			ln.busy.since, ln.busy.open = now, now+windowTime
			ln.watch.due = false // when the timer fires, the head contends
			ln.setTimerLocked(windowTime + windowSlack)
		}
	}
	return keys
}

// openWindow puts a ticket before all others, behind the release. It expires by itself.
func (l *waitList) openWindow(b *engine.Batch, db int, keys []string) {
	l.engine.Submit(b, l.engine.Pool.Group(db), &engine.Message{
		Plan: pool.Props{Key: keys[0], Rest: keys[1:]},
		Write: func(m *pool.SendContext, c *pool.Command) bool {
			l.writeEnlist(m, c, keys, "", windowTime)
			c.Args = append(c.Args, windowID, "1", engine.Flag(true))
			return true
		},
	})
}
