// Transaction is what a connection has watched and queued. MULTI takes one command on locks, which is
// as atomic with EXEC as without it; with WATCH before, it is done only while the watched locks are
// as they were. Or it reads one lock, as clients do that keep what they read: MULTI, PTTL key, GET
// key, EXEC. No other transaction is served.

package commands

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// maxWatched bounds what a connection may watch.
const maxWatched = 16

const maxReadings = 4

// ErrTransaction refuses what is no such transaction.
var ErrTransaction = errors.New("redlockd is not a database: a transaction is MULTI, one command of Redis on locks, EXEC, with WATCH and GET of the locks before it; or MULTI, PTTL key, GET key, EXEC; pipelines need none (redis-py: pipeline(transaction=False))")

// Watched is a lock as it was when it was watched.
type Watched struct {
	At    access.HeldKey
	Seen  *redlock.Observation
	Fence Reply // as far as this daemon knows it
	// Read: GET has shown the value to the client, which may therefore give up the lock.
	Read bool
}

// Transaction of one connection. The zero value is ready. All but Saw is called for
// one command at a time.
type Transaction struct {
	open   bool
	broken bool // a command was refused: EXEC does nothing
	queue  [][]string

	mu      sync.Mutex
	watched []Watched
}

// Watches returns which of the keys are to be watched from now on: not those that are already.
func (t *Transaction) Watches(db int, keys []redlock.Key) (further []access.HeldKey, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.watched)+len(keys) > maxWatched {
		return nil, fmt.Errorf("%d keys would be watched, allowed are %d", len(t.watched)+len(keys), maxWatched)
	}
	for _, key := range keys {
		at := access.HeldKey{DB: db, Key: redlock.Key(strings.Clone(string(key)))}
		if t.findLocked(at) == nil {
			further = append(further, at)
		}
	}
	return further, nil
}

// Watch begins comparisons with these locks.
func (t *Transaction) Watch(locks []Watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = append(t.watched, locks...)
}

func (t *Transaction) Unwatch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = nil
}

func (t *Transaction) findLocked(at access.HeldKey) *Watched {
	for i := range t.watched {
		if t.watched[i].At == at {
			return &t.watched[i]
		}
	}
	return nil
}

// Saw notes that GET has shown the value of a watched key.
func (t *Transaction) Saw(at access.HeldKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.findLocked(at); one != nil {
		one.Read = true
	}
}

// Open reports whether MULTI was sent; Begin opens the transaction.
func (t *Transaction) Open() bool { return t.open }

func (t *Transaction) Begin() { t.open = true }

// End returns what was queued, one command or readings of one key, with the watched locks, and starts
// anew. If broken, nothing may be done.
func (t *Transaction) End() (queue [][]string, watched []Watched, broken bool) {
	queue, broken = t.queue, t.broken
	t.open, t.broken, t.queue = false, false, nil
	t.mu.Lock()
	defer t.mu.Unlock()
	watched, t.watched = t.watched, nil
	return queue, watched, broken
}

// refused notes that a command was not taken: a transaction does all or nothing.
func (t *Transaction) refused() {
	if t.open {
		t.broken = true
	}
}

// alone are the commands that may be the only one of a transaction.
var alone = map[string]bool{
	"set": true, "setnx": true, "setex": true, "psetex": true, "msetex": true, "del": true, "unlink": true, "delex": true, "delifeq": true,
	"expire": true, "pexpire": true, "eval": true, "evalsha": true, "eval_ro": true, "evalsha_ro": true,
	"get": true, "pttl": true, "ttl": true, "exists": true,
}

// takes reports whether there is room for a command with these words, whose row has the name.
func (t *Transaction) takes(name string, words []string) bool {
	if t.queue == nil {
		return alone[name]
	}
	first := t.queue[0]
	return (name == "get" || name == "pttl") && len(t.queue) < maxReadings && Reads(first) && first[1] == words[1]
}

// Reads reports whether a queued command only reads a lock, and may have further ones behind it.
func Reads(words []string) bool { return arg.IsWord(words[0], "GET") || arg.IsWord(words[0], "PTTL") }
