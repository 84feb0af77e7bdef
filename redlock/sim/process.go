package sim

// process.go: the process of a master ends, stops, goes on and comes back.

import (
	"maps"
	"slices"
	"strings"
	"time"

	"redlockd/redlock/sim/fake"
)

// resume executes what has come meanwhile: the order of a connection is kept,
// that of connections is not.
func (s *server) resume() {
	if !s.stopped {
		return
	}
	w := s.world
	s.stopped = false
	w.trace.note("", "master %s goes on", s.name)
	waiting := s.backlog
	s.backlog = nil
	w.random.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	for _, f := range waiting {
		delay := w.between(0, 200*time.Microsecond)
		if w.chance(4) && !w.calm { // lost on the way and sent again: newer connections are faster
			delay = w.between(0, 60*time.Millisecond)
		}
		w.after(delay, nil, f.arrive)
	}
}

// crash ends a process and starts the next: 0 empty, 1 with an older memory,
// 2 with all of it, 3 as a replica that was promoted.
func (s *server) crash(kind int) {
	w := s.world
	if !s.up {
		return
	}
	next := fake.Memory{}
	switch kind {
	case 1, 3:
		if next = s.snapshot.Clone(); next == nil {
			next = fake.Memory{}
		}
		w.forgets = true // what was released may be there again
	case 2:
		next = s.Memory.Clone()
	}
	w.trace.note("", "master %s is killed, kind %d", s.name, kind)
	s.up, s.stopped, s.backlog = false, false, nil
	for _, l := range s.sortedLinks() {
		l.sever()
	}
	process := s.process
	w.after(w.between(time.Millisecond, 300*time.Millisecond), nil, func() {
		if s.process != process {
			return
		}
		s.promoted = kind == 3
		if s.start(next); kind != 2 || !s.durable {
			s.doubt(0)
		}
		w.trace.note("", "master %s is there again with %d keys", s.name, len(next))
	})
}

func (s *server) sortedLinks() (all []*simLink) {
	for id := int64(1); id <= s.lastID; id++ {
		if l := s.links[id]; l != nil {
			all = append(all, l)
		}
	}
	return all
}

// evictBeforeInfo takes keys just before a daemon reads the statistics.
func (s *server) evictBeforeInfo(a []string) {
	if w := s.world; w.Scenario.Evicts && len(a) > 1 && a[1] == "stats" && !w.calm && w.overAge() {
		s.evict()
	}
}

// evict takes most keys and leaves the seal.
func (s *server) evict() {
	w := s.world
	for _, key := range slices.Sorted(maps.Keys(s.Memory)) {
		if !strings.HasSuffix(key, "redlockd:seal") && !w.chance(4) {
			delete(s.Memory, key)
			s.evicted++
		}
	}
	s.doubt(0)
	w.trace.note("", "master %s has evicted %d keys", s.name, s.evicted)
}
