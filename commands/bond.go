// HOLD: how does a lock live as long as its connection?
package commands

import (
	"sync"
	"time"

	"redlockd/redlock"
)

// unbounded stands for the end of a lock that is renewed: whoever counts it
// learns of its real end from the bond.
const unbounded = 10 * 365 * 24 * time.Hour

// bond is one lock that is renewed for a connection, from the grant to its end.
type bond struct {
	client *Client
	users  *Users

	mu    sync.Mutex
	tie   *tie
	ended bool
}

// made ties the renewal to the connection. If the lock ended meanwhile, there is
// nothing left to tie.
func (b *bond) made(hold *redlock.Hold) {
	tie := b.client.Ties.tie(func(why error) {
		if why == nil {
			hold.End()
		} else {
			hold.Abandon(why)
		}
	})
	b.mu.Lock()
	b.tie = tie
	ended := b.ended
	b.mu.Unlock()
	if ended {
		b.client.Ties.untie(tie)
	}
}

// over takes the end of the renewal; reason is nil when the lock was released.
func (b *bond) over(grant redlock.Grant, reason error) {
	b.mu.Lock()
	b.ended = true
	tie := b.tie
	b.mu.Unlock()
	if tie != nil {
		b.client.Ties.untie(tie)
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
