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
	"hash/crc32"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

const (
	// windowTime is longer than the usual pause of a Redlock client between two tries, 200 ms with some
	// spread; busyInterval is how long a key is busy before that.
	windowTime   = 225 * time.Millisecond
	busyInterval = 20 * windowTime
	// windowSlack is what the clocks of the masters may differ by until the window is over there, too.
	windowSlack = 10 * time.Millisecond
	// busyKeys bounds the keys of which the busy time is known while no client waits for a moment,
	// which is busyGap at most.
	busyKeys = 256
	busyGap  = time.Second
)

// busyTime is since when a key was not left free, as far as its wait queue knows.
type busyTime struct {
	since time.Duration // 0 = no lock was handed over yet
	free  time.Duration // since when the key is known to be free, 0 = it is not
}

// busyKey keeps that of a wait queue that has ended.
type busyKey struct {
	id    queueID
	since time.Duration
	ended time.Duration
}

func (l *waitList) busyOf(id queueID) *busyKey {
	return &l.busy[crc32.ChecksumIEEE([]byte(id.keys))%busyKeys]
}

// busyLocked is the busy time of a new wait queue.
func (l *waitList) busyLocked(id queueID) (b busyTime) {
	if k := l.busyOf(id); k.id == id && l.engine.Recent()-k.ended < busyGap {
		b.since = k.since
	}
	return b
}

func (l *waitList) keepBusyLocked(ln *waitQueue) {
	if ln.busy.since > 0 {
		*l.busyOf(ln.queueID) = busyKey{ln.queueID, ln.busy.since, l.engine.Recent()}
	}
}

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
			keys = l.leases.QueueKeys(&ln.head.request)
		}
	}
	if keys == nil || slices.ContainsFunc(lines, func(ln *waitQueue) bool { return ln.contender != nil }) {
		return nil
	}
	for _, ln := range lines {
		if ln.head != nil {
			ln.busy.since, ln.watch.due = now, false // when the timer fires, the head contends
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
			c.Args = append(c.Args, "window", "1", engine.Flag(true))
			return true
		},
	})
}

// noteFreeLocked notes from when on the key is free, though the head may not have it.
func (ln *waitQueue) noteFreeLocked(free, now time.Duration) {
	switch {
	case free > now:
		if !ln.work && ln.watch.keys[0].answered() >= ln.list.engine.Pool.Quorum() {
			ln.busy.free = 0
		}
	case ln.busy.free == 0:
		ln.busy.free = now
	case now-ln.busy.free >= windowTime/2:
		ln.busy.since = now
	}
}
