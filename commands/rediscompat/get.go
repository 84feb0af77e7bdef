// GET, PTTL, TTL, EXISTS, TYPE and STRLEN: a lock as a quorum of masters sees it.

package rediscompat

import (
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

var errNoString = commands.Error("WRONGTYPE", "Operation against a key holding the wrong kind of value")

// get answers the value that a quorum holds, else nil.
func (h *handlers) get(c *commands.Call) error {
	if name, ok := strings.CutPrefix(c.Args[1], fencePrefix); ok {
		return h.getFence(c, name)
	}
	key, err := arg.ParseKey(c.Args[1])
	if err != nil {
		return err
	}
	if !c.MayUseAll(key) {
		return nil
	}
	watch := h.deps.DropinStats.Timed("get")
	completer, client, db := c.Completer, c.Client, c.Client.DB
	h.deps.RedisCompat.View(c.Batch, db, key, func(v redlock.View, err error) {
		watch.Stop(v.Kind != "none", err)
		switch {
		case err != nil:
			completer.Complete(commands.Failure(err))
			return
		case v.Kind != "string" && v.Kind != "none":
			completer.Complete(errNoString)
			return
		}
		client.Transaction.Saw(access.HeldKey{DB: db, Key: key}, v)
		if v.Kind == "none" {
			completer.Complete(commands.Nil)
		} else {
			completer.Complete(commands.Bulk(string(v.Value)))
		}
	})
	return nil
}

func (h *handlers) pttl(c *commands.Call) error {
	return h.viewKey(c, func(v redlock.View) commands.Reply { return commands.Int(remaining(v)) })
}

// ttl rounds as Redis does.
func (h *handlers) ttl(c *commands.Call) error {
	return h.viewKey(c, func(v redlock.View) commands.Reply {
		ms := remaining(v)
		if ms > 0 {
			ms = (ms + 500) / 1000
		}
		return commands.Int(ms)
	})
}

func (h *handlers) kindOf(c *commands.Call) error {
	return h.viewKey(c, func(v redlock.View) commands.Reply { return commands.Simple(v.Kind) })
}

func (h *handlers) strlen(c *commands.Call) error {
	return h.viewKey(c, func(v redlock.View) commands.Reply {
		if v.Kind != "string" && v.Kind != "none" {
			return errNoString
		}
		return commands.Int(int64(len(v.Value)))
	})
}

// remaining is in ms, as in the reply of PTTL.
func remaining(v redlock.View) int64 {
	switch {
	case v.Kind == "none":
		return -2
	case v.Left >= redlock.Endless:
		return -1
	}
	return max(v.Left, time.Millisecond).Milliseconds()
}

// viewKey answers the view of the call's key.
func (h *handlers) viewKey(c *commands.Call, show func(redlock.View) commands.Reply) error {
	key, err := arg.ParseKey(c.Args[1])
	if err != nil {
		return err
	}
	completer, watch := c.Completer, h.deps.DropinStats.Timed("look")
	h.deps.RedisCompat.View(c.Batch, c.Client.DB, key, func(v redlock.View, err error) {
		watch.Stop(v.Kind != "none", err)
		if err != nil {
			completer.Complete(commands.Failure(err))
			return
		}
		completer.Complete(show(v))
	})
	return nil
}

// exists counts the keys that are held.
func (h *handlers) exists(c *commands.Call) error {
	keys, ok, err := h.keysOf(c)
	if err != nil || !ok {
		return err
	}
	count := newMultiKeyCount(c.Completer, len(keys), h.deps.DropinStats.Timed("look"))
	for _, key := range keys {
		h.deps.RedisCompat.View(c.Batch, c.Client.DB, key, func(v redlock.View, err error) {
			count.add(v.Kind != "none", err)
		})
	}
	return nil
}
