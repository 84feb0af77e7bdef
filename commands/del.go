// DEL and UNLINK key [key …], DELEX key IFEQ value, DELIFEQ key value: delete a
// lock regardless of its holder, or with the right value only.

package commands

import (
	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// del reads before it deletes, so its rows are barriers: a later command of the
// pipeline must find the keys as del leaves them.
func (t *Table) del(c *Call) error {
	keys, ok, err := t.keysOf(c)
	if err != nil || !ok || !mayForce(c) {
		return err
	}
	deleted := newMultiKeyCount(c.Completer, len(keys), t.deps.DropinStats.Timed("del"))
	for _, key := range keys {
		request := redlock.WriteRequest{DB: c.Client.DB, Key: key, Effect: redlock.WriteDeletes, EndlessToo: t.endlessToo()}
		t.deps.RedisCompat.Write(c.Batch, request, t.noting(request, deleted.add))
	}
	return nil
}

// noting updates the quota of the lock's holder after a change of the lock.
func (t *Table) noting(r redlock.WriteRequest, done redlock.WriteDone) redlock.WriteDone {
	return func(did bool, err error) {
		if err == nil && did {
			t.deps.Users.Changed(access.HeldKey{DB: r.DB, Key: r.Key}, r.TTL)
		}
		done(did, err)
	}
}

// delIfEqual is a release: DELEX and DELIFEQ.
func (t *Table) delIfEqual(c *Call) error {
	r, err := dropin.ParseDeleteIfEqual(c.Args)
	if err != nil {
		return redisText(err.Error())
	}
	key, err := parseKey(r.Key)
	if err != nil {
		return err
	}
	if len(r.Equal) < 1 || len(r.Equal) > maxValueBytes {
		c.Reply(Int(0)) // no lock has such a value
		return nil
	}
	completer, watch := c.Completer, t.deps.DropinStats.Timed("delex")
	t.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: key, Token: redlock.Token(r.Equal)}, func(was bool, err error) {
		watch.Stop(was, err)
		switch {
		case err != nil:
			completer.Complete(failure(err))
		case was:
			completer.Complete(Int(1))
		default:
			completer.Complete(Int(0))
		}
	})
	return nil
}

// release releases a lock and notes it in the quotas.
func (t *Table) release(c *Call, r redlock.UnlockRequest, done redlock.UnlockDone) {
	t.deps.Locks.Unlock(c.Batch, r, func(was bool, err error) {
		if err == nil {
			t.deps.Users.ReleasedKey(r.DB, r.Key, r.Token)
		}
		done(was, err)
	})
}
