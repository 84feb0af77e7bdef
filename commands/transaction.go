// WATCH key, GET key, MULTI, DEL | PEXPIRE | EXPIRE key, EXEC: how clients
// compared and deleted before there was a command for it. The value that GET
// answered is the token of a release or an extension; no other transaction is
// served.

package commands

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// maxWatched bounds what a connection may watch.
const maxWatched = 16

var (
	errTransaction = errors.New("redlockd is not a database: a transaction is WATCH key, GET key, MULTI, one of DEL, UNLINK, PEXPIRE and EXPIRE on that key, EXEC")
	queued         = Simple("QUEUED")
)

// Transaction is what a connection has watched, read and queued. The zero value
// is ready. All but read is called for one command at a time.
type Transaction struct {
	open   bool
	broken bool // a command was refused: EXEC does nothing
	queue  []string

	mu      sync.Mutex
	watched map[access.HeldKey]*redlock.View // nil until it was read
}

// read keeps what GET has seen of a watched key.
func (x *Transaction) read(at access.HeldKey, v redlock.View) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.watched[at]; ok {
		x.watched[at] = &v
	}
}

func (x *Transaction) end() {
	x.open, x.broken, x.queue = false, false, nil
	x.unwatch()
}

// refused notes that a command was not taken: a transaction does all or nothing.
func (x *Transaction) refused() {
	if x.open {
		x.broken = true
	}
}

func (x *Transaction) unwatch() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.watched = nil
}

// queues takes a command of an open transaction; true means that the call has been
// answered.
func (t *Table) queues(c *Call, row *command) bool {
	x := &c.Client.Transaction
	switch row.name {
	case "reset":
		x.end()
		return false
	case "multi", "exec", "discard", "watch", "quit":
		return false
	}
	if !x.open {
		return false
	}
	switch row.name {
	case "del", "unlink", "pexpire", "expire":
		if x.queue == nil {
			x.queue = c.Args
			c.Reply(queued)
			return true
		}
	}
	x.refused()
	c.Reply(row.refuse(errTransaction))
	return true
}

func (t *Table) watch(c *Call) error {
	x := &c.Client.Transaction
	if x.open {
		return redisText("WATCH inside MULTI is not allowed")
	}
	keys, ok, err := t.keysOf(c)
	if err != nil || !ok {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.watched)+len(keys) > maxWatched {
		return fmt.Errorf("%d keys would be watched, allowed are %d", len(x.watched)+len(keys), maxWatched)
	}
	if x.watched == nil {
		x.watched = make(map[access.HeldKey]*redlock.View)
	}
	for _, key := range keys {
		at := access.HeldKey{DB: c.Client.DB, Key: redlock.Key(strings.Clone(string(key)))}
		if _, before := x.watched[at]; !before {
			x.watched[at] = nil
		}
	}
	c.Reply(OK)
	return nil
}

func (t *Table) unwatch(c *Call) error {
	c.Client.Transaction.unwatch()
	c.Reply(OK)
	return nil
}

func (t *Table) multi(c *Call) error {
	if c.Client.Transaction.open {
		return redisText("MULTI calls can not be nested")
	}
	c.Client.Transaction.open = true
	c.Reply(OK)
	return nil
}

func (t *Table) discard(c *Call) error {
	if !c.Client.Transaction.open {
		return redisText("DISCARD without MULTI")
	}
	c.Client.Transaction.end()
	c.Reply(OK)
	return nil
}

// exec answers [1], or nil if the lock is not what GET has seen.
func (t *Table) exec(c *Call) error {
	x := &c.Client.Transaction
	if !x.open {
		return redisText("EXEC without MULTI")
	}
	words, broken := x.queue, x.broken
	x.mu.Lock()
	watched := x.watched
	x.mu.Unlock()
	x.end()
	switch {
	case broken:
		c.Reply(Error("EXECABORT", "Transaction discarded because of previous errors."))
		return nil
	case words == nil:
		c.Reply(Array())
		return nil
	case len(words) < 2:
		return errTransaction
	}
	key, err := parseKey(words[1])
	if err != nil {
		return err
	}
	seen := watched[access.HeldKey{DB: c.Client.DB, Key: key}]
	if seen == nil {
		return errTransaction
	}
	if seen.Kind == "none" {
		c.Reply(Array(Int(0)))
		return nil
	}
	return t.execIfEqual(c, words, key, seen.Value)
}

// execIfEqual does the one command while the lock has this value.
func (t *Table) execIfEqual(c *Call, words []string, key redlock.Key, value redlock.Token) error {
	completer, watch := c.Completer, t.timed("exec")
	done := func(yes bool, err error) {
		watch.stop(yes, err)
		switch {
		case err != nil:
			completer.Complete(failure(err))
		case yes:
			completer.Complete(Array(Int(1)))
		default:
			completer.Complete(NilArray)
		}
	}
	unit := int64(1)
	switch name := strings.ToLower(words[0]); {
	case (name == "del" || name == "unlink") && len(words) == 2:
		t.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: key, Token: value}, done)
		return nil
	case name == "expire" && len(words) == 3:
		unit = 1000
	case name == "pexpire" && len(words) == 3:
	default:
		return errTransaction
	}
	ttl, err := t.expiryOf(words, unit)
	if err != nil {
		return err
	}
	if ttl == 0 {
		t.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: key, Token: value}, done)
		return nil
	}
	request := redlock.ExtendRequest{DB: c.Client.DB, Key: key, Token: value, TTL: ttl}
	t.deps.Locks.Extend(c.Batch, request, t.prolonged(request, done))
	return nil
}
