// HOLD: a lock that is renewed for a connection, from its grant to its end.

package lock

import (
	"sync"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// heldLock is one lock with HOLD: it is renewed for a connection, from the grant to its end.
type heldLock struct {
	users  *access.Users
	client *commands.Client

	mu     sync.Mutex
	unbind func() // removes the hook
	ended  bool
	goesOn time.Duration // of an ended renewal: for how long the keys stay taken
}

// bind makes the lock end with the client's connection.
func bind(users *access.Users, client *commands.Client, request *redlock.LockRequest, done redlock.LockDone) redlock.LockDone {
	held := &heldLock{users: users, client: client}
	terms := *request.Hold
	terms.OnEnd, terms.OnWanted = held.onEnded, held.onWanted
	request.Hold = &terms
	return func(grant redlock.Grant, err error) {
		done(grant, err)
		if err == nil && grant.Hold != nil {
			held.onGranted(&grant)
		}
	}
}

// onGranted ties the renewal to the connection. If the renewal ended meanwhile, it removes the
// hook again, and the lock counts no longer than its lease: its end came before its slot was filled.
func (b *heldLock) onGranted(grant *redlock.Grant) {
	hold := grant.Hold
	unbind := b.client.OnClose.Add(func(why error) {
		if why == nil {
			hold.End()
		} else {
			hold.Abandon(why)
		}
	})
	b.mu.Lock()
	b.unbind = unbind
	ended, goesOn := b.ended, b.goesOn
	b.mu.Unlock()
	if ended {
		unbind()
		b.noLongerRenewed(grant, goesOn)
	}
}

// onWanted passes a request to let go to the client.
func (b *heldLock) onWanted(key redlock.Key, text string) {
	b.push("dlock-wanted", string(key), text)
}

// push sends a message to clients on RESP3.
func (b *heldLock) push(words ...string) {
	if b.client.Push == nil {
		return
	}
	message := commands.Reply{Kind: commands.KindPush}
	for _, word := range words {
		message.Items = append(message.Items, commands.Bulk(word))
	}
	b.client.Push(message, false)
}

func (b *heldLock) noLongerRenewed(grant *redlock.Grant, goesOn time.Duration) {
	for _, key := range grant.Keys() {
		b.users.RenewalEnded(grant.DB(), key, grant.Token, goesOn)
	}
}

// onEnded takes the end of the renewal; reason is nil when the lock was released.
func (b *heldLock) onEnded(grant redlock.Grant, reason error, goesOn time.Duration) {
	b.mu.Lock()
	b.ended, b.goesOn = true, goesOn
	unbind := b.unbind
	b.mu.Unlock()
	if unbind != nil {
		unbind()
	}
	b.noLongerRenewed(&grant, goesOn)
	for _, key := range grant.Keys() {
		b.client.LastAcquired.EndRenewal(grant.DB(), key, grant.Token)
		if reason == nil {
			continue
		}
		b.client.LastAcquired.Forget(grant.DB(), key, grant.Token)
		b.push("dlock-lost", string(key), string(grant.Token), reason.Error())
	}
}
