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
	due     bool   // to be asked for when the alarm rings
	on      bool   // asked for
	round   uint64 // which of several questions the answers belong to
	tracked int    // masters that will say when the key changes
	known   uint16 // masters whose copy's end is known, as bits
	ends    [maxMasters]time.Duration
}

// forever is the end of a copy that does not expire.
const forever = time.Duration(1<<63 - 1)

var _ pool.Watcher = (*line)(nil)

// watchLocked asks the masters how long their copies last, and to say when they
// go; after a delay, if one is given.
func (ln *line) watchLocked(delay time.Duration) {
	if delay > 0 {
		ln.news.due = true
		ln.wakeLocked(delay)
		return
	}
	ln.news = news{on: true, round: ln.news.round + 1}
	ln.wakeLocked(ln.spread(pollBlind))
	ln.group.Watch(ln.waits.locker.masterKey(ln.key), ln.news.round, ln)
}

func (ln *line) ignoreNewsLocked() {
	if ln.news.on {
		ln.group.Unwatch(ln.waits.locker.masterKey(ln.key))
	}
	ln.news = news{round: ln.news.round}
}

// Remains is one master's answer to Watch.
func (ln *line) Remains(lane int, round uint64, left time.Duration, tracked bool) {
	s := ln.waits
	s.mu.Lock()
	if !ln.news.on || round != ln.news.round || ln.asked != nil {
		s.mu.Unlock()
		return
	}
	if tracked {
		ln.news.tracked++
	}
	end := forever
	if left >= 0 {
		end = s.locker.clock.Now() + left
	}
	ln.heardLocked(lane, end)
}

// Gone says that a master's copy has been deleted or changed.
func (ln *line) Gone(lane int) {
	s := ln.waits
	s.mu.Lock()
	if !ln.news.on || ln.asked != nil {
		s.mu.Unlock()
		return
	}
	ln.heardLocked(lane, s.locker.clock.Now())
}

// heardLocked notes when a master's copy ends and asks for the key if a quorum
// has none; otherwise the alarm rings when that will be so. It lets the lock go.
func (ln *line) heardLocked(lane int, end time.Duration) {
	s := ln.waits
	n := &ln.news
	n.known |= 1 << lane
	n.ends[lane] = end
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
	ln.askedLocked(w)
	s.mu.Unlock()
	ln.ask(nil, w)
}

// quorumEnds is when a quorum of masters will have no copy any more.
func (n *news) quorumEnds(masters, quorum int) time.Duration {
	var ends [maxMasters]time.Duration
	for lane := range masters {
		ends[lane] = forever
		if n.known&(1<<lane) != 0 {
			ends[lane] = n.ends[lane]
		}
	}
	slices.Sort(ends[:masters])
	return ends[quorum-1]
}

// spread is a duration of about d: waiters of several daemons must not poll in step.
func (ln *line) spread(d time.Duration) time.Duration {
	return d/2 + ln.waits.locker.pool.Options().Jitter(d)
}
