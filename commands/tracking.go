// Tracking is CLIENT TRACKING of one connection: its client keeps what it reads, and receives an
// invalidation when that is no longer so. It is as in Redis: a key is tracked from the reply
// that showed it until the first invalidation, and what the connection itself changes is
// invalidated, too, unless it set NOLOOP. Unlike in Redis, a lock that the connection took or
// was refused is tracked as well.

package commands

import (
	"strings"
	"sync"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// trackedCost counts a tracked key's memory beside its name and value: 1,200 bytes in package
// track and below, and the rest here. Tests measure both.
const trackedCost = 1200 + 400

// Tracking is the state of one connection. Its exported fields are set by CLIENT TRACKING,
// which is a barrier.
type Tracking struct {
	OptIn, OptOut, NoLoop bool
	Broadcast             bool
	Prefixes              []string // of Broadcast
	Redirect              int64    // the connection that receives the messages, 0 = this one
	// Caching is CLIENT CACHING for the next command: nil = not sent.
	Caching *bool

	// Track is that of Inspect.
	Track   func(db int, key redlock.Key, seen redlock.Seen, report func(lost bool)) (stop func())
	MaxKeys int
	Send    func(keys Reply) // an invalidation of these keys; Nil = all
	Account func(bytes int)  // of memory that the tracked keys take

	mu     sync.Mutex
	ended  bool
	broken bool
	ends   []func() // what ends with the tracking
	keys   map[access.HeldKey]*trackedKey
	bytes  int
}

// trackedKey is one key until its invalidation.
type trackedKey struct {
	seen redlock.Seen
	stop func() // nil while tracking begins
}

// suspend ends the tracking of what a command may change itself, until its reply.
func (t *Tracking) suspend(db int, names []string) (suspended map[redlock.Key]redlock.Seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.keys) == 0 {
		return nil
	}
	for _, name := range names {
		at := access.HeldKey{DB: db, Key: redlock.Key(name)}
		if k := t.keys[at]; k != nil {
			t.dropLocked(at, k)
			if suspended == nil {
				suspended = map[redlock.Key]redlock.Seen{}
			}
			suspended[at.Key] = k.seen
		}
	}
	return suspended
}

func (t *Tracking) dropLocked(at access.HeldKey, k *trackedKey) {
	delete(t.keys, at)
	t.bytes -= k.size(at)
	if k.stop != nil {
		k.stop()
	}
}

func (k *trackedKey) size(at access.HeldKey) int {
	return trackedCost + len(at.Key) + len(k.seen.View.Value)
}

// track tracks what the client has seen of a key. If there are too many, another one is
// invalidated instead, as in Redis.
func (t *Tracking) track(db int, key redlock.Key, seen redlock.Seen) {
	at := access.HeldKey{DB: db, Key: redlock.Key(strings.Clone(string(key)))}
	seen.View.Value = redlock.Token(strings.Clone(string(seen.View.Value)))
	k := &trackedKey{seen: seen}
	var evicted []Reply
	t.mu.Lock()
	former := t.keys[at]
	if t.ended || former != nil && former.seen.Same(&seen) && seen.Lease <= 0 {
		t.mu.Unlock()
		return
	}
	if former != nil {
		t.dropLocked(at, former)
	}
	for other, k := range t.keys {
		if len(t.keys) < t.MaxKeys {
			break
		}
		t.dropLocked(other, k)
		evicted = append(evicted, Bulk(string(other.Key)))
	}
	if t.keys == nil {
		t.keys = map[access.HeldKey]*trackedKey{}
	}
	t.keys[at] = k
	t.bytes += k.size(at)
	t.mu.Unlock()
	stop := t.Track(db, at.Key, seen, func(lost bool) { t.changed(at, k, lost) })
	t.mu.Lock()
	stays := t.keys[at] == k
	k.stop = stop
	t.mu.Unlock()
	if !stays {
		stop()
	}
	if evicted != nil {
		t.Send(Array(evicted...))
	}
}

// changed sends the invalidation of a key, or of all if the masters cannot decide.
func (t *Tracking) changed(at access.HeldKey, k *trackedKey, lost bool) {
	t.mu.Lock()
	if t.keys[at] != k {
		t.mu.Unlock()
		return
	}
	t.dropLocked(at, k)
	for other, k := range t.keys {
		if !lost {
			break
		}
		t.dropLocked(other, k)
	}
	t.mu.Unlock()
	t.account()
	if lost {
		t.Send(Nil)
	} else {
		t.Send(Array(Bulk(string(at.Key))))
	}
}

// account counts the memory of the keys.
func (t *Tracking) account() {
	t.mu.Lock()
	bytes := t.bytes
	t.mu.Unlock()
	t.Account(bytes)
}

// End ends the tracking without a message.
func (t *Tracking) End() {
	t.mu.Lock()
	t.ended = true
	for at, k := range t.keys {
		t.dropLocked(at, k)
	}
	ends := t.ends
	t.ends = nil
	t.mu.Unlock()
	for _, end := range ends {
		end()
	}
	t.account()
}

// Len counts the tracked keys.
func (t *Tracking) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.keys)
}

// OnEnd calls end when the tracking ends, at once if it has ended.
func (t *Tracking) OnEnd(end func()) {
	t.mu.Lock()
	ended := t.ended
	if !ended {
		t.ends = append(t.ends, end)
	}
	t.mu.Unlock()
	if ended {
		end()
	}
}

// BreakRedirect notes that the connection that received the messages has ended, and notifies the
// client by its push, as Redis does.
func (t *Tracking) BreakRedirect(push func(message Reply, plain bool)) {
	t.mu.Lock()
	t.broken = true
	t.mu.Unlock()
	if push != nil {
		push(Reply{Kind: KindPush, Items: []Reply{Bulk("tracking-redir-broken"), Int(t.Redirect)}}, false)
	}
}

// RedirectBroken reports whether that has happened.
func (t *Tracking) RedirectBroken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}
