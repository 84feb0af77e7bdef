// WATCH key, GET key, MULTI, DEL | PEXPIRE | EXPIRE key, EXEC: how clients
// compared and deleted before there was a command for it. The value that GET
// answered is the token of a release or an extension.

package commands

import (
	"strings"

	"redlockd/commands/access"
	"redlockd/redlock"
)

func (t *Table) watch(c *Call) error {
	x := &c.Client.Transaction
	if x.Open() {
		return redisText("WATCH inside MULTI is not allowed")
	}
	keys, ok, err := t.keysOf(c)
	if err != nil || !ok {
		return err
	}
	if err := x.Watch(c.Client.DB, keys); err != nil {
		return err
	}
	c.Reply(OK)
	return nil
}

func (t *Table) unwatch(c *Call) error {
	c.Client.Transaction.Unwatch()
	c.Reply(OK)
	return nil
}

func (t *Table) multi(c *Call) error {
	if c.Client.Transaction.Open() {
		return redisText("MULTI calls can not be nested")
	}
	c.Client.Transaction.Begin()
	c.Reply(OK)
	return nil
}

func (t *Table) discard(c *Call) error {
	if !c.Client.Transaction.Open() {
		return redisText("DISCARD without MULTI")
	}
	c.Client.Transaction.End()
	c.Reply(OK)
	return nil
}

// exec answers [1], or nil if the lock is not what GET has seen.
func (t *Table) exec(c *Call) error {
	x := &c.Client.Transaction
	if !x.Open() {
		return redisText("EXEC without MULTI")
	}
	words, seenOf, broken := x.End()
	switch {
	case broken:
		c.Reply(Error("EXECABORT", "Transaction discarded because of previous errors."))
		return nil
	case words == nil:
		c.Reply(Array())
		return nil
	case len(words) < 2:
		return ErrTransaction
	}
	key, err := parseKey(words[1])
	if err != nil {
		return err
	}
	seen := seenOf(access.HeldKey{DB: c.Client.DB, Key: key})
	if seen == nil {
		return ErrTransaction
	}
	if seen.Kind == "none" {
		c.Reply(Array(Int(0)))
		return nil
	}
	return t.execIfEqual(c, words, key, seen.Value)
}

// execIfEqual does the one command while the lock has this value.
func (t *Table) execIfEqual(c *Call, words []string, key redlock.Key, value redlock.Token) error {
	completer, watch := c.Completer, t.deps.DropinStats.Timed("exec")
	done := func(yes bool, err error) {
		watch.Stop(yes, err)
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
		return ErrTransaction
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
