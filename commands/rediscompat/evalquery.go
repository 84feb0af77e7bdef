// Replies of scripts that only read, computed from what a quorum holds: the reply to
// every state of a key is known, so the masters need not run the script.

package rediscompat

import (
	"cmp"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

func (e *evaluation) readLocks(locks []redlock.Key) error {
	each := commands.Gather(len(locks), func(views []redlock.View, errs []error) {
		err := cmp.Or(errs...)
		e.watch.Stop(true, err)
		for i, key := range locks {
			e.call.Saw(key, redlock.Seen{View: views[i]}, errs[i])
		}
		if err != nil {
			e.call.Reply(commands.Failure(err))
			return
		}
		e.call.Reply(e.replyTo(views))
	})
	for i, key := range locks {
		e.handlers.deps.RedisCompat.View(e.call.Batch, e.db, key, each(i))
	}
	return nil
}

// replyTo is the script's reply to what the quorum holds. Keys in different states
// count as held by another.
func (e *evaluation) replyTo(views []redlock.View) commands.Reply {
	holding, least := e.keyState(views[0]), views[0]
	for _, v := range views[1:] {
		if e.keyState(v) != holding {
			holding = dropin.HeldByOther
		}
		if remaining(v) < remaining(least) {
			least = v
		}
	}
	return ofDropin(e.class.Predict(holding, e.given, string(least.Value), remaining(least)))
}

// keyState is the state of the key for the caller of the script.
func (e *evaluation) keyState(v redlock.View) dropin.KeyState {
	token, value := e.class.TokenOf(e.given), string(v.Value)
	if at := e.class.Prefix; at > 0 && at <= len(e.given.Args) {
		if n, ok := arg.ParseInteger(e.given.Args[at-1]); ok {
			token, value = token[:min(int64(len(token)), n)], value[:min(int64(len(value)), n)]
		}
	}
	switch {
	case v.Kind == "none":
		return dropin.Free
	case v.Kind != "string" || e.class.Token > 0 && token != value:
		return dropin.HeldByOther
	case v.Left >= redlock.Endless:
		return dropin.NoExpiry
	}
	return dropin.HeldBySelf
}

// predicted is the script's reply if the key is in that state.
func (e *evaluation) predicted(h dropin.KeyState) commands.Reply {
	remaining := int64(-2)
	if h != dropin.Free {
		remaining = 0
	}
	return ofDropin(e.class.Predict(h, e.given, "", remaining))
}
