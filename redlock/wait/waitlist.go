// This file lists the requests that wait in this daemon.

package wait

import (
	"cmp"
	"slices"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// Waiting is one request that waits.
type Waiting struct {
	Keys      []engine.Key // the keys that it waits for
	Mode      lease.Mode
	Reenters  bool
	Fair      bool
	Requester lease.Requester
	Place     int           // in its wait queue in this daemon, from 1
	Since     time.Duration // the time that it has waited
	Left      time.Duration // the time that it will wait at most
}

// Waiting lists the requests that wait for a wanted key of a database, at most limit of
// them, those that have waited longest first. all is how many there are. It walks over
// all wait queues once; wanted must be quick.
func (l *Queues) Waiting(db int, wanted func(engine.Key) bool, limit int) (list []Waiting, all int) {
	s, now := l, l.engine.Clock.Now()
	if s.count.Load() == 0 {
		return nil, 0
	}
	s.mu.Lock()
	for _, ln := range s.queues {
		if ln.db != db || ln.work || !slices.ContainsFunc(ln.keys, wanted) {
			continue
		}
		all += ln.length
		n := 0
		for w := ln.head; w != nil && n < limit; w = w.next {
			n++
			list = append(list, Describe(&w.request, ln.keys, n, w.end, now))
		}
		if len(list) > 2*limit {
			list = oldest(list, limit)
		}
	}
	s.mu.Unlock()
	return oldest(list, limit), all
}

// Describe is a request that waits until end.
func Describe(r *lease.LockRequest, keys []engine.Key, place int, end, now time.Duration) Waiting {
	one := Waiting{
		Keys: keys, Mode: r.Mode, Reenters: r.Reenters != "", Fair: r.Fair, Place: place,
		Since: max(0, now-(end-r.Wait)), Left: max(0, end-now),
	}
	if r.Requester != nil {
		one.Requester = *r.Requester
	}
	return one
}

func oldest(list []Waiting, limit int) []Waiting {
	slices.SortFunc(list, func(a, b Waiting) int {
		return cmp.Or(-cmp.Compare(a.Since, b.Since), slices.Compare(a.Keys, b.Keys), cmp.Compare(a.Place, b.Place))
	})
	return list[:min(len(list), limit)]
}

// CountAt is how many requests wait for one key.
func (s *Queues) CountAt(db int, key engine.Key) int {
	if s.count.Load() == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, ln := range s.byKey[dbKey{db, key}] {
		n += ln.length
	}
	return n
}
