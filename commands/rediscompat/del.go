// DEL and UNLINK key [key …], DELEX key IFEQ value, DELIFEQ key value: delete a
// lock regardless of its holder, or with the right value only.

package rediscompat

import (
	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// del reads before it deletes, so its rows are barriers: a later command of the
// pipeline must find the keys as del leaves them.
func (h *handlers) del(c *commands.Call) error {
	keys, ok, err := h.keysOf(c)
	if err != nil || !ok || !mayForce(c) {
		return err
	}
	deleted := newMultiKeyCount(c.Completer, len(keys), h.deps.DropinStats.Timed("del"))
	for _, key := range keys {
		request := redlock.WriteRequest{DB: c.Client.DB, Key: key, Effect: redlock.WriteDeletes, EndlessToo: h.leases.endlessToo()}
		h.deps.RedisCompat.Write(c.Batch, request, h.noting(request, deleted.add))
	}
	return nil
}

// noting updates the quota of the lock's holder after a change of the lock.
func (h *handlers) noting(r redlock.WriteRequest, done redlock.WriteDone) redlock.WriteDone {
	return func(did bool, err error) {
		if err == nil && did {
			h.deps.Users.Changed(access.HeldKey{DB: r.DB, Key: r.Key}, r.TTL)
		}
		done(did, err)
	}
}

// delIfEqual is a release: DELEX and DELIFEQ.
func (h *handlers) delIfEqual(c *commands.Call) error {
	r, err := dropin.ParseDeleteIfEqual(c.Args)
	if err != nil {
		return commands.RedisText(err.Error())
	}
	key, err := arg.ParseKey(r.Key)
	if err != nil {
		return err
	}
	if len(r.Equal) < 1 || len(r.Equal) > maxValueBytes {
		c.Reply(commands.Int(0)) // no lock has such a value
		return nil
	}
	completer, watch := c.Completer, h.deps.DropinStats.Timed("delex")
	h.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: key, Token: redlock.Token(r.Equal)}, func(was bool, err error) {
		watch.Stop(was, err)
		switch {
		case err != nil:
			completer.Complete(commands.Failure(err))
		case was:
			completer.Complete(commands.Int(1))
		default:
			completer.Complete(commands.Int(0))
		}
	})
	return nil
}

// release releases a lock and notes it in the quotas.
func (h *handlers) release(c *commands.Call, r redlock.UnlockRequest, done redlock.UnlockDone) {
	h.deps.Locks.Unlock(c.Batch, r, func(was bool, err error) {
		if err == nil {
			h.deps.Users.ReleasedKey(r.DB, r.Key, r.Token)
		}
		done(was, err)
	})
}
