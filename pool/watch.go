// Who is told when a key goes away? See tracker.go for how it is known.
package pool

import (
	"slices"
	"sync"
	"time"
)

// Watcher hears what the masters say about a key. Its methods are called from
// several goroutines and must not block. Everything it hears is a hint: news
// may be lost, late, or of another database's key of the same name.
type Watcher interface {
	// Remains answers a Watch for one master: how long its copy lasts, 0 if it
	// has none, below 0 if the copy does not expire. With tracked the master
	// will say when the key changes. Masters that cannot be asked say nothing.
	Remains(lane int, round uint64, left time.Duration, tracked bool)
	// Gone says once after a tracked answer that the key was deleted or changed.
	Gone(lane int)
}

// trackersIdle is how long the connections for news stay open with nothing to watch.
const trackersIdle = 10 * time.Second

// watch is what a group knows of its watchers; it has a lock of its own, so
// that news never wait for a flush.
type watch struct {
	mu       sync.Mutex
	by       map[string][]Watcher
	trackers []*tracker // by lane; nil before the first Watch and after a long silence
	idle     Timer
	closed   bool
}

// Watch asks every master for the key's remaining time and for news of it; round
// comes back with the answers.
func (g *Group) Watch(key string, round uint64, w Watcher) {
	s := &g.watch
	s.mu.Lock()
	if s.closed || g.pool.track == nil {
		s.mu.Unlock()
		return
	}
	if s.by == nil {
		s.by = map[string][]Watcher{}
	}
	if s.trackers == nil {
		for lane := range g.lanes {
			s.trackers = append(s.trackers, &tracker{group: g, index: lane})
		}
	}
	s.by[key] = append(s.by[key], w)
	trackers := s.trackers
	s.mu.Unlock()
	for _, t := range trackers {
		t.ask(inquiry{key: key, round: round, watcher: w})
	}
}

// Unwatch ends a watcher's news of a key. The masters go on until it changes once
// more, which costs one message.
func (g *Group) Unwatch(key string, w Watcher) {
	s := &g.watch
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil { // nothing was ever watched: there is no tracking, or the group had closed before
		return
	}
	if s.by[key] = slices.DeleteFunc(s.by[key], func(other Watcher) bool { return other == w }); len(s.by[key]) == 0 {
		delete(s.by, key)
	}
	if len(s.by) > 0 || s.trackers == nil {
		return
	}
	if s.idle == nil {
		s.idle = g.pool.options.Clock.AfterFunc(trackersIdle, g.endIdleTrackers)
		return
	}
	s.idle.Reset(trackersIdle)
}

func (g *Group) endIdleTrackers() {
	s := &g.watch
	s.mu.Lock()
	if len(s.by) > 0 {
		s.mu.Unlock()
		return
	}
	trackers := s.trackers
	s.trackers = nil
	s.mu.Unlock()
	for _, t := range trackers {
		t.close()
	}
}

// changed takes a master's news; no keys means all of them.
func (g *Group) changed(lane int, keys []string) {
	s := &g.watch
	var told []Watcher
	s.mu.Lock()
	for _, key := range keys {
		told = append(told, s.by[key]...)
	}
	if keys == nil {
		for _, watchers := range s.by {
			told = append(told, watchers...)
		}
	}
	s.mu.Unlock()
	for _, w := range told {
		w.Gone(lane)
	}
}

func (g *Group) closeWatch() {
	s := &g.watch
	s.mu.Lock()
	s.closed = true
	if s.idle != nil {
		s.idle.Stop()
	}
	trackers := s.trackers
	s.trackers = nil
	s.mu.Unlock()
	for _, t := range trackers {
		t.close()
	}
}
