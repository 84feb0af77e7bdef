// Looking at those who wait in this daemon.
package redlock

import (
	"cmp"
	"slices"
	"time"
)

// Who is on whose behalf something is asked, for people who look later.
type Who struct {
	Client     int64 // number of the connection in this daemon
	Addr, Name string
	User       string
	// Trace hears the votes on this one request; nil = nobody does. It is here
	// because a waiter costs what a LockRequest costs.
	Trace *Trace
}

// Waiting is one request that waits.
type Waiting struct {
	Keys  []Key // what it waits for
	Mode  Mode
	Fair  bool
	Who   Who
	Place int           // in its line in this daemon, from 1
	Since time.Duration // that it has waited
	Left  time.Duration // that it will wait at most
}

// Waiting lists those who wait for a wanted key of a database, at most most of
// them, those who have waited longest first, and tells how many there are. It is
// one look at all lines; wanted must be quick.
func (l *Locker) Waiting(db int, wanted func(Key) bool, most int) (list []Waiting, all int) {
	s, now := &l.waits, l.clock.Now()
	if s.count.Load() == 0 {
		return nil, 0
	}
	s.mu.Lock()
	for _, ln := range s.lines {
		if ln.db != db || !slices.ContainsFunc(ln.keys, wanted) {
			continue
		}
		all += ln.length
		n := 0
		for w := ln.head; w != nil && n < most; w = w.next {
			n++
			list = append(list, w.describe(n, now))
		}
		if len(list) > 2*most {
			list = oldest(list, most)
		}
	}
	s.mu.Unlock()
	return oldest(list, most), all
}

func (w *waiter) describe(place int, now time.Duration) Waiting {
	r := &w.request
	one := Waiting{
		Keys: w.line.keys, Mode: r.Mode, Fair: r.Fair, Place: place,
		Since: max(0, now-(w.end-r.Wait)), Left: max(0, w.end-now),
	}
	if r.Who != nil {
		one.Who = *r.Who
	}
	return one
}

// oldest keeps those who have waited longest.
func oldest(list []Waiting, most int) []Waiting {
	slices.SortFunc(list, func(a, b Waiting) int {
		return cmp.Or(-cmp.Compare(a.Since, b.Since), slices.Compare(a.Keys, b.Keys), cmp.Compare(a.Place, b.Place))
	})
	return list[:min(len(list), most)]
}

// countAt is how many wait at one place.
func (s *waiters) countAt(p place) int {
	if s.count.Load() == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, ln := range s.at[p] {
		n += ln.length
	}
	return n
}
