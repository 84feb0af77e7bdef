// DWORKINFO key: shows what a quorum of masters has of a piece of work.

package work

import (
	"crypto/sha256"
	"encoding/hex"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dworkinfo answers a map, or nil if nothing is known of the work.
func (h *handlers) dworkinfo(c *commands.Call) error {
	key, err := arg.ParseWork(c.Args[1])
	if err != nil {
		return err
	}
	h.deps.Works.ReadWork(c.Client.DB, key, func(view redlock.WorkView, err error) {
		switch {
		case err != nil:
			c.Reply(commands.Failure(err))
		case view.State == "":
			c.Reply(commands.Nil)
		default:
			c.Reply(workReply(view))
		}
	})
	return nil
}

// workReply shows times in milliseconds, those of the master that forgets first.
func workReply(view redlock.WorkView) commands.Reply {
	return commands.Map(
		commands.Bulk("state"), commands.Simple(string(view.State)),
		commands.Bulk("attempt"), commands.Int(view.Attempt),
		commands.Bulk("max"), commands.Int(view.Max),
		commands.Bulk("holder"), commands.Bulk(shownToken(view.Holder)),
		commands.Bulk("left-ms"), commands.Int(view.Left.Milliseconds()),
		commands.Bulk("keep-ms"), commands.Int(view.Keep.Milliseconds()),
		commands.Bulk("forgotten-in-ms"), commands.Int(view.Forgot.Milliseconds()),
		commands.Bulk("meta"), commands.Bulk(view.Meta),
		commands.Bulk("votes"), commands.Int(int64(view.Votes)),
	)
}

// shownToken is the form in which a token may be shown. A token proves ownership and
// is a secret; eight hex digits of its hash only distinguish two of them.
func shownToken(token redlock.Token) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:4])
}
