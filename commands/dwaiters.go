// DWAITERS [key]: lists the requests that wait in this daemon.

package commands

import (
	"fmt"
	"slices"
	"time"

	"redlockd/redlock"
)

// maxShownWaiters bounds one listing of waiters; each is some 200 bytes on the wire.
const maxShownWaiters = 1000

// dwaiters answers an array of maps, the longest wait first. Of one key it shows as
// many as there is room for; of all keys it replies with an error rather than leave
// some out silently.
func (t *Table) dwaiters(c *Call) error {
	visible := c.KeyFilter()
	wanted := visible
	if len(c.Args) > 1 {
		only, err := parseKey(c.Args[1])
		if err != nil {
			return err
		}
		wanted = func(key redlock.Key) bool { return key == only }
	}
	list, all := t.deps.Inspect.Waiting(c.Client.DB, wanted, maxShownWaiters)
	if all > len(list) && len(c.Args) == 1 {
		c.Reply(Error("ERR", fmt.Sprintf("%d requests wait and one listing has room for %d; name a key: DWAITERS key", all, maxShownWaiters)))
		return nil
	}
	now := time.Now()
	items := make([]Reply, len(list))
	for i := range list {
		w := &list[i]
		keys := slices.DeleteFunc(slices.Clone(w.Keys), func(key redlock.Key) bool { return !visible(key) })
		items[i] = waiterReply(w, keys, now)
	}
	c.Reply(Array(items...))
	return nil
}

// waiterReply shows times in milliseconds, since as a time of this daemon's clock.
func waiterReply(w *redlock.Waiting, keys []redlock.Key, now time.Time) Reply {
	names := make([]Reply, len(keys))
	for i, key := range keys {
		names[i] = Bulk(string(key))
	}
	fair := int64(0)
	if w.Fair {
		fair = 1
	}
	return Map(
		Bulk("keys"), Array(names...),
		Bulk("mode"), Simple(modeWords[w.Mode]),
		Bulk("fair"), Int(fair),
		Bulk("place"), Int(int64(w.Place)),
		Bulk("client"), Int(w.Requester.ID),
		Bulk("addr"), Bulk(w.Requester.Addr),
		Bulk("name"), Bulk(w.Requester.Name),
		Bulk("user"), Bulk(w.Requester.User),
		Bulk("since"), Int(now.Add(-w.Since).UnixMilli()),
		Bulk("waited-ms"), Int(w.Since.Milliseconds()),
		Bulk("left-ms"), Int(w.Left.Milliseconds()),
	)
}
