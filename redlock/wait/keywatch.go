// This file handles what the masters report about a wait queue's keys: how long their
// copies last, and when they change.

package wait

import (
	"math/bits"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// queueWatch is what a wait queue has learned about the copies of its keys. The queue discards
// it when its head contends for the keys, because that ballot is decisive.
type queueWatch struct {
	due     bool       // the watch starts when the timer fires
	active  bool       // the masters have been queried
	behind  bool       // the head was refused also because an earlier ticket stands before it
	unseen  bool       // that ticket may go without a change of the key, and then the head may join its holders
	round   uint64     // the query that the answers belong to
	tracked int        // masters that report when the key changes
	keys    []keyWatch // one for each key of the queue
	// confirmed, of work: the head has contended since the watch began. The record of an attempt
	// that has ended remains, so the masters' answers do not show an end before the watch.
	confirmed bool
}

// keyWatch is what a wait queue has learned about the copies of one key.
type keyWatch struct {
	queue   *waitQueue
	index   int
	known   uint16 // bits: masters whose copy's expiry is known
	changed uint16 // bits: masters that have reported a change since the query
	ends    [quorum.MaxMasters]time.Duration
}

// forever is the expiry of a copy that does not expire.
const forever = time.Duration(1<<63 - 1)

var _ pool.Watcher = (*keyWatch)(nil)

// watchLocked queries the masters for the remaining time of their copies and subscribes
// to changes. With a delay it does so when that has passed.
func (ln *waitQueue) watchLocked(delay time.Duration) {
	ln.unwatchLocked()
	if delay > 0 {
		ln.watch.due = true
		ln.setTimerLocked(delay)
		return
	}
	ln.watch = queueWatch{active: true, round: ln.watch.round + 1, keys: make([]keyWatch, len(ln.keys))}
	ln.pollLocked(ln.runsUntil)
	for i, key := range ln.keys {
		k := &ln.watch.keys[i]
		k.queue, k.index = ln, i
		ln.group.Keys.Watch(ln.waits.engine.MasterKey(key), ln.watch.round, k)
	}
}

func (ln *waitQueue) unwatchLocked() {
	for i, key := range ln.keys {
		if ln.watch.active {
			ln.group.Keys.Unwatch(ln.waits.engine.MasterKey(key), &ln.watch.keys[i])
		}
	}
	ln.watch = queueWatch{round: ln.watch.round}
}

// Remains takes one master's answer to Watch.
func (k *keyWatch) Remains(lane int, round uint64, left time.Duration, tracked bool) {
	ln, s := k.queue, k.queue.waits
	s.mu.Lock()
	if !ln.watch.active || round != ln.watch.round {
		s.mu.Unlock()
		return
	}
	if tracked && k.index == 0 {
		ln.watch.tracked++
	}
	end := forever
	if left >= 0 {
		end = s.engine.Clock.Now() + left
	}
	ln.noteCopyLocked(k.index, lane, end, false)
}

// Gone takes a master's report that its copy was deleted or changed.
func (k *keyWatch) Gone(lane int) {
	ln, s := k.queue, k.queue.waits
	s.mu.Lock()
	if !ln.watch.active || k.index >= len(ln.watch.keys) || k != &ln.watch.keys[k.index] {
		s.mu.Unlock()
		return
	}
	ln.noteCopyLocked(k.index, lane, s.engine.Clock.Now(), true)
}

// noteCopyLocked records when a master's copy ends. If a quorum has none, the head
// contends for the key; otherwise the timer is set to when that will be so. It unlocks
// the mutex.
func (ln *waitQueue) noteCopyLocked(index, lane int, end time.Duration, changed bool) {
	s := ln.waits
	n := &ln.watch
	k, bit := &n.keys[index], uint16(1)<<lane
	if changed {
		k.changed |= bit
	}
	// A master's report of a change may be delivered before the answer that it follows.
	if changed || k.changed&bit == 0 {
		k.known |= bit
		k.ends[lane] = end
	}
	if ln.contender != nil {
		s.mu.Unlock()
		return
	}
	now := s.engine.Clock.Now()
	free := ln.freeAtLocked(now)
	w := ln.head
	switch {
	case w != nil && !ln.reads && ln.foreignLocked(now):
		ln.reads = true
	case free > now || w == nil:
		ln.pollLocked(free)
		s.mu.Unlock()
		return
	}
	if n.behind && !changed { // the key is free, but an earlier ticket may take it first
		ln.setTimerLocked(ln.waits.engine.Spread(overtakenPause))
		s.mu.Unlock()
		return
	}
	ln.setContenderLocked(w)
	s.mu.Unlock()
	ln.contend(nil, w)
}

// pollLocked sets the timer to when the keys will be free, or to the next poll if that is earlier.
func (ln *waitQueue) pollLocked(free time.Duration) {
	poll := pollUnwatched
	if ln.watch.tracked >= ln.waits.engine.Pool.Quorum() && !ln.watch.unseen {
		poll = pollWatched
	}
	ln.setTimerLocked(max(min(free-ln.waits.engine.Clock.Now(), ln.waits.engine.Spread(poll)), time.Millisecond))
}

// freeAtLocked is when the head contends unless the masters report a change before. For work that
// is when the attempt has timed out, or now: once a quorum is watched, and if no quorum is left
// whose records have not changed.
func (ln *waitQueue) freeAtLocked(now time.Duration) time.Duration {
	p := ln.waits.engine.Pool
	switch {
	case !ln.work:
		return ln.watch.quorumEnds(p.N(), p.Quorum())
	case bits.OnesCount16(ln.watch.keys[0].known) < p.Quorum(), ln.watch.confirmed && ln.unchangedLocked():
		return ln.runsUntil
	}
	return now
}

// foreignLocked reports whether most masters have something at the key that lasts longer than any
// lease. It may be another application's data, for which a plain SET NX would wait for ever. So
// the head contends once more, and from now on with the script that looks at the key: if it
// holds no lock, the answer is ErrWrongType. If it holds one, as one without an expiry, the
// wait goes on. Until then, a wait costs the masters nothing more than a plain one.
func (ln *waitQueue) foreignLocked(now time.Duration) bool {
	if ln.work || ln.peekOnly || !ln.watch.active {
		return false
	}
	e, k, longer := ln.waits.engine, &ln.watch.keys[0], 0
	for lane := range e.Pool.N() {
		if k.known&(1<<lane) != 0 && k.ends[lane] > now+e.MaxTTL+e.Late+time.Second {
			longer++
		}
	}
	return longer >= e.Pool.Quorum()
}

// unchangedLocked reports, for work, whether a quorum is watched and has reported no change of the
// record. Each end of an attempt that a quorum has acknowledged changes one of these.
func (ln *waitQueue) unchangedLocked() bool {
	if !ln.work || !ln.watch.active {
		return false
	}
	k := &ln.watch.keys[0]
	return bits.OnesCount16(k.known&^k.changed) >= ln.waits.engine.Pool.Quorum()
}

// quorumEnds is when a quorum of masters will no longer have a copy of any of the keys.
func (n *queueWatch) quorumEnds(masters, needed int) time.Duration {
	var ends [quorum.MaxMasters]time.Duration
	for lane := range masters {
		for i := range n.keys {
			end := forever
			if n.keys[i].known&(1<<lane) != 0 {
				end = n.keys[i].ends[lane]
			}
			ends[lane] = max(ends[lane], end)
		}
	}
	slices.Sort(ends[:masters])
	return ends[needed-1]
}
