// DWORKINFO key: shows what a quorum of masters has of a piece of work.

package commands

import (
	"crypto/sha256"
	"encoding/hex"

	"redlockd/redlock"
)

// dworkinfo answers a map, or nil if nothing is known of the work.
func (t *Table) dworkinfo(c *Call) error {
	key, err := parseWork(c.Args[1])
	if err != nil {
		return err
	}
	t.deps.Works.ReadWork(c.Client.DB, key, func(view redlock.WorkView, err error) {
		switch {
		case err != nil:
			c.Reply(failure(err))
		case view.State == "":
			c.Reply(Nil)
		default:
			c.Reply(workReply(view))
		}
	})
	return nil
}

// workReply shows times in milliseconds, those of the master that forgets first.
func workReply(view redlock.WorkView) Reply {
	return Map(
		Bulk("state"), Simple(string(view.State)),
		Bulk("attempt"), Int(view.Attempt),
		Bulk("max"), Int(view.Max),
		Bulk("holder"), Bulk(shownToken(view.Holder)),
		Bulk("left-ms"), Int(view.Left.Milliseconds()),
		Bulk("keep-ms"), Int(view.Keep.Milliseconds()),
		Bulk("forgotten-in-ms"), Int(view.Forgot.Milliseconds()),
		Bulk("meta"), Bulk(view.Meta),
		Bulk("votes"), Int(int64(view.Votes)),
	)
}

// shownToken is the form in which a token may be shown. A token proves ownership and
// is a secret; eight hex digits of its hash only distinguish two of them.
func shownToken(token redlock.Token) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:4])
}
