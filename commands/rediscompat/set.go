// SET key value NX|XX|IFEQ … and SETNX as lock libraries use them, as operations on
// a quorum. Nothing else is served: redlockd is not a database.

package rediscompat

import (
	"errors"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

var errNoDatabase = errors.New("redlockd is not a database: SET takes or changes a lock with NX, XX or IFEQ, without GET and KEEPTTL")

func (h *handlers) set(c *commands.Call) error {
	watch := h.deps.DropinStats.Timed("set")
	r, err := dropin.ParseSet(c.Args)
	if err != nil {
		return commands.RedisText(err.Error())
	}
	if r.When == dropin.Always || r.Get || r.Expiry.Kind == dropin.KeepExpiry {
		if h.compatOn() {
			return h.forwardKey(c)
		}
		return errNoDatabase
	}
	request, err := valuedRequest(c, r.Key, r.Value)
	if err != nil {
		return err
	}
	switch r.Expiry.Kind {
	case dropin.After:
		request.TTL, err = h.lease(r.Expiry.MS)
	case dropin.At:
		request.TTL, err = h.lease(r.Expiry.MS - time.Now().UnixMilli())
	default:
		request.TTL, err = h.withoutExpiry()
	}
	if err != nil {
		return err
	}
	switch {
	case r.When == dropin.IfAbsent:
		h.startAcquire(c, request, watch, replyOK, replyNil)
	case r.When == dropin.IfPresent:
		if mayForce(c) {
			h.replace(c, request, watch, "")
		}
	case r.Equal == r.Value && request.TTL < redlock.Endless:
		h.prolong(c, request, watch)
	case len(r.Equal) < 1 || len(r.Equal) > maxValueBytes:
		c.Reply(commands.Nil) // no lock has such a value
	default:
		h.replace(c, request, watch, redlock.Token(r.Equal))
	}
	return nil
}

// setnx is SET NX without an expiry, answered by a number.
func (h *handlers) setnx(c *commands.Call) error {
	watch := h.deps.DropinStats.Timed("setnx")
	request, err := valuedRequest(c, c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	if request.TTL, err = h.withoutExpiry(); err != nil {
		return err
	}
	h.startAcquire(c, request, watch, replyOne, replyZero)
	return nil
}

// replace gives a lock that is there another value and another expiry.
func (h *handlers) replace(c *commands.Call, r redlock.LockRequest, watch dropin.Stopwatch, equal redlock.Token) {
	at := access.HeldKey{DB: r.DB, Key: r.Key}
	slot, err := h.deps.Users.Reserve(c.Rights(), at)
	if err != nil {
		c.Reply(commands.Error("TRYLATER", err.Error()))
		return
	}
	reply := timed(c, watch, commands.OK, commands.Nil)
	h.deps.RedisCompat.Write(c.Batch, redlock.WriteRequest{
		DB: r.DB, Key: r.Key, Effect: redlock.WriteReplaces, Value: r.Token, Equal: equal, TTL: r.TTL, EndlessToo: h.endlessToo(),
	}, func(done bool, err error) {
		if err == nil && done {
			h.deps.Users.Changed(at, 0) // for any holder
			slot.Fill(at, r.Token, r.TTL)
		} else {
			slot.Free()
		}
		reply(done, err)
	})
}

// prolong makes a lock last longer whose value is known.
func (h *handlers) prolong(c *commands.Call, r redlock.LockRequest, watch dropin.Stopwatch) {
	request := redlock.ExtendRequest{DB: r.DB, Key: r.Key, Token: r.Token, TTL: r.TTL}
	h.deps.Locks.Extend(c.Batch, request, h.prolonged(request, timed(c, watch, commands.OK, commands.Nil)))
}

// prolonged notes an extension in the daemon's records.
func (h *handlers) prolonged(r redlock.ExtendRequest, done func(held bool, err error)) redlock.ExtendDone {
	return func(grant redlock.Grant, err error) {
		switch {
		case errors.Is(err, redlock.ErrNotHeld):
			done(false, nil)
		case err != nil:
			done(false, err)
		default:
			for _, key := range grant.Keys() {
				h.deps.Users.ProlongedKey(r.DB, key, r.Token, grant.Validity())
			}
			h.fences.prolong(&grant)
			done(true, nil)
		}
	}
}
