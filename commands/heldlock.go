// heldLock is a lock with HOLD: it is renewed until its connection ends.

package commands

import (
	"sync"
	"time"

	"redlockd/redlock"
)

// unbounded stands for the end of a lock that is renewed; heldLock reports its
// real end.
const unbounded = 10 * 365 * 24 * time.Hour

// heldLock is one lock that is renewed for a connection, from the grant to its end.
type bond struct {
	client *Client
	users  *Users

	mu    sync.Mutex
	tie   *tie
	ended bool
}

// onGranted ties the renewal to the connection. If the lock ended meanwhile, it
// removes the hook again.
func (b *bond) made(hold *redlock.Hold) {
	hook := b.client.Ties.tie(func(why error) {
		if why == nil {
			hold.End()
		} else {
			hold.Abandon(why)
		}
	})
	b.mu.Lock()
	b.tie = hook
	ended := b.ended
	b.mu.Unlock()
	if ended {
		b.client.Ties.untie(hook)
	}
}

// onEnded takes the end of the renewal; reason is nil when the lock was released.
func (b *bond) over(grant redlock.Grant, reason error) {
	b.mu.Lock()
	b.ended = true
	hook := b.tie
	b.mu.Unlock()
	if hook != nil {
		b.client.Ties.untie(hook)
	}
	for _, key := range grant.Keys() {
		b.users.gone(grant.DB(), key, grant.Token)
		if reason != nil {
			b.client.Held.Forget(grant.DB(), key, grant.Token)
		}
	}
	if reason == nil || b.client.Push == nil {
		return
	}
	for _, key := range grant.Keys() {
		b.client.Push(Reply{Kind: KindPush, Items: []Reply{
			Bulk("dlock-lost"), Bulk(string(key)), Bulk(string(grant.Token)), Bulk(reason.Error()),
		}}, false)
	}
}
