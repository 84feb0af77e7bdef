// DINFO key shows a lock on all masters, DFORCE key releases it regardless of its holder.

package inspect

import (
	"cmp"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

type handlers struct{ deps commands.Deps }

// dinfo answers a map, also for a free lock: what single masters have is useful
// then, too.
func (h *handlers) dinfo(c *commands.Call) error {
	key, err := arg.ParseKey(c.Args[1])
	if err != nil {
		return err
	}
	h.deps.Inspect.ReadLock(c.Client.DB, key, commands.Answer(c, lockReply))
	return nil
}

// dforce answers 1 if the lock was held and 0 if it was free.
func (h *handlers) dforce(c *commands.Call) error {
	key, err := arg.ParseKey(c.Args[1])
	if err != nil {
		return err
	}
	h.deps.Force(c, key, commands.Answer(c, commands.Bool))
	return nil
}

// stateWords are the words for redlock.LockState.
var stateWords = [...]string{
	redlock.LockFree: "free", redlock.LockHeld: "held", redlock.LockUndecided: "undecided", redlock.LockForeign: "foreign",
}

func lockReply(view redlock.LockView) commands.Reply {
	mode := commands.Nil
	if len(view.Holders) > 0 {
		mode = commands.Simple(view.ModeWord())
	}
	holders := make([]commands.Reply, len(view.Holders))
	now := time.Now()
	for i := range view.Holders {
		holders[i] = holderReply(&view.Holders[i], view.Mode, now)
	}
	votes := make([]commands.Reply, len(view.Masters))
	for i := range view.Masters {
		votes[i] = voteReply(&view.Masters[i])
	}
	wanted := commands.Nil
	if view.Wanted != nil {
		wanted = commands.Bulk(*view.Wanted)
	}
	return commands.Map(
		commands.Bulk("state"), commands.Simple(stateWords[view.State]),
		commands.Bulk("mode"), mode,
		commands.Bulk("limit"), intOrNil(int64(view.Limit)),
		commands.Bulk("count"), commands.Int(int64(view.Count)),
		commands.Bulk("holders"), commands.Array(holders...),
		commands.Bulk("fence"), intOrNil(int64(view.HighestFence())),
		commands.Bulk("waiters"), commands.Int(int64(view.Waiters)),
		commands.Bulk("queue"), commands.Int(int64(view.Queued)),
		commands.Bulk("wanted"), wanted,
		commands.Bulk("votes"), commands.Array(votes...),
	)
}

// holderReply is one holder. What is not known of it is nil.
func holderReply(h *redlock.Holder, mode redlock.Kind, now time.Time) commands.Reply {
	slot := commands.Nil
	if mode == redlock.Permits {
		slot = commands.Int(int64(h.Slot))
	}
	note, since, hold := cmp.Or(h.Note, &redlock.Note{}), commands.Nil, commands.Nil
	if h.Held > 0 {
		since = commands.Int(now.Add(-h.Held).UnixMilli())
	}
	if note.User != "" { // this daemon has it in its memory
		hold = commands.Bool(h.Hold)
	}
	return commands.Map(
		commands.Bulk("token"), commands.Bulk(h.Token.ShortHash()),
		commands.Bulk("ttl"), commands.Int(h.Left.Milliseconds()),
		commands.Bulk("slot"), slot,
		commands.Bulk("fence"), intOrNil(int64(h.Fence)),
		commands.Bulk("meta"), textOrNil(note.Meta),
		commands.Bulk("daemon"), textOrNil(note.Daemon),
		commands.Bulk("client"), textOrNil(note.Client),
		commands.Bulk("name"), textOrNil(note.Name),
		commands.Bulk("library"), textOrNil(note.Library),
		commands.Bulk("user"), textOrNil(note.User),
		commands.Bulk("since"), since,
		commands.Bulk("hold"), hold,
		commands.Bulk("votes"), commands.Int(int64(h.Votes)),
	)
}

func textOrNil(text string) commands.Reply {
	if text == "" {
		return commands.Nil
	}
	return commands.Bulk(text)
}

func intOrNil(n int64) commands.Reply {
	if n == 0 {
		return commands.Nil
	}
	return commands.Int(n)
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
		mode, token, ttl = commands.Simple(m.Mode.Word(redlock.OwnerOf(m.Token) != "")), commands.Bulk(m.Token.ShortHash()), commands.Int(m.Left.Milliseconds())
	}
	return commands.Map(
		commands.Bulk("master"), commands.Bulk(m.Master),
		commands.Bulk("state"), commands.Simple(state),
		commands.Bulk("detail"), commands.Bulk(commands.Line(m.Reason)),
		commands.Bulk("mode"), mode,
		commands.Bulk("holders"), commands.Int(int64(m.Count)),
		commands.Bulk("token"), token,
		commands.Bulk("ttl"), ttl,
	)
}
