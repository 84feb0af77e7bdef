// DINFO key: shows a lock on all masters.

package commands

import "redlockd/redlock"

// dinfo answers a map, also for a free lock: what single masters have is useful
// then, too.
func (t *Table) dinfo(c *Call) error {
	key, err := parseKey(c.Args[1])
	if err != nil {
		return err
	}
	t.deps.Inspect.ReadLock(c.Client.DB, key, func(view redlock.LockView, err error) {
		if err != nil {
			c.Reply(failure(err))
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

func lockReply(view *redlock.LockView) Reply {
	mode, limit, fence := Nil, Nil, Nil
	if len(view.Holders) > 0 {
		mode = Simple(modeWords[view.Mode])
	}
	if view.Limit > 0 {
		limit = Int(int64(view.Limit))
	}
	holders := make([]Reply, len(view.Holders))
	var highest redlock.Fence
	for i := range view.Holders {
		holders[i] = holderReply(&view.Holders[i], view.Mode)
		highest = max(highest, view.Holders[i].Fence)
	}
	if highest > 0 {
		fence = Int(int64(highest))
	}
	votes := make([]Reply, len(view.Masters))
	for i := range view.Masters {
		votes[i] = voteReply(&view.Masters[i])
	}
	return Map(
		Bulk("state"), Simple(stateWords[view.State]),
		Bulk("mode"), mode,
		Bulk("limit"), limit,
		Bulk("count"), Int(int64(view.Count)),
		Bulk("holders"), Array(holders...),
		Bulk("fence"), fence,
		Bulk("waiters"), Int(int64(view.Waiters)),
		Bulk("queue"), Int(int64(view.Queued)),
		Bulk("votes"), Array(votes...),
	)
}

// holderReply is one holder. What its note does not contain is nil.
func holderReply(h *redlock.Holder, mode redlock.Mode) Reply {
	slot, fence, meta, daemon, client, name := Nil, Nil, Nil, Nil, Nil, Nil
	if mode == redlock.Permits {
		slot = Int(int64(h.Slot))
	}
	if h.Fence > 0 {
		fence = Int(int64(h.Fence))
	}
	if n := h.Note; n != nil {
		meta, daemon, client, name = orNil(n.Meta), orNil(n.Daemon), orNil(n.Client), orNil(n.Name)
	}
	return Map(
		Bulk("token"), Bulk(h.Token.ShortHash()),
		Bulk("ttl"), Int(h.Left.Milliseconds()),
		Bulk("slot"), slot,
		Bulk("fence"), fence,
		Bulk("meta"), meta,
		Bulk("daemon"), daemon,
		Bulk("client"), client,
		Bulk("name"), name,
		Bulk("votes"), Int(int64(h.Votes)),
	)
}

// orNil is nil for an empty text.
func orNil(text string) Reply {
	if text == "" {
		return Nil
	}
	return Bulk(text)
}

// voteReply is one master: the token that lasts longest there stands for all.
func voteReply(m *redlock.LockOnMaster) Reply {
	state := "voting"
	switch {
	case !m.Known:
		state = "unknown"
	case m.Quarantined:
		state = "quarantined"
	}
	mode, token, ttl := Nil, Nil, Nil
	switch {
	case !m.Known:
	case m.State == redlock.LockForeign:
		mode = Simple("foreign")
	case m.Token != "":
		mode, token, ttl = Simple(modeWords[m.Mode]), Bulk(m.Token.ShortHash()), Int(m.Left.Milliseconds())
	}
	return Map(
		Bulk("master"), Bulk(m.Master),
		Bulk("state"), Simple(state),
		Bulk("detail"), Bulk(field(m.Reason)),
		Bulk("mode"), mode,
		Bulk("holders"), Int(int64(m.Count)),
		Bulk("token"), token,
		Bulk("ttl"), ttl,
	)
}
