// The watch of the masters over the keys of holds. It finds a lock that was deleted or
// overwritten by hand, or through another daemon, before the next renewal does.
//
// After each renewal the daemon queries every copy once on the connection for tracking,
// and each master announces the next change of its copy (pool.Watch). The renewals
// themselves change the copies, so the watch is off while one is under way. An
// announcement decides nothing: if the copies that may be left are too few for a quorum,
// the hold is renewed at once, and the renewal finds out whether the lock is lost. A lost
// announcement costs no more than the time until the next regular renewal.

package renew

import (
	"math/bits"
	"time"

	"redlockd/pool"
	"redlockd/redlock/lease"
)

const (
	// maxWatchedKeys bounds the keys that are watched for holds, and so the cost: two short
	// commands and an announcement on each master for each renewal.
	maxWatchedKeys = 1024
	// minWatch is how long no renewal may be due for a watch to begin.
	minWatch = 50 * time.Millisecond
	// hurryPause is the minimum time between two renewals of a hold that announcements cause. A
	// client that extends the lock changes its copies, too.
	hurryPause = 50 * time.Millisecond
	// sharedPause is the same for the queries of a key with several holders: each of them
	// changes the key when it comes, renews and goes.
	sharedPause = time.Second
)

// holdWatch keeps what the masters report of the copies of one key of a hold, as bits by
// lane. holds.mu guards it.
type holdWatch struct {
	hold     *hold
	key      string
	off      bool   // what is still reported belongs to the time before a renewal
	answered uint16 // the query
	changed  uint16 // in a way that proves nothing, see Gone
	gone     uint16 // without a copy, or with another one
	again    bool   // the next query is due already
}

var _ pool.Watcher = (*holdWatch)(nil)

// watchLocked watches the keys of a hold whose copies no renewal changes for a while.
func (hs *Holds) watchLocked(h *hold) {
	n := 1 + len(h.grant.More)
	if h.due-hs.engine.Clock.Now() < minWatch || hs.watched+n > maxWatchedKeys || hs.engine.InProcess {
		return
	}
	hs.watched += n
	h.watches = make([]*holdWatch, 0, n)
	for _, key := range h.grant.Keys() {
		w := &holdWatch{hold: h, key: hs.engine.MasterKey(key)}
		h.watches = append(h.watches, w)
		hs.engine.Pool.Group(h.grant.DB()).Keys.Watch(w.key, 0, w)
	}
}

// unwatchLocked ends the watch; a second time it does nothing.
func (hs *Holds) unwatchLocked(h *hold) {
	for _, w := range h.watches {
		w.off = true
		hs.engine.Pool.Group(h.grant.DB()).Keys.Unwatch(w.key, w)
	}
	hs.watched -= len(h.watches)
	h.watches = nil
}

// Remains is one master's answer to the query.
func (w *holdWatch) Remains(lane int, _ uint64, left time.Duration, _ bool) {
	s := w.hold.holds
	s.mu.Lock()
	defer s.mu.Unlock()
	w.answered |= 1 << lane
	if left == 0 {
		w.gone |= 1 << lane
	}
	s.checkCopiesLocked(w)
}

// Gone is one master's announcement. One that arrives before the master's answer may be
// of the renewal before the query. A key with several holders changes with each of them.
func (w *holdWatch) Gone(lane int) {
	s := w.hold.holds
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.answered&(1<<lane) != 0 && w.hold.grant.Kind() == lease.Exclusive {
		w.gone |= 1 << lane
	} else {
		w.changed |= 1 << lane
	}
	s.checkCopiesLocked(w)
}

// checkCopiesLocked renews a hold at once if too few masters may have a copy. If a change is in
// doubt, it queries the masters again: one that has announced a change announces no more.
func (hs *Holds) checkCopiesLocked(w *holdWatch) {
	spare := hs.engine.Pool.N() - hs.engine.Pool.Quorum()
	switch {
	case w.off:
	case bits.OnesCount16(w.gone) > spare:
		hs.hurryLocked(w.hold)
	case w.changed&w.answered != 0 && !w.again:
		w.again = true
		pause := hurryPause
		if w.hold.grant.Kind() != lease.Exclusive {
			pause = sharedPause
		}
		hs.engine.Clock.AfterFunc(pause, func() { hs.queryAgain(w) })
	}
}

func (hs *Holds) queryAgain(w *holdWatch) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if !w.off {
		hs.unwatchLocked(w.hold)
		hs.watchLocked(w.hold)
	}
}

// hurryLocked makes the next renewal due now, or as soon as one may follow another.
func (hs *Holds) hurryLocked(h *hold) {
	due := max(hs.engine.Clock.Now(), h.hurried+hurryPause)
	if h.renewing || due >= h.due || due >= h.stop {
		return
	}
	h.hurried = due
	hs.moveLocked(h, due)
}
