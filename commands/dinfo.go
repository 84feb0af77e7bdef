// DINFO key: shows a lock on all masters.

package commands

import (
	"redlockd/commands/access"
	"redlockd/redlock"
)

// Inspect reads locks and waiters, and releases locks by force. Completions as for
// Locks.
type Inspect interface {
	ReadLock(db int, key redlock.Key, done func(redlock.LockView, error))
	ListLocks(redlock.Listing, func(redlock.LockPage, error))
	Waiting(db int, wanted func(redlock.Key) bool, most int) (list []redlock.Waiting, all int)
	Force(redlock.ForceRequest, func(bool, error))
}

var _ Inspect = (*redlock.Locker)(nil)

func (t *Table) inspectRows() []*command {
	key, on := keyArgument(), t.deps.Inspect != nil
	return []*command{
		{
			name: "dinfo", arity: exactly(2), category: access.CategoryRead, since: firstVersion,
			summary: "Shows a lock: a map of its state, holders, waiters and what each master has.",
			flags:   []string{"readonly", "fast"},
			args:    []argument{key},
			handle:  served(on, t.dinfo),
		},
		{
			name: "dlocks", arity: between(2, 6), category: access.CategoryRead, since: firstVersion,
			summary: "Walks over the locks as SCAN does over keys: [cursor, [key, mode, holders, ttl, ...]].",
			flags:   []string{"readonly"},
			args:    []argument{integer("cursor"), optional(option("MATCH", text("pattern"))), optional(option("COUNT", integer("n")))},
			handle:  served(on, t.dlocks),
		},
		{
			name: "dwaiters", arity: between(1, 2), category: access.CategoryRead, since: firstVersion,
			summary: "Shows the requests that wait in this daemon, since when and for how long.",
			flags:   []string{"readonly", "fast"},
			args:    []argument{optional(key)},
			handle:  served(on, t.dwaiters),
		},
		{
			name: "dforce", arity: exactly(2), category: access.CategoryForce, since: firstVersion,
			summary: "Releases a lock regardless of its holder: 1, or 0 if it is free.",
			flags:   []string{"write", "admin"},
			args:    []argument{key},
			handle:  served(on, t.dforce),
		},
	}
}

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
