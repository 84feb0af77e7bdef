// DWAITERS [key]: lists the requests that wait in this daemon.

package inspect

import (
	"fmt"
	"slices"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// maxShownWaiters bounds one listing of waiters; each is some 200 bytes on the wire.
const maxShownWaiters = 1000

// dwaiters answers an array of maps, the longest wait first. Of one key it shows as
// many as there is room for; of all keys it replies with an error rather than leave
// some out silently.
func (h *handlers) dwaiters(c *commands.Call) error {
	visible := c.KeyFilter()
	wanted := visible
	if len(c.Args) > 1 {
		only, err := arg.ParseKey(c.Args[1])
		if err != nil {
			return err
		}
		wanted = func(key redlock.Key) bool { return key == only }
	}
	list, all := h.deps.Inspect.Waiting(c.Client.DB, wanted, maxShownWaiters)
	if all > len(list) && len(c.Args) == 1 {
		return c.Reply(commands.Error("ERR", fmt.Sprintf("%d requests wait and one listing has room for %d; name a key: DWAITERS key", all, maxShownWaiters)))
	}
	now := time.Now()
	items := make([]commands.Reply, len(list))
	for i := range list {
		w := &list[i]
		keys := slices.DeleteFunc(slices.Clone(w.Keys), func(key redlock.Key) bool { return !visible(key) })
		items[i] = waiterReply(w, keys, now)
	}
	return c.Reply(commands.Array(items...))
}

// waiterReply shows times in milliseconds, since as a time of this daemon's clock.
func waiterReply(w *redlock.Waiting, keys []redlock.Key, now time.Time) commands.Reply {
	names := make([]commands.Reply, len(keys))
	for i, key := range keys {
		names[i] = commands.Bulk(string(key))
	}
	return commands.Map(
		commands.Bulk("keys"), commands.Array(names...),
		commands.Bulk("mode"), commands.Simple(w.Mode.Word(w.Reenters)),
		commands.Bulk("fair"), commands.Bool(w.Fair),
		commands.Bulk("place"), commands.Int(int64(w.Place)),
		commands.Bulk("client"), commands.Int(w.Requester.ID),
		commands.Bulk("addr"), commands.Bulk(w.Requester.Addr),
		commands.Bulk("name"), commands.Bulk(w.Requester.Name),
		commands.Bulk("user"), commands.Bulk(w.Requester.User),
		commands.Bulk("since"), commands.Int(now.Add(-w.Since).UnixMilli()),
		commands.Bulk("waited-ms"), commands.Int(w.Since.Milliseconds()),
		commands.Bulk("left-ms"), commands.Int(w.Left.Milliseconds()),
	)
}
