// MSETEX numkeys key value … NX takes several locks, all or none, each with its own value.
// HSETNX is refused: a lock is a key, not a field.

package rediscompat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/pool"
	"redlockd/redlock"
)

var (
	errNoManyWrites = errors.New("redlockd is not a database: MSETEX takes locks with NX, all or none, without KEEPTTL; a lock that is held is changed with SET key value XX or IFEQ")
	errNoFieldLock  = errors.New("redlockd is not a database: HSETNX takes a field of a hash, and a lock is a key with a lease of its own; make the field a part of the key, and take it with SET key value NX PX ms, or with DLOCK key ttl")
)

// allOrNoneText sets all keys to their values if none exists. The last argument is the expiry,
// ms of the master's clock; it may be left out.
const allOrNoneText = `for _, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 then return 0 end
end
local ends = ARGV[#KEYS + 1]
for i, key in ipairs(KEYS) do
  if ends then redis.call('SET', key, ARGV[i], 'PXAT', ends) else redis.call('SET', key, ARGV[i]) end
end
return 1`

func refuseHashLock(*commands.Call) error { return errNoFieldLock }

// setMany is MSETEX NX. It takes the locks as a library's script for several keys does.
func (h *handlers) setMany(c *commands.Call) error {
	watch := h.deps.DropinStats.Timed("msetex")
	r, err := dropin.ParseSetMany(c.Args)
	if err != nil {
		return commands.RedisText(err.Error())
	}
	if r.When != dropin.IfAbsent || r.Expiry.Kind == dropin.KeepExpiry {
		return errNoManyWrites
	}
	script, err := manyScript(c, r)
	if err != nil || !c.MayUseAll(script.Keys...) {
		return err
	}
	ttl, err := h.leaseUntil(r.Expiry, h.lease)
	if err != nil {
		return err
	}
	if ttl < redlock.Endless {
		script.Args = append(script.Args, strconv.FormatInt(ttl.Milliseconds(), 10)) // rewritten for every master
		script.Time = redlock.ScriptTime{Arg: len(script.Args), Unit: redlock.ScriptUnixMilliseconds}
	}
	request := redlock.LockRequest{DB: c.Client.DB, Key: script.Keys[0], More: script.Keys[1:], Token: script.Tokens[0], TTL: ttl, Script: script}
	h.startAcquire(c, request, watch, replyOne, replyZero)
	return nil
}

// manyScript is the script for all the locks, without their expiry.
func manyScript(c *commands.Call, r dropin.SetManyRequest) (*redlock.Script, error) {
	if n := len(r.Keys); n > arg.MaxKeys {
		return nil, fmt.Errorf("%d keys are given, allowed are 1 to %d", n, arg.MaxKeys)
	}
	script := &redlock.Script{Text: allOrNoneText, Args: r.Values, Vote: voteOfMany}
	for i, name := range r.Keys {
		one, err := valuedRequest(c, name, r.Values[i])
		if err != nil {
			return nil, err
		}
		if slices.Contains(script.Keys, one.Key) {
			return nil, fmt.Errorf("key %s is given twice", arg.Quoted(name))
		}
		script.Keys, script.Tokens = append(script.Keys, one.Key), append(script.Tokens, one.Token)
	}
	return script, nil
}

func voteOfMany(r pool.Reply) redlock.ScriptVote {
	switch {
	case r.Err != nil || r.Kind != pool.ReplyInt:
		return redlock.ScriptUnclear
	case r.Int == 1:
		return redlock.ScriptYes
	}
	return redlock.ScriptNo
}
