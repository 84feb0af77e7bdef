// Transaction is what a connection has watched, read and queued: WATCH key, GET key,
// MULTI, DEL | PEXPIRE | EXPIRE key, EXEC. Or it reads one lock, as clients do that keep what
// they read: MULTI, PTTL key, GET key, EXEC. No other transaction is served.

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
var ErrTransaction = errors.New("redlockd is not a database: a transaction is WATCH key, GET key, MULTI, one of DEL, UNLINK, PEXPIRE and EXPIRE on that key, EXEC; or MULTI, PTTL key, GET key, EXEC")

// Transaction of one connection. The zero value is ready. All but Saw is called for
// one command at a time.
type Transaction struct {
	open   bool
	broken bool // a command was refused: EXEC does nothing
	queue  [][]string

	mu      sync.Mutex
	watched map[access.HeldKey]*redlock.View // nil until it was read
}

// Watch begins a comparison of these keys.
func (x *Transaction) Watch(db int, keys []redlock.Key) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.watched)+len(keys) > maxWatched {
		return fmt.Errorf("%d keys would be watched, allowed are %d", len(x.watched)+len(keys), maxWatched)
	}
	if x.watched == nil {
		x.watched = make(map[access.HeldKey]*redlock.View)
	}
	for _, key := range keys {
		at := access.HeldKey{DB: db, Key: redlock.Key(strings.Clone(string(key)))}
		if _, before := x.watched[at]; !before {
			x.watched[at] = nil
		}
	}
	return nil
}

func (x *Transaction) Unwatch() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.watched = nil
}

// Saw keeps what GET has seen of a watched key.
func (x *Transaction) Saw(at access.HeldKey, v redlock.View) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.watched[at]; ok {
		x.watched[at] = &v
	}
}

// Open reports whether MULTI was sent; Begin opens the transaction.
func (x *Transaction) Open() bool { return x.open }

func (x *Transaction) Begin() { x.open = true }

// End returns what was queued, one change or readings of one key, with what GET has seen of a
// key, and starts anew. If broken, nothing may be done.
func (x *Transaction) End() (queue [][]string, seen func(access.HeldKey) *redlock.View, broken bool) {
	queue, broken = x.queue, x.broken
	x.open, x.broken, x.queue = false, false, nil
	x.mu.Lock()
	watched := x.watched
	x.watched = nil
	x.mu.Unlock()
	return queue, func(at access.HeldKey) *redlock.View { return watched[at] }, broken
}

// refused notes that a command was not taken: a transaction does all or nothing.
func (x *Transaction) refused() {
	if x.open {
		x.broken = true
	}
}

// takes reports whether there is room for a command with these words, whose row has the name.
func (x *Transaction) takes(name string, words []string) bool {
	switch name {
	case "del", "unlink", "pexpire", "expire":
		return x.queue == nil
	case "get", "pttl":
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.watched == nil && (x.queue == nil || len(x.queue) < maxReadings && Reads(x.queue[0]) && x.queue[0][1] == words[1])
	}
	return false
}

// Reads reports whether a queued command changes nothing.
func Reads(words []string) bool { return arg.IsWord(words[0], "GET") || arg.IsWord(words[0], "PTTL") }
