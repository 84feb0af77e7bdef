// DWORKINFO key: shows what a quorum of masters has of a piece of work.

package work

import (
	"redlockd/commands"
	"redlockd/redlock"
)

// dworkinfo answers a map, or nil if nothing is known of the work.
func (h *handlers) dworkinfo(c *commands.Call) error {
	words := c.Words()
	key := words.Work()
	if err := words.Err(); err != nil {
		return err
	}
	h.deps.Works.ReadWork(c.Client.DB, key, commands.Answer(c, workReply))
	return nil
}

// resultReply is nil if the worker left nothing.
func resultReply(result *string) commands.Reply {
	if result == nil {
		return commands.Nil
	}
	return commands.Bulk(*result)
}

// workReply shows times in milliseconds, those of the master that forgets first.
func workReply(view redlock.WorkView) commands.Reply {
	if view.State == "" {
		return commands.Nil
	}
	return commands.Map(
		commands.Bulk("state"), commands.Simple(string(view.State)),
		commands.Bulk("attempt"), commands.Int(view.Attempt),
		commands.Bulk("max"), commands.Int(view.Max),
		commands.Bulk("holder"), commands.Bulk(view.Holder.ShortHash()),
		commands.Bulk("left-ms"), commands.Int(view.Left.Milliseconds()),
		commands.Bulk("keep-ms"), commands.Int(view.Keep.Milliseconds()),
		commands.Bulk("forgotten-in-ms"), commands.Int(view.Forgot.Milliseconds()),
		commands.Bulk("meta"), commands.Bulk(view.Meta),
		commands.Bulk("result"), resultReply(view.Result),
		commands.Bulk("votes"), commands.Int(int64(view.Votes)),
	)
}
