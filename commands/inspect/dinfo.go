// DINFO key: shows a lock on all masters.

package inspect

import (
	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dinfo answers a map, also for a free lock: what single masters have is useful
// then, too.
func (h *handlers) dinfo(c *commands.Call) error {
	key, err := arg.ParseKey(c.Args[1])
	if err != nil {
		return err
	}
	h.deps.Inspect.ReadLock(c.Client.DB, key, func(view redlock.LockView, err error) {
		if err != nil {
			c.Reply(commands.Failure(err))
			return
		}
		c.Reply(lockReply(&view))
	})
	return nil
}

// stateWords are the words for redlock.LockState.
var stateWords = [...]string{
	redlock.LockFree: "free", redlock.LockHeld: "held", redlock.LockUndecided: "undecided", redlock.LockForeign: "foreign",
}

// modeWords are the words for redlock.Mode.
var modeWords = [...]string{redlock.Exclusive: "exclusive", redlock.Shared: "shared", redlock.Permits: "permits"}

func lockReply(view *redlock.LockView) commands.Reply {
	mode, limit, fence := commands.Nil, commands.Nil, commands.Nil
	if len(view.Holders) > 0 {
		mode = commands.Simple(modeWords[view.Mode])
	}
	if view.Limit > 0 {
		limit = commands.Int(int64(view.Limit))
	}
	holders := make([]commands.Reply, len(view.Holders))
	var highest redlock.Fence
	for i := range view.Holders {
		holders[i] = holderReply(&view.Holders[i], view.Mode)
		highest = max(highest, view.Holders[i].Fence)
	}
	if highest > 0 {
		fence = commands.Int(int64(highest))
	}
	votes := make([]commands.Reply, len(view.Masters))
	for i := range view.Masters {
		votes[i] = voteReply(&view.Masters[i])
	}
	return commands.Map(
		commands.Bulk("state"), commands.Simple(stateWords[view.State]),
		commands.Bulk("mode"), mode,
		commands.Bulk("limit"), limit,
		commands.Bulk("count"), commands.Int(int64(view.Count)),
		commands.Bulk("holders"), commands.Array(holders...),
		commands.Bulk("fence"), fence,
		commands.Bulk("waiters"), commands.Int(int64(view.Waiters)),
		commands.Bulk("queue"), commands.Int(int64(view.Queued)),
		commands.Bulk("votes"), commands.Array(votes...),
	)
}

// holderReply is one holder. What its note does not contain is nil.
func holderReply(h *redlock.Holder, mode redlock.Mode) commands.Reply {
	slot, fence, meta, daemon, client, name := commands.Nil, commands.Nil, commands.Nil, commands.Nil, commands.Nil, commands.Nil
	if mode == redlock.Permits {
		slot = commands.Int(int64(h.Slot))
	}
	if h.Fence > 0 {
		fence = commands.Int(int64(h.Fence))
	}
	if n := h.Note; n != nil {
		meta, daemon, client, name = orNil(n.Meta), orNil(n.Daemon), orNil(n.Client), orNil(n.Name)
	}
	return commands.Map(
		commands.Bulk("token"), commands.Bulk(h.Token.ShortHash()),
		commands.Bulk("ttl"), commands.Int(h.Left.Milliseconds()),
		commands.Bulk("slot"), slot,
		commands.Bulk("fence"), fence,
		commands.Bulk("meta"), meta,
		commands.Bulk("daemon"), daemon,
		commands.Bulk("client"), client,
		commands.Bulk("name"), name,
		commands.Bulk("votes"), commands.Int(int64(h.Votes)),
	)
}

// orNil is nil for an empty text.
func orNil(text string) commands.Reply {
	if text == "" {
		return commands.Nil
	}
	return commands.Bulk(text)
}

// voteReply is one master: the token that lasts longest there stands for all.
func voteReply(m *redlock.LockOnMaster) commands.Reply {
	state := "voting"
	switch {
	case !m.Known:
		state = "unknown"
	case m.Quarantined:
		state = "quarantined"
	}
	mode, token, ttl := commands.Nil, commands.Nil, commands.Nil
	switch {
	case !m.Known:
	case m.State == redlock.LockForeign:
		mode = commands.Simple("foreign")
	case m.Token != "":
		mode, token, ttl = commands.Simple(modeWords[m.Mode]), commands.Bulk(m.Token.ShortHash()), commands.Int(m.Left.Milliseconds())
	}
	return commands.Map(
		commands.Bulk("master"), commands.Bulk(m.Master),
		commands.Bulk("state"), commands.Simple(state),
		commands.Bulk("detail"), commands.Bulk(commands.Field(m.Reason)),
		commands.Bulk("mode"), mode,
		commands.Bulk("holders"), commands.Int(int64(m.Count)),
		commands.Bulk("token"), token,
		commands.Bulk("ttl"), ttl,
	)
}
