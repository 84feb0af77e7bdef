// This file contains what a wait queue knows of its keys on the masters: how long their
// copies last, and which have changed.

package wait

import (
	"math/bits"
	"slices"
	"time"

	"redlockd/redlock/quorum"
)

// queueWatch keeps what a wait queue has learned about the copies of its keys. The queue discards
// it when its head contends for the keys, because that ballot is decisive.
type queueWatch struct {
	due     bool     // the watch starts when the timer fires
	active  bool     // the masters have been queried
	behind  bool     // the head was refused also because an earlier ticket stands before it
	unseen  bool     // that ticket may go without a change of the key, and then the head may join its holders
	round   uint64   // the query that the answers belong to
	tracked int      // masters that report when the key changes
	keys    []copies // of each key of the queue
	// confirmed, of work: the head has contended since the watch began. The record of an attempt
	// that has ended remains, so the masters' answers do not show an end before the watch.
	confirmed bool
}

// copies has the copies of one key.
type copies struct {
	known   uint16 // bits: masters whose copy's expiry is known
	changed uint16 // bits: masters that have reported a change since the query
	ends    [quorum.MaxMasters]time.Duration
}

// forever is the expiry of a copy that does not expire.
const forever = time.Duration(1<<63 - 1)

// note records when a master's copy ends.
func (c *copies) note(lane int, end time.Duration, changed bool) {
	bit := uint16(1) << lane
	if changed {
		c.changed |= bit
	}
	// A master's report of a change may be delivered before the answer that it follows.
	if changed || c.changed&bit == 0 {
		c.known |= bit
		c.ends[lane] = end
	}
}

// end returns the time at which a master's copy ends, forever if that is not known.
func (c *copies) end(lane int) time.Duration {
	if c.known&(1<<lane) == 0 {
		return forever
	}
	return c.ends[lane]
}

// lasting counts the masters that have a copy that is known to last longer than that.
func (c *copies) lasting(than time.Duration) (n int) {
	for lane, end := range c.ends {
		if c.known&(1<<lane) != 0 && end > than {
			n++
		}
	}
	return n
}

// answered counts the masters whose copies are known.
func (c *copies) answered() int { return bits.OnesCount16(c.known) }

// unchanged counts those that have not changed since.
func (c *copies) unchanged() int { return bits.OnesCount16(c.known &^ c.changed) }

// quorumEnds returns the time from which a quorum of masters will no longer have a copy of any of the keys.
func (q *queueWatch) quorumEnds(masters, needed int) time.Duration {
	var ends [quorum.MaxMasters]time.Duration
	for lane := range masters {
		for i := range q.keys {
			ends[lane] = max(ends[lane], q.keys[i].end(lane))
		}
	}
	slices.Sort(ends[:masters])
	return ends[needed-1]
}
