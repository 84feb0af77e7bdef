// WATCH key, GET key, MULTI, DEL | PEXPIRE | EXPIRE key, EXEC: how clients
// compared and deleted before there was a command for it. The value that GET
// answered is the token of a release or an extension.

package rediscompat

import (
	"strings"
	"time"

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
	keys, err := h.keysOf(c)
	if keys == nil {
		return err
	}
	if err := x.Watch(c.Client.DB, keys); err != nil {
		return err
	}
	return c.Reply(commands.OK)
}

func (h *handlers) unwatch(c *commands.Call) error {
	c.Client.Transaction.Unwatch()
	return c.Reply(commands.OK)
}

func (h *handlers) multi(c *commands.Call) error {
	if c.Client.Transaction.Open() {
		return commands.RedisText("MULTI calls can not be nested")
	}
	c.Client.Transaction.Begin()
	return c.Reply(commands.OK)
}

func (h *handlers) discard(c *commands.Call) error {
	if !c.Client.Transaction.Open() {
		return commands.RedisText("DISCARD without MULTI")
	}
	c.Client.Transaction.End()
	return c.Reply(commands.OK)
}

// exec answers [1], or nil if the lock is not what GET has seen.
func (h *handlers) exec(c *commands.Call) error {
	x := &c.Client.Transaction
	if !x.Open() {
		return commands.RedisText("EXEC without MULTI")
	}
	queue, seenOf, broken := x.End()
	switch {
	case broken:
		return c.Reply(commands.Error("EXECABORT", "Transaction discarded because of previous errors."))
	case queue == nil:
		return c.Reply(commands.Array())
	case commands.Reads(queue[0]):
		return execReads(h, c, queue)
	}
	words := queue[0]
	if len(words) < 2 {
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
		return c.Reply(commands.Array(commands.Int(0)))
	}
	return h.execIfEqual(c, words, key, seen.Value)
}

// execReads answers all readings of the key from one view.
func execReads(h *handlers, c *commands.Call, queue [][]string) error {
	key, err := arg.ParseKey(queue[0][1])
	if err != nil || !c.MayUseAll(key) {
		return err
	}
	h.view(c, key, "get", func(v redlock.View) commands.Reply {
		var list []commands.Reply
		for _, words := range queue {
			if arg.IsWord(words[0], "PTTL") {
				list = append(list, pttl(v))
			} else {
				list = append(list, valueOf(v))
			}
		}
		return commands.Array(list...)
	})
	return nil
}

// execIfEqual does the one command while the lock has this value.
func (h *handlers) execIfEqual(c *commands.Call, words []string, key redlock.Key, value redlock.Token) error {
	done := timed(c, h.deps.DropinStats.Timed("exec"), commands.Array(commands.Int(1)), commands.NilArray)
	var ttl time.Duration // 0: the lock is deleted
	switch name := strings.ToLower(words[0]); {
	case (name == "del" || name == "unlink") && len(words) == 2:
	case (name == "expire" || name == "pexpire") && len(words) == 3:
		unit := int64(1)
		if name == "expire" {
			unit = 1000
		}
		var err error
		if ttl, err = h.expiryOf(words, unit); err != nil {
			return err
		}
	default:
		return commands.ErrTransaction
	}
	if ttl == 0 {
		h.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: key, Token: value}, done)
		return nil
	}
	request := redlock.ExtendRequest{DB: c.Client.DB, Key: key, Token: value, TTL: ttl}
	h.deps.Locks.Extend(c.Batch, request, h.prolonged(request, done))
	return nil
}
