// MSETEX numkeys key value … NX takes several locks, all or none, each with its own value.
// HSETNX is refused: a lock is a key, not a field.

package rediscompat

import (
	"errors"
	"fmt"
	"slices"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

var (
	errNoManyWrites = errors.New("redlockd is not a database: MSETEX takes locks with NX, all or none, without KEEPTTL; a lock that is held is changed with SET key value XX or IFEQ")
	errNoFieldLock  = errors.New("redlockd is not a database: HSETNX takes a field of a hash, and a lock is a key with a lease of its own; make the field a part of the key, and take it with SET key value NX PX ms, or with DLOCK key ttl")
)

func refuseHashLock(*commands.Call) error { return errNoFieldLock }

// setMany is MSETEX NX.
func (h *handlers) setMany(c *commands.Call) error {
	watch := h.deps.DropinStats.Timed("msetex")
	r, err := dropin.ParseSetMany(c.Args)
	if err != nil {
		return commands.RedisText(err.Error())
	}
	if r.When != dropin.IfAbsent || r.Expiry.Kind == dropin.KeepExpiry {
		return errNoManyWrites
	}
	request, err := requestOfMany(c, r)
	if err != nil || !c.MayUseAll(append(request.More[:len(request.More):len(request.More)], request.Key)...) {
		return err
	}
	if request.TTL, err = h.leaseUntil(r.Expiry, h.lease); err != nil {
		return err
	}
	h.startAcquire(c, request, watch, replyOne, replyZero)
	return nil
}

// requestOfMany is the request for all the locks, without their lease.
func requestOfMany(c *commands.Call, r dropin.SetManyRequest) (all redlock.LockRequest, err error) {
	if n := len(r.Keys); n > arg.MaxKeys {
		return all, fmt.Errorf("%d keys are given, allowed are 1 to %d", n, arg.MaxKeys)
	}
	swap := &redlock.Swap{}
	for i, name := range r.Keys {
		one, err := valuedRequest(c, name, r.Values[i])
		switch {
		case err != nil:
			return all, err
		case i == 0:
			all = redlock.LockRequest{DB: one.DB, Key: one.Key, Token: one.Token, Mode: swap}
		case one.Key == all.Key || slices.Contains(all.More, one.Key):
			return all, fmt.Errorf("key %s is given twice", arg.Quoted(name))
		default:
			all.More = append(all.More, one.Key)
		}
		swap.Tokens = append(swap.Tokens, one.Token)
	}
	return all, nil
}
