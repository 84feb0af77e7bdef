// Deadlock detection: the cycle of waits that a new wait would close.

package wait

import (
	"fmt"
	"slices"
	"strings"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// Deadlock means that a wait would have closed a cycle of connections that wait for one
// another; nothing was done.
type Deadlock struct {
	Keys   []engine.Key // of the cycle, beginning with the one that this wait needs
	hidden int          // keys of the cycle that are left out
}

// Only leaves out the keys that the client may not see.
func (e *Deadlock) Only(visible func(engine.Key) bool) *Deadlock {
	shown := &Deadlock{hidden: e.hidden}
	for _, key := range e.Keys {
		if visible(key) {
			shown.Keys = append(shown.Keys, key)
		} else {
			shown.hidden++
		}
	}
	return shown
}

func (e *Deadlock) Error() string {
	if len(e.Keys) == 1 && e.hidden == 0 {
		return "this connection holds '" + string(e.Keys[0]) + "' itself and would wait for its own lock; release it first, prolong it with DEXTEND, or take it with REENTRANT"
	}
	keys := make([]string, len(e.Keys))
	for i, key := range e.Keys {
		keys[i] = "'" + string(key) + "'"
	}
	if e.hidden > 0 {
		keys = append(keys, fmt.Sprintf("%d keys of other users", e.hidden))
	}
	return "this wait would never end: connections already wait for one another over " +
		strings.Join(keys, " -> ") + "; release what this connection holds, or take the keys in one order everywhere"
}

// maxCycleSteps bounds a search: it runs under the lock of all wait queues.
const maxCycleSteps = 10_000

// visitedOwner is an owner that the search has reached, and the key that led to it.
type visitedOwner struct {
	owner Owner
	key   engine.Key
	from  int // index of the owner that led here, −1 for the first
}

// cycleLocked returns the keys of a deadlock cycle that the wait would close. The wait's owner
// holds a key that another owner waits for, and so on; the last owner holds what this wait
// needs. It returns nil if there is no cycle, or none near enough to be found.
//
// A lease ends by itself, so such a cycle does not last for ever. It costs every owner in it
// the rest of its leases, and the last one to join can still be refused.
func (l *waitList) cycleLocked(w *waiter) *Deadlock {
	if w.request.Owner == nil {
		return nil
	}
	goals := w.request.SortedKeys()
	queue := []visitedOwner{{w.request.Owner, "", -1}}
	visited := map[Owner]bool{w.request.Owner: true}
	steps := 0
	for at := 0; at < len(queue); at++ {
		for _, held := range queue[at].owner.Holds(l.leases.Runs) {
			if steps++; steps > maxCycleSteps {
				return nil
			}
			if held.DB == w.request.DB && slices.Contains(goals, held.Key) && l.blocksLocked(w, held) {
				return &Deadlock{Keys: cycleKeys(held.Key, queue, at)}
			}
			queued := false // a waiter of FAIR is blocked; only a holder of the key may pass it
			for _, ln := range l.byKey[dbKey{held.DB, held.Key}] {
				blocked := false // no waiter overtakes one that the lease blocks
				for other := ln.head; other != nil && steps <= maxCycleSteps; other = other.next {
					steps++
					blocked = blocked || l.blockedBy(other, held)
					if owner := other.request.Owner; (blocked || queued && !other.mayHold()) && owner != nil && !visited[owner] {
						visited[owner] = true
						queue = append(queue, visitedOwner{owner, held.Key, at})
					}
				}
				queued = queued || blocked && ln.ticketsLocked() > 0
			}
		}
	}
	return nil
}

// mayHold reports whether the waiter's token or owner may hold the key already, and pass a ticket.
func (w *waiter) mayHold() bool {
	return w.request.Token != "" || lease.LevelOwner(w.request.Mode) != ""
}

// blocksLocked reports whether a lease blocks the waiter, or another one that is, or would be,
// ahead of it in its wait queue, or has a ticket of FAIR.
func (l *waitList) blocksLocked(w *waiter, held engine.LeaseID) bool {
	if l.blockedBy(w, held) {
		return true
	}
	steps, own := 0, w.queueID()
	for _, ln := range l.byKey[dbKey{held.DB, held.Key}] {
		if ln.queueID != own && (ln.ticketsLocked() == 0 || w.mayHold()) {
			continue
		}
		for other := ln.head; other != nil && other != w && steps < maxCycleSteps; other = other.next {
			if steps++; l.blockedBy(other, held) {
				return true
			}
		}
	}
	return false
}

// cycleKeys lists the keys of the cycle: first the key that the wait needs, then back to it.
func cycleKeys(goal engine.Key, queue []visitedOwner, at int) []engine.Key {
	keys := []engine.Key{goal}
	for ; at > 0; at = queue[at].from {
		keys = append(keys, queue[at].key)
	}
	return keys
}

// blockedBy reports whether a lease of the awaited key blocks the waiter. A lease of its
// own token does not. A reader that requests the write lock waits for the other readers;
// if one of them requests it, too, neither will ever release.
func (l *waitList) blockedBy(w *waiter, held engine.LeaseID) bool {
	kind := w.request.Kind()
	together := kind != lease.Exclusive && kind == l.leases.Known(held).Kind && lease.LevelOwner(w.request.Mode) == engine.OwnerOf(held.Token)
	return held.Token != w.request.Token && !together
}
