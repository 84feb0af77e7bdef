// Watchers: callbacks for changes of keys. See tracker.go for the source.

package pool

import (
	"slices"
	"sync"
	"time"
)

// Watcher receives the state of a key on the masters. Its methods are called from
// several goroutines and must not block. Every call is a hint: it may be
// lost, late, or about another database's key of the same name.
type Watcher interface {
	// Remains answers a Watch for one master: how long its copy lasts, 0 if it
	// has none, below 0 if the copy does not expire. With tracked the master
	// will announce when the key changes. For an unreachable master there is no call.
	Remains(lane int, round uint64, left time.Duration, tracked bool)
	// Gone reports once after a tracked answer that the key was deleted or changed.
	Gone(lane int)
}

// trackersIdle is how long the trackers' connections stay open with nothing to watch.
const trackersIdle = 10 * time.Second

// watchState is the watchers of a group; it has a lock of its own, so
// that announcements never wait for a flush.
type watchState struct {
	mu       sync.Mutex
	byKey    map[string][]Watcher
	trackers []*tracker // by lane; nil before the first Watch and after a long silence
	idle     Timer
	closed   bool
}

// Watch reads the key's remaining time on every master and tracks its changes; round
// is returned with the answers.
func (g *Group) Watch(key string, round uint64, w Watcher) {
	s := &g.watch
	s.mu.Lock()
	if s.closed || g.pool.track == nil {
		s.mu.Unlock()
		return
	}
	if s.byKey == nil {
		s.byKey = map[string][]Watcher{}
	}
	if s.trackers == nil {
		for lane := range g.lanes {
			s.trackers = append(s.trackers, &tracker{group: g, index: lane})
		}
	}
	s.byKey[key] = append(s.byKey[key], w)
	trackers := s.trackers
	s.mu.Unlock()
	for _, t := range trackers {
		t.enqueue(keyQuery{key: key, round: round, watcher: w})
	}
}

// Unwatch ends the calls of a watcher for a key. The masters track the key until it changes once
// more, which costs one message.
func (g *Group) Unwatch(key string, w Watcher) {
	s := &g.watch
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil { // nothing was ever watched: there is no tracking, or the group had closed before
		return
	}
	if s.byKey[key] = slices.DeleteFunc(s.byKey[key], func(other Watcher) bool { return other == w }); len(s.byKey[key]) == 0 {
		delete(s.byKey, key)
	}
	if len(s.byKey) > 0 || s.trackers == nil {
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
	if len(s.byKey) > 0 {
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

// changed delivers a master's announcement; no keys means all of them.
func (g *Group) changed(lane int, keys []string) {
	s := &g.watch
	var watching []Watcher
	s.mu.Lock()
	for _, key := range keys {
		watching = append(watching, s.byKey[key]...)
	}
	if keys == nil {
		for _, watchers := range s.byKey {
			watching = append(watching, watchers...)
		}
	}
	s.mu.Unlock()
	for _, w := range watching {
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
