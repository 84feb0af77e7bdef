// This file passes requests to let go of a lock to its holders. They change nothing of the lock: a
// holder may ignore them, and the lock stays its own until it releases it.

package renew

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// wantedInterval is the shortest time between two notifications of a holder. A client that does not read its pushes
// is closed, and another client must not be able to cause that.
const wantedInterval = time.Second

// revocation is a request to let go of one key of a hold.
type revocation struct {
	key  engine.Key
	text string
}

// Wanted notifies the connections of this daemon that hold a key, and returns how many do; alone: no other
// client can hold it.
func (hs *Holds) Wanted(db int, key engine.Key, text string) (n int, alone bool) {
	if hs.count.Load() == 0 {
		return 0, false
	}
	wanted := &revocation{engine.Key(strings.Clone(string(key))), strings.Clone(text)}
	var notified []*hold
	hs.mu.Lock()
	found := hs.ofLocked(engine.LeaseID{DB: db, Key: key})
	for _, h := range found {
		alone = alone || h.grant.Kind() == lease.Exclusive
		if hs.wantedLocked(h, wanted) {
			notified = append(notified, h)
		}
	}
	hs.mu.Unlock()
	for _, h := range notified {
		h.onWanted(wanted)
	}
	return len(found), alone
}

// wantedLocked notes a request, and reports whether the holder is to be notified now.
func (hs *Holds) wantedLocked(h *hold, wanted *revocation) bool {
	now := hs.engine.Clock.Now()
	if h.wanted == nil {
		hs.wanted++
	} else if now-h.wantedAt < wantedInterval {
		h.wanted = wanted
		return false
	}
	h.wanted, h.wantedAt = wanted, now
	return true
}

func (h *hold) onWanted(wanted *revocation) {
	if h.terms.OnWanted != nil {
		h.terms.OnWanted(wanted.key, wanted.text)
	}
}

// WantedMoved notifies the holders of keys that have left the group: their locks are not renewed any more.
func (hs *Holds) WantedMoved() {
	if hs.count.Load() == 0 {
		return
	}
	var moved []engine.LeaseID
	hs.mu.Lock()
	for _, h := range hs.byID {
		for _, id := range h.grant.Leases() {
			if hs.engine.Ownership.Since(id.Key) == 0 {
				moved = append(moved, engine.LeaseID{DB: id.DB, Key: id.Key}) // of whatever token
			}
		}
	}
	hs.mu.Unlock()
	slices.SortFunc(moved, func(a, b engine.LeaseID) int { return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key)) })
	for _, id := range slices.Compact(moved) {
		m := hs.engine.Ownership.Moving(id.Key)
		hs.Wanted(id.DB, id.Key, fmt.Sprintf("the slots %s move from group %s to %s: the lock is not renewed any more", m.Slots, m.From, m.To))
	}
}

// WantedText is the text of the latest request to let go of a key that this daemon holds for a
// connection; nil if there is none.
func (hs *Holds) WantedText(db int, key engine.Key) *string {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.wanted == 0 {
		return nil
	}
	var latest *hold
	for _, h := range hs.ofLocked(engine.LeaseID{DB: db, Key: key}) {
		if h.wanted != nil && h.wanted.key == key && (latest == nil || h.wantedAt > latest.wantedAt) {
			latest = h
		}
	}
	if latest == nil {
		return nil
	}
	return &latest.wanted.text
}
