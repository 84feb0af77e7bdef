// Acquires: at once, with a wait, or held for as long as the connection lasts.

package lock

import (
	"errors"
	"slices"
	"sync"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

type handlers struct{ deps commands.Deps }

// acquire requests the locks and replies [token, validity, fence].
func (h *handlers) acquire(c *commands.Call, request redlock.LockRequest) {
	if fair := h.deps.FairKeys; fair != nil {
		request.Fair = request.Fair || fair(request.Key) || slices.ContainsFunc(request.More, fair)
	}
	request.Mode = redlock.HeldFor(request.Mode, h.deps.Longest(c, redlock.Longest(request.Mode)))
	answer := &lockAnswer{client: c.Client, endless: request.Hold != nil && request.Hold.MaxTime == 0}
	answer.Locks, answer.Answer = h.deps.Locks, answer
	if answer.Reserve(c, &request) {
		h.send(c, request, answer.decided)
	}
}

// send sends a request to the masters; done is called exactly once.
func (h *handlers) send(c *commands.Call, request redlock.LockRequest, done redlock.LockDone) {
	client := c.Client
	request.Requester = client.Identity().WithMeta(request.Meta())
	if request.Hold != nil {
		done = h.bind(client, &request, done)
	}
	if request.Wait == 0 {
		h.deps.Locks.Lock(c.Batch, request, done)
		return
	}
	request.Owner = &client.LastAcquired
	client.OnClose.SetWait(h.deps.Locks.Wait(c.Batch, request, unlessExpelled(client, done)))
}

// unlessExpelled gives a wait that the daemon ended with its connection the reason.
func unlessExpelled(c *commands.Client, done redlock.LockDone) redlock.LockDone {
	return func(grant redlock.Grant, err error) {
		if errors.Is(err, redlock.ErrLeft) {
			if why := c.OnClose.Expelled(); why != nil {
				err = why
			}
		}
		done(grant, err)
	}
}

// lockAnswer is the reply of one DLOCK or DMLOCK.
type lockAnswer struct {
	commands.PendingGrant
	client  *commands.Client
	endless bool // HOLD without max-ms
}

func (a *lockAnswer) decided(grant redlock.Grant, err error) {
	if err != nil {
		a.Fail(err)
		return
	}
	a.Grant(grant, a.lasting(&grant)+grant.Delay())
}

// ReplyTo remembers the locks for DUNLOCK without a token.
func (a *lockAnswer) ReplyTo(validity time.Duration) commands.Reply {
	grant := &a.Granted
	for _, key := range a.Keys {
		a.client.LastAcquired.Remember(a.DB, key, grant.Token, a.lasting(grant))
	}
	return commands.Array(
		commands.Bulk(string(grant.Token)),
		commands.Int(validity.Milliseconds()),
		commands.Int(int64(grant.Fence)),
	)
}

// Fate names what becomes of a lock that is granted too late.
func (a *lockAnswer) Fate(fresh bool) string {
	several := len(a.Keys) > 1
	switch {
	case several && fresh:
		return "the locks are given back"
	case several:
		return "the locks that this token already held are left as they are"
	case fresh:
		return "the lock is given back"
	}
	return "the lock that this token already held is left as it is"
}

// lasting is for how long a grant counts; a lock that is renewed counts until its
// renewal ends.
func (a *lockAnswer) lasting(grant *redlock.Grant) time.Duration {
	switch {
	case grant.Hold == nil:
		return grant.Left()
	case a.endless:
		return commands.Endless
	}
	return commands.Unbounded
}

// heldLock is one lock with HOLD: it is renewed for a connection, from the grant to its end.
type heldLock struct {
	handlers *handlers
	client   *commands.Client

	mu     sync.Mutex
	unbind func() // removes the hook
	ended  bool
	goesOn time.Duration // of an ended renewal: for how long the keys stay taken
}

// bind makes the lock end with the client's connection.
func (h *handlers) bind(client *commands.Client, request *redlock.LockRequest, done redlock.LockDone) redlock.LockDone {
	held := &heldLock{handlers: h, client: client}
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
		b.handlers.deps.Users.RenewalEnded(grant.DB(), key, grant.Token, goesOn)
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
