// heldLock is a lock with HOLD: it is renewed until its connection ends.

package lock

import (
	"sync"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// heldLock is one lock that is renewed for a connection, from the grant to its end.
type heldLock struct {
	client *commands.Client
	users  *access.Users

	mu    sync.Mutex
	hook  *commands.CloseHook
	ended bool
}

// onGranted ties the renewal to the connection. If the lock ended meanwhile, it
// removes the hook again.
func (h *heldLock) onGranted(hold redlock.Hold) {
	hook := h.client.OnClose.Add(func(why error) {
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
		h.client.OnClose.Remove(hook)
	}
}

// onEnded takes the end of the renewal; reason is nil when the lock was released.
func (h *heldLock) onEnded(grant redlock.Grant, reason error) {
	h.mu.Lock()
	h.ended = true
	hook := h.hook
	h.mu.Unlock()
	if hook != nil {
		h.client.OnClose.Remove(hook)
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
		h.client.Push(commands.Reply{Kind: commands.KindPush, Items: []commands.Reply{
			commands.Bulk("dlock-lost"), commands.Bulk(string(key)), commands.Bulk(string(grant.Token)), commands.Bulk(reason.Error()),
		}}, false)
	}
}
