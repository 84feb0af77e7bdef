// GET, PTTL, TTL, EXISTS, TYPE and STRLEN: a lock as a quorum of masters sees it.

package commands

import (
	"strings"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

var errNoString = Error("WRONGTYPE", "Operation against a key holding the wrong kind of value")

// get answers the value that a quorum holds, else nil.
func (t *Table) get(c *Call) error {
	if name, ok := strings.CutPrefix(c.Args[1], fencePrefix); ok {
		return t.getFence(c, name)
	}
	key, err := parseKey(c.Args[1])
	if err != nil {
		return err
	}
	if !c.MayUseAll(key) {
		return nil
	}
	watch := t.deps.DropinStats.Timed("get")
	completer, client, db := c.Completer, c.Client, c.Client.DB
	t.deps.RedisCompat.View(c.Batch, db, key, func(v redlock.View, err error) {
		watch.Stop(v.Kind != "none", err)
		switch {
		case err != nil:
			completer.Complete(failure(err))
			return
		case v.Kind != "string" && v.Kind != "none":
			completer.Complete(errNoString)
			return
		}
		client.Transaction.Saw(access.HeldKey{DB: db, Key: key}, v)
		if v.Kind == "none" {
			completer.Complete(Nil)
		} else {
			completer.Complete(Bulk(string(v.Value)))
		}
	})
	return nil
}

func (t *Table) pttl(c *Call) error {
	return t.viewKey(c, func(v redlock.View) Reply { return Int(remaining(v)) })
}

// ttl rounds as Redis does.
func (t *Table) ttl(c *Call) error {
	return t.viewKey(c, func(v redlock.View) Reply {
		ms := remaining(v)
		if ms > 0 {
			ms = (ms + 500) / 1000
		}
		return Int(ms)
	})
}

func (t *Table) kindOf(c *Call) error {
	return t.viewKey(c, func(v redlock.View) Reply { return Simple(v.Kind) })
}

func (t *Table) strlen(c *Call) error {
	return t.viewKey(c, func(v redlock.View) Reply {
		if v.Kind != "string" && v.Kind != "none" {
			return errNoString
		}
		return Int(int64(len(v.Value)))
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
func (t *Table) viewKey(c *Call, show func(redlock.View) Reply) error {
	key, err := parseKey(c.Args[1])
	if err != nil {
		return err
	}
	completer, watch := c.Completer, t.deps.DropinStats.Timed("look")
	t.deps.RedisCompat.View(c.Batch, c.Client.DB, key, func(v redlock.View, err error) {
		watch.Stop(v.Kind != "none", err)
		if err != nil {
			completer.Complete(failure(err))
			return
		}
		completer.Complete(show(v))
	})
	return nil
}

// exists counts the keys that are held.
func (t *Table) exists(c *Call) error {
	keys, ok, err := t.keysOf(c)
	if err != nil || !ok {
		return err
	}
	count := newMultiKeyCount(c.Completer, len(keys), t.deps.DropinStats.Timed("look"))
	for _, key := range keys {
		t.deps.RedisCompat.View(c.Batch, c.Client.DB, key, func(v redlock.View, err error) {
			count.add(v.Kind != "none", err)
		})
	}
	return nil
}
