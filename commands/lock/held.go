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

	hold   redlock.Hold
	mu     sync.Mutex
	unbind func() // removes the hook
	ended  bool
	goesOn time.Duration // of an ended renewal: for how long the keys stay taken
}

// bind makes the lock end with the client's connection.
func bind(users *access.Users, client *commands.Client, request *redlock.LockRequest, done redlock.LockDone) redlock.LockDone {
	held := &heldLock{users: users, client: client}
	terms := *request.Hold
	terms.OnBegin, terms.OnEnd, terms.OnWanted = held.onBegun, held.onEnded, held.onWanted
	request.Hold = &terms
	return func(grant redlock.Grant, err error) {
		done(grant, err)
		if held.hold != nil {
			held.onGranted(&grant)
		}
	}
}

func (h *heldLock) onBegun(hold redlock.Hold) { h.hold = hold }

// onGranted ties the renewal to the connection. If the renewal ended meanwhile, it removes the
// hook again, and the lock counts no longer than its lease: its end came before its slot was filled.
func (h *heldLock) onGranted(grant *redlock.Grant) {
	unbind := h.client.OnClose.Add(func(why error) {
		if why == nil {
			h.hold.End()
		} else {
			h.hold.Abandon(why)
		}
	})
	h.mu.Lock()
	h.unbind = unbind
	ended, goesOn := h.ended, h.goesOn
	h.mu.Unlock()
	if ended {
		unbind()
		h.noLongerRenewed(grant, goesOn)
	}
}

// onWanted passes a request to let go to the client.
func (h *heldLock) onWanted(key redlock.Key, text string) {
	h.push("dlock-wanted", string(key), text)
}

// push sends a message to clients on RESP3.
func (h *heldLock) push(words ...string) {
	if h.client.Push == nil {
		return
	}
	message := commands.Reply{Kind: commands.KindPush}
	for _, word := range words {
		message.Items = append(message.Items, commands.Bulk(word))
	}
	h.client.Push(message, false)
}

func (h *heldLock) noLongerRenewed(grant *redlock.Grant, goesOn time.Duration) {
	for _, key := range grant.Keys() {
		h.users.RenewalEnded(grant.DB(), key, grant.Token, goesOn)
	}
}

// onEnded takes the end of the renewal; reason is nil when the lock was released.
func (h *heldLock) onEnded(grant redlock.Grant, reason error, goesOn time.Duration) {
	h.mu.Lock()
	h.ended, h.goesOn = true, goesOn
	unbind := h.unbind
	h.mu.Unlock()
	if unbind != nil {
		unbind()
	}
	h.noLongerRenewed(&grant, goesOn)
	for _, key := range grant.Keys() {
		h.client.LastAcquired.EndRenewal(grant.DB(), key, grant.Token)
		if reason == nil {
			continue
		}
		h.client.LastAcquired.Forget(grant.DB(), key, grant.Token)
		h.push("dlock-lost", string(key), string(grant.Token), reason.Error())
	}
}
