// SET key value NX|XX|IFEQ … and SETNX as lock libraries use them, as operations on
// a quorum. Nothing else is served: redlockd is not a database.

package commands

import (
	"errors"

	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

var errNoDatabase = errors.New("redlockd is not a database: SET takes or changes a lock with NX, XX or IFEQ, without GET and KEEPTTL")

func (t *Table) set(c *Call) error {
	watch := t.deps.DropinStats.Timed("set")
	r, err := dropin.ParseSet(c.Args)
	if err != nil {
		return redisText(err.Error())
	}
	if r.When == dropin.Always || r.Get || r.Expiry.Kind == dropin.KeepExpiry {
		if t.deps.CompatTest != nil {
			return t.forwardKey(c)
		}
		return errNoDatabase
	}
	key, err := parseKey(r.Key)
	if err != nil {
		return err
	}
	value, err := parseValue(r.Value)
	if err != nil {
		return err
	}
	request := redlock.LockRequest{DB: c.Client.DB, Key: key, Token: value, Valued: true}
	switch r.Expiry.Kind {
	case dropin.After:
		request.TTL, err = t.leaseOf(r.Expiry.MS)
	case dropin.At:
		request.TTL, err = t.leaseUntil(r.Expiry.MS)
	default:
		request.TTL, err = t.leaseWithoutExpiry()
	}
	if err != nil {
		return err
	}
	switch {
	case r.When == dropin.IfAbsent:
		t.startAcquire(c, request, watch, replyOK, replyNil)
	case r.When == dropin.IfPresent:
		if mayForce(c) {
			t.replace(c, request, watch, "")
		}
	case r.Equal == r.Value && request.TTL < redlock.Endless:
		t.prolong(c, request, watch)
	case len(r.Equal) < 1 || len(r.Equal) > maxValueBytes:
		c.Reply(Nil) // no lock has such a value
	default:
		t.replace(c, request, watch, redlock.Token(r.Equal))
	}
	return nil
}

// setnx is SET NX without an expiry, answered by a number.
func (t *Table) setnx(c *Call) error {
	watch := t.deps.DropinStats.Timed("setnx")
	key, err := parseKey(c.Args[1])
	if err != nil {
		return err
	}
	request := redlock.LockRequest{DB: c.Client.DB, Key: key, Valued: true}
	if request.Token, err = parseValue(c.Args[2]); err != nil {
		return err
	}
	if request.TTL, err = t.leaseWithoutExpiry(); err != nil {
		return err
	}
	t.startAcquire(c, request, watch, replyOne, replyZero)
	return nil
}

// replace gives a lock that is there another value and another expiry.
func (t *Table) replace(c *Call, r redlock.LockRequest, watch dropin.Stopwatch, equal redlock.Token) {
	completer, at := c.Completer, access.HeldKey{DB: r.DB, Key: r.Key}
	slot, err := t.deps.Users.Reserve(c.Rights(), at)
	if err != nil {
		c.Reply(Error("TRYLATER", err.Error()))
		return
	}
	t.deps.RedisCompat.Write(c.Batch, redlock.WriteRequest{
		DB: r.DB, Key: r.Key, Effect: redlock.WriteReplaces, Value: r.Token, Equal: equal, TTL: r.TTL, EndlessToo: t.endlessToo(),
	}, func(done bool, err error) {
		watch.Stop(done, err)
		if err == nil && done {
			t.deps.Users.Changed(at, 0) // for any holder
			slot.Fill(at, r.Token, r.TTL)
		} else {
			slot.Free()
		}
		switch {
		case err != nil:
			completer.Complete(failure(err))
		case done:
			completer.Complete(OK)
		default:
			completer.Complete(Nil)
		}
	})
}

// prolong makes a lock last longer whose value is known.
func (t *Table) prolong(c *Call, r redlock.LockRequest, watch dropin.Stopwatch) {
	completer := c.Completer
	request := redlock.ExtendRequest{DB: r.DB, Key: r.Key, Token: r.Token, TTL: r.TTL}
	t.deps.Locks.Extend(c.Batch, request, t.prolonged(request, func(held bool, err error) {
		watch.Stop(held, err)
		switch {
		case err != nil:
			completer.Complete(failure(err))
		case held:
			completer.Complete(OK)
		default:
			completer.Complete(Nil)
		}
	}))
}

// prolonged notes an extension in the daemon's records.
func (t *Table) prolonged(r redlock.ExtendRequest, done func(held bool, err error)) redlock.ExtendDone {
	return func(grant redlock.Grant, err error) {
		switch {
		case errors.Is(err, redlock.ErrNotHeld):
			done(false, nil)
		case err != nil:
			done(false, err)
		default:
			for _, key := range grant.Keys() {
				t.deps.Users.ProlongedKey(r.DB, key, r.Token, grant.Validity())
			}
			t.fences.prolong(&grant)
			done(true, nil)
		}
	}
}

// endlessToo reports whether keys without an expiry are locks: where such locks are allowed.
func (t *Table) endlessToo() bool { return t.deps.NoTTL == PolicyAllow }
