// WATCH key, GET key, MULTI, DEL | PEXPIRE | EXPIRE key, EXEC: how clients
// compared and deleted before there was a command for it. The value that GET
// answered is the token of a release or an extension.

package rediscompat

import (
	"strings"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

func (h *handlers) watch(c *commands.Call) error {
	x := &c.Client.Transaction
	if x.Open() {
		return commands.RedisText("WATCH inside MULTI is not allowed")
	}
	keys, ok, err := h.keysOf(c)
	if err != nil || !ok {
		return err
	}
	if err := x.Watch(c.Client.DB, keys); err != nil {
		return err
	}
	c.Reply(commands.OK)
	return nil
}

func (h *handlers) unwatch(c *commands.Call) error {
	c.Client.Transaction.Unwatch()
	c.Reply(commands.OK)
	return nil
}

func (h *handlers) multi(c *commands.Call) error {
	if c.Client.Transaction.Open() {
		return commands.RedisText("MULTI calls can not be nested")
	}
	c.Client.Transaction.Begin()
	c.Reply(commands.OK)
	return nil
}

func (h *handlers) discard(c *commands.Call) error {
	if !c.Client.Transaction.Open() {
		return commands.RedisText("DISCARD without MULTI")
	}
	c.Client.Transaction.End()
	c.Reply(commands.OK)
	return nil
}

// exec answers [1], or nil if the lock is not what GET has seen.
func (h *handlers) exec(c *commands.Call) error {
	x := &c.Client.Transaction
	if !x.Open() {
		return commands.RedisText("EXEC without MULTI")
	}
	words, seenOf, broken := x.End()
	switch {
	case broken:
		c.Reply(commands.Error("EXECABORT", "Transaction discarded because of previous errors."))
		return nil
	case words == nil:
		c.Reply(commands.Array())
		return nil
	case len(words) < 2:
		return commands.ErrTransaction
	}
	key, err := arg.ParseKey(words[1])
	if err != nil {
		return err
	}
	seen := seenOf(access.HeldKey{DB: c.Client.DB, Key: key})
	if seen == nil {
		return commands.ErrTransaction
	}
	if seen.Kind == "none" {
		c.Reply(commands.Array(commands.Int(0)))
		return nil
	}
	return h.execIfEqual(c, words, key, seen.Value)
}

// execIfEqual does the one command while the lock has this value.
func (h *handlers) execIfEqual(c *commands.Call, words []string, key redlock.Key, value redlock.Token) error {
	completer, watch := c.Completer, h.deps.DropinStats.Timed("exec")
	done := func(yes bool, err error) {
		watch.Stop(yes, err)
		switch {
		case err != nil:
			completer.Complete(commands.Failure(err))
		case yes:
			completer.Complete(commands.Array(commands.Int(1)))
		default:
			completer.Complete(commands.NilArray)
		}
	}
	unit := int64(1)
	switch name := strings.ToLower(words[0]); {
	case (name == "del" || name == "unlink") && len(words) == 2:
		h.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: key, Token: value}, done)
		return nil
	case name == "expire" && len(words) == 3:
		unit = 1000
	case name == "pexpire" && len(words) == 3:
	default:
		return commands.ErrTransaction
	}
	ttl, err := h.expiryOf(words, unit)
	if err != nil {
		return err
	}
	if ttl == 0 {
		h.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: key, Token: value}, done)
		return nil
	}
	request := redlock.ExtendRequest{DB: c.Client.DB, Key: key, Token: value, TTL: ttl}
	h.deps.Locks.Extend(c.Batch, request, h.prolonged(request, done))
	return nil
}
