// Watchers: callbacks for changes of keys. See tracker.go for the source.

package notify

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// Config is the masters of one database, and how to reach them.
type Config struct {
	Masters []wire.Master
	DB      int
	Clock   clock.Clock
	Logger  *slog.Logger
	Timeout time.Duration // of every step of a dial
}

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

// Keys is the watchers of one database; it has a lock of its own, so
// that announcements never wait for a flush.
type Keys struct {
	Config
	Dial      wire.TrackDialer        // nil: nothing is watched
	Submit    func(task func()) error // starts a task; at most one runs for each master
	MaxQueue  int                     // queries that wait for one master
	Untracked bool                    // the masters cannot announce changes, they are only read

	mu       sync.Mutex
	byKey    map[string][]Watcher
	trackers []*tracker // by lane; nil before the first Watch and after a long silence
	idle     clock.Timer
	closed   bool
}

// Watch reads the key's remaining time on every master and tracks its changes; round
// is returned with the answers.
func (s *Keys) Watch(key string, round uint64, w Watcher) {
	s.mu.Lock()
	if s.closed || s.Dial == nil {
		s.mu.Unlock()
		return
	}
	if s.byKey == nil {
		s.byKey = map[string][]Watcher{}
	}
	if s.trackers == nil {
		for lane, m := range s.Masters {
			s.trackers = append(s.trackers, &tracker{keys: s, index: lane, master: m})
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
func (s *Keys) Unwatch(key string, w Watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil { // nothing was ever watched: there is no tracking, or it had closed before
		return
	}
	if s.byKey[key] = slices.DeleteFunc(s.byKey[key], func(other Watcher) bool { return other == w }); len(s.byKey[key]) == 0 {
		delete(s.byKey, key)
	}
	if len(s.byKey) > 0 || s.trackers == nil {
		return
	}
	if s.idle == nil {
		s.idle = s.Clock.AfterFunc(trackersIdle, s.endIdleTrackers)
		return
	}
	s.idle.Reset(trackersIdle)
}

func (s *Keys) endIdleTrackers() { s.end(false) }

// Close ends all connections.
func (s *Keys) Close() { s.end(true) }

func (s *Keys) end(forever bool) {
	s.mu.Lock()
	s.closed = s.closed || forever
	var trackers []*tracker
	if s.closed || len(s.byKey) == 0 {
		trackers, s.trackers = s.trackers, nil
	}
	if s.closed && s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	for _, t := range trackers {
		t.close()
	}
}

// Follow changes the list of masters. The watchers are told that every key may have changed:
// what the former masters track is not announced any more.
func (s *Keys) Follow(masters []wire.Master) {
	s.mu.Lock()
	s.Masters = masters
	former := s.trackers
	s.trackers = nil
	s.mu.Unlock()
	for _, t := range former {
		t.close()
	}
	for lane := range former {
		s.changed(lane, nil)
	}
}

// changed delivers a master's announcement; no keys means all of them.
func (s *Keys) changed(lane int, keys []string) {
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
