// What do the masters tell a line about its key?
package redlock

import (
	"slices"
	"time"

	"redlockd/pool"
)

// news is what a line knows of the copies of its key. It is forgotten whenever
// the line asks for the key: the answer says more.
type news struct {
	due     bool      // to be asked for when the alarm rings
	on      bool      // asked for
	behind  bool      // refused, too, because somebody stands before this line in the queue
	round   uint64    // which of several questions the answers belong to
	tracked int       // masters that will say when the key changes
	heard   []keyNews // of each key of the line
}

// keyNews is what is known of the copies of one key.
type keyNews struct {
	line  *line
	index int
	known uint16 // masters whose copy's end is known, as bits
	gone  uint16 // masters that have announced a change since they were asked
	ends  [maxMasters]time.Duration
}

// forever is the end of a copy that does not expire.
const forever = time.Duration(1<<63 - 1)

var _ pool.Watcher = (*keyNews)(nil)

// watchLocked asks the masters how long their copies last, and to say when they
// go; after a delay, if one is given.
func (ln *line) watchLocked(delay time.Duration) {
	if delay > 0 {
		ln.news.due = true
		ln.wakeLocked(delay)
		return
	}
	ln.ignoreNewsLocked()
	ln.news = news{on: true, round: ln.news.round + 1, heard: make([]keyNews, len(ln.keys))}
	ln.wakeLocked(ln.spread(pollBlind))
	for i, key := range ln.keys {
		k := &ln.news.heard[i]
		k.line, k.index = ln, i
		ln.group.Watch(ln.waits.locker.masterKey(key), ln.news.round, k)
	}
}

func (ln *line) ignoreNewsLocked() {
	for i, key := range ln.keys {
		if ln.news.on {
			ln.group.Unwatch(ln.waits.locker.masterKey(key), &ln.news.heard[i])
		}
	}
	ln.news = news{round: ln.news.round}
}

// Remains is one master's answer to Watch.
func (k *keyNews) Remains(lane int, round uint64, left time.Duration, tracked bool) {
	ln, s := k.line, k.line.waits
	s.mu.Lock()
	if !ln.news.on || round != ln.news.round || ln.asked != nil {
		s.mu.Unlock()
		return
	}
	if tracked && k.index == 0 {
		ln.news.tracked++
	}
	end := forever
	if left >= 0 {
		end = s.locker.clock.Now() + left
	}
	ln.heardLocked(k.index, lane, end, false)
}

// Gone says that a master's copy has been deleted or changed.
func (k *keyNews) Gone(lane int) {
	ln, s := k.line, k.line.waits
	s.mu.Lock()
	if !ln.news.on || ln.asked != nil || k.index >= len(ln.news.heard) || k != &ln.news.heard[k.index] {
		s.mu.Unlock()
		return
	}
	ln.heardLocked(k.index, lane, s.locker.clock.Now(), true)
}

// heardLocked notes when a master's copy ends and asks for the key if a quorum
// has none; otherwise the alarm rings when that will be so. It lets the lock go.
func (ln *line) heardLocked(index, lane int, end time.Duration, changed bool) {
	s := ln.waits
	n := &ln.news
	k, bit := &n.heard[index], uint16(1)<<lane
	if changed {
		k.gone |= bit
	}
	// The announcement may be handed over before the answer that it follows.
	if changed || k.gone&bit == 0 {
		k.known |= bit
		k.ends[lane] = end
	}
	now := s.locker.clock.Now()
	free := n.quorumEnds(s.locker.pool.N(), s.locker.pool.Quorum())
	w := ln.head
	if free > now || w == nil {
		poll := pollBlind
		if n.tracked >= s.locker.pool.Quorum() {
			poll = pollWatched
		}
		ln.wakeLocked(max(min(free-now, ln.spread(poll)), time.Millisecond))
		s.mu.Unlock()
		return
	}
	if n.behind && !changed { // free, and not for this one
		ln.wakeLocked(ln.spread(overtakenPause))
		s.mu.Unlock()
		return
	}
	ln.askedLocked(w)
	s.mu.Unlock()
	ln.ask(nil, w)
}

// quorumEnds is when a quorum of masters will have no copy of any key any more.
func (n *news) quorumEnds(masters, quorum int) time.Duration {
	var ends [maxMasters]time.Duration
	for lane := range masters {
		for i := range n.heard {
			end := forever
			if n.heard[i].known&(1<<lane) != 0 {
				end = n.heard[i].ends[lane]
			}
			ends[lane] = max(ends[lane], end)
		}
	}
	slices.Sort(ends[:masters])
	return ends[quorum-1]
}

// spread is a duration of about d: waiters of several daemons must not poll in step.
func (ln *line) spread(d time.Duration) time.Duration {
	return d/2 + ln.waits.locker.pool.Options().Jitter(d)
}
