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
func (x *Transaction) Watches(db int, keys []redlock.Key) (further []access.HeldKey, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.watched)+len(keys) > maxWatched {
		return nil, fmt.Errorf("%d keys would be watched, allowed are %d", len(x.watched)+len(keys), maxWatched)
	}
	for _, key := range keys {
		at := access.HeldKey{DB: db, Key: redlock.Key(strings.Clone(string(key)))}
		if x.findLocked(at) == nil {
			further = append(further, at)
		}
	}
	return further, nil
}

// Watch begins comparisons with these locks.
func (x *Transaction) Watch(locks []Watched) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.watched = append(x.watched, locks...)
}

func (x *Transaction) Unwatch() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.watched = nil
}

func (x *Transaction) findLocked(at access.HeldKey) *Watched {
	for i := range x.watched {
		if x.watched[i].At == at {
			return &x.watched[i]
		}
	}
	return nil
}

// Saw notes that GET has shown the value of a watched key.
func (x *Transaction) Saw(at access.HeldKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if one := x.findLocked(at); one != nil {
		one.Read = true
	}
}

// Open reports whether MULTI was sent; Begin opens the transaction.
func (x *Transaction) Open() bool { return x.open }

func (x *Transaction) Begin() { x.open = true }

// End returns what was queued, one command or readings of one key, with the watched locks, and starts
// anew. If broken, nothing may be done.
func (x *Transaction) End() (queue [][]string, watched []Watched, broken bool) {
	queue, broken = x.queue, x.broken
	x.open, x.broken, x.queue = false, false, nil
	x.mu.Lock()
	defer x.mu.Unlock()
	watched, x.watched = x.watched, nil
	return queue, watched, broken
}

// refused notes that a command was not taken: a transaction does all or nothing.
func (x *Transaction) refused() {
	if x.open {
		x.broken = true
	}
}

// alone are the commands that may be the only one of a transaction.
var alone = map[string]bool{
	"set": true, "setnx": true, "setex": true, "psetex": true, "msetex": true, "del": true, "unlink": true, "delex": true, "delifeq": true,
	"expire": true, "pexpire": true, "eval": true, "evalsha": true, "eval_ro": true, "evalsha_ro": true,
	"get": true, "pttl": true, "ttl": true, "exists": true,
}

// takes reports whether there is room for a command with these words, whose row has the name.
func (x *Transaction) takes(name string, words []string) bool {
	if x.queue == nil {
		return alone[name]
	}
	first := x.queue[0]
	return (name == "get" || name == "pttl") && len(x.queue) < maxReadings && Reads(first) && first[1] == words[1]
}

// Reads reports whether a queued command only reads a lock, and may have further ones behind it.
func Reads(words []string) bool { return arg.IsWord(words[0], "GET") || arg.IsWord(words[0], "PTTL") }
