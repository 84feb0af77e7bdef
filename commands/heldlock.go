// heldLock is a lock with HOLD: it is renewed until its connection ends.

package commands

import (
	"sync"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// unbounded stands for the end of a lock that is renewed; heldLock reports its
// real end.
const unbounded = 10 * 365 * 24 * time.Hour

// heldLock is one lock that is renewed for a connection, from the grant to its end.
type heldLock struct {
	client *Client
	users  *access.Users

	mu    sync.Mutex
	hook  *closeHook
	ended bool
}

// onGranted ties the renewal to the connection. If the lock ended meanwhile, it
// removes the hook again.
func (h *heldLock) onGranted(hold *redlock.Hold) {
	hook := h.client.OnClose.add(func(why error) {
		if why == nil {
			hold.End()
		} else {
			hold.Abandon(why)
		}
	})
	h.mu.Lock()
	h.hook = hook
	ended := h.ended
	h.mu.Unlock()
	if ended {
		h.client.OnClose.remove(hook)
	}
}

// onEnded takes the end of the renewal; reason is nil when the lock was released.
func (h *heldLock) onEnded(grant redlock.Grant, reason error) {
	h.mu.Lock()
	h.ended = true
	hook := h.hook
	h.mu.Unlock()
	if hook != nil {
		h.client.OnClose.remove(hook)
	}
	for _, key := range grant.Keys() {
		h.users.ReleasedKey(grant.DB(), key, grant.Token)
		if reason != nil {
			h.client.LastAcquired.Forget(grant.DB(), key, grant.Token)
		}
	}
	if reason == nil || h.client.Push == nil {
		return
	}
	for _, key := range grant.Keys() {
		h.client.Push(Reply{Kind: KindPush, Items: []Reply{
			Bulk("dlock-lost"), Bulk(string(key)), Bulk(string(grant.Token)), Bulk(reason.Error()),
		}}, false)
	}
}
