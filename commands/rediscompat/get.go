// GET, DIGEST, PTTL, TTL, EXISTS, TYPE and STRLEN: a lock as a quorum of masters sees it.

package rediscompat

import (
	"strconv"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

var errNoString = commands.Error("WRONGTYPE", "Operation against a key holding the wrong kind of value")

// get answers the value that a quorum holds, else nil; of redlockd:fence:<key> the fence.
func (h *handlers) get(c *commands.Call) error {
	name, ofFence := strings.CutPrefix(c.Args[1], fencePrefix)
	name, fenced := fencedName(name)
	key, err := arg.ParseKey(name)
	if err != nil || !c.MayUseAll(key) {
		return err
	}
	if fenced {
		h.getFenced(c, key)
		return nil
	}
	client, at := c.Client, access.HeldKey{DB: c.Client.DB, Key: key}
	if ofFence {
		h.deps.RedisCompat.View(c.Batch, at.DB, key, commands.Answer(c, func(v redlock.View) commands.Reply { return h.fences.reply(at, v) }))
		return nil
	}
	if h.nextIDs.serves(at) {
		return h.nextIDs.current(c, at)
	}
	h.view(c, key, "get", func(v redlock.View) commands.Reply {
		if v.Kind == "string" || v.Kind == "none" {
			client.Transaction.Saw(at)
		}
		return valueOf(v)
	})
	return nil
}

// getFenced replies with the fence of the lock's holder, nil if it is free or this daemon does not
// know it.
func (h *handlers) getFenced(c *commands.Call, key redlock.Key) {
	h.deps.Inspect.ReadLock(c.Client.DB, key, commands.Answer(c, func(v redlock.LockView) commands.Reply {
		if f := v.HighestFence(); f > 0 {
			return commands.Bulk(strconv.FormatInt(int64(f), 10))
		}
		return commands.Nil
	}))
}

func valueOf(v redlock.View) commands.Reply {
	switch v.Kind {
	case "string":
		return commands.Bulk(string(v.Value))
	case "none":
		return commands.Nil
	}
	return errNoString
}

// Replies of PTTL, TTL, TYPE, STRLEN and DIGEST to what a quorum holds.
func pttl(v redlock.View) commands.Reply   { return commands.Int(remaining(v)) }
func kindOf(v redlock.View) commands.Reply { return commands.Simple(v.Kind) }

// ttl is in seconds. A script that counts in seconds gives its copies up to one second more
// than the lease and the master timeout, which the view leaves out. So a lease of 1000 s may
// show nearly 1001 s, and rounding to the nearest second, as Redis does, would show more than
// was requested. Up to what the view leaves out is added, so that a new lease shows all of it.
func ttl(masterTimeout time.Duration) func(redlock.View) commands.Reply {
	added := min(masterTimeout.Milliseconds()%1000, 500)
	if added == 0 {
		added = 500
	}
	return func(v redlock.View) commands.Reply {
		ms := remaining(v)
		if ms > 0 {
			ms = (ms + added) / 1000
		}
		return commands.Int(ms)
	}
}

func digest(v redlock.View) commands.Reply {
	reply := valueOf(v)
	if reply.Kind == commands.KindBulk {
		reply.Text = dropin.Digest(reply.Text)
	}
	return reply
}

func strlen(v redlock.View) commands.Reply {
	if v.Kind != "string" && v.Kind != "none" {
		return errNoString
	}
	return commands.Int(int64(len(v.Value)))
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

// viewing is the handler that answers what a quorum holds of the call's key.
func (h *handlers) viewing(show func(redlock.View) commands.Reply) commands.Handler {
	return func(c *commands.Call) error {
		key, err := arg.ParseKey(c.Args[1])
		if err != nil {
			return err
		}
		h.view(c, key, "look", show)
		return nil
	}
}

// view answers what a quorum holds of a key, counted as an operation of that name.
func (h *handlers) view(c *commands.Call, key redlock.Key, name string, show func(redlock.View) commands.Reply) {
	watch, reply := h.deps.DropinStats.Timed(name), commands.Answer(c, show)
	h.deps.RedisCompat.View(c.Batch, c.Client.DB, key, func(v redlock.View, err error) {
		watch.Stop(v.Kind != "none", err)
		c.Saw(key, redlock.Seen{View: v}, err)
		reply(v, err)
	})
}

func (h *handlers) exists(c *commands.Call) error {
	keys, err := h.keysOf(c)
	if keys == nil {
		return err
	}
	counting(c, keys, h.deps.DropinStats.Timed("look"), func(key redlock.Key, done func(bool, error)) {
		h.deps.RedisCompat.View(c.Batch, c.Client.DB, key, func(v redlock.View, err error) {
			c.Saw(key, redlock.Seen{View: v}, err)
			done(v.Kind != "none", err)
		})
	})
	return nil
}
