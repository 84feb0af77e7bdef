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
func (k *Keys) Watch(key string, round uint64, w Watcher) {
	k.mu.Lock()
	if k.closed || k.Dial == nil {
		k.mu.Unlock()
		return
	}
	if k.byKey == nil {
		k.byKey = map[string][]Watcher{}
	}
	if k.trackers == nil {
		for lane, m := range k.Masters {
			k.trackers = append(k.trackers, &tracker{keys: k, index: lane, master: m})
		}
	}
	k.byKey[key] = append(k.byKey[key], w)
	trackers := k.trackers
	k.mu.Unlock()
	for _, t := range trackers {
		t.enqueue(keyQuery{key: key, round: round, watcher: w})
	}
}

// Unwatch ends the calls of a watcher for a key. The masters track the key until it changes once
// more, which costs one message.
func (k *Keys) Unwatch(key string, w Watcher) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey == nil { // nothing was ever watched: there is no tracking, or it had closed before
		return
	}
	if k.byKey[key] = slices.DeleteFunc(k.byKey[key], func(other Watcher) bool { return other == w }); len(k.byKey[key]) == 0 {
		delete(k.byKey, key)
	}
	if len(k.byKey) > 0 || k.trackers == nil {
		return
	}
	if k.idle == nil {
		k.idle = k.Clock.AfterFunc(trackersIdle, k.endIdleTrackers)
		return
	}
	k.idle.Reset(trackersIdle)
}

func (k *Keys) endIdleTrackers() { k.end(false) }

// Close ends all connections.
func (k *Keys) Close() { k.end(true) }

func (k *Keys) end(forever bool) {
	k.mu.Lock()
	k.closed = k.closed || forever
	var trackers []*tracker
	if k.closed || len(k.byKey) == 0 {
		trackers, k.trackers = k.trackers, nil
	}
	if k.closed && k.idle != nil {
		k.idle.Stop()
	}
	k.mu.Unlock()
	for _, t := range trackers {
		t.close()
	}
}

// Follow changes the list of masters. The watchers are told that every key may have changed:
// what the former masters track is not announced any more.
func (k *Keys) Follow(masters []wire.Master) {
	k.mu.Lock()
	k.Masters = masters
	former := k.trackers
	k.trackers = nil
	k.mu.Unlock()
	for _, t := range former {
		t.close()
	}
	for lane := range former {
		k.changed(lane, nil)
	}
}

// changed delivers a master's announcement; no keys means all of them.
func (k *Keys) changed(lane int, keys []string) {
	var watching []Watcher
	k.mu.Lock()
	for _, key := range keys {
		watching = append(watching, k.byKey[key]...)
	}
	if keys == nil {
		for _, watchers := range k.byKey {
			watching = append(watching, watchers...)
		}
	}
	k.mu.Unlock()
	for _, w := range watching {
		w.Gone(lane)
	}
}
