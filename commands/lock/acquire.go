// Acquires: at once, with a wait, or held for as long as the connection lasts.

package lock

import (
	"errors"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// errNoWaits is for a daemon that was built without waits.
var errNoWaits = errors.New("options WAIT and HOLD are not served by this daemon; nothing was locked")

// acquire requests the locks and replies [token, validity, fence].
func (h *handlers) acquire(c *commands.Call, request redlock.LockRequest) {
	answer := &lockAnswer{lastAcquired: &c.Client.LastAcquired}
	answer.Locks, answer.Answer = h.deps.Locks, answer
	if answer.Reserve(c, &request) {
		h.send(c, request, answer.decided)
	}
}

// send sends a request to the masters; done is called exactly once.
func (h *handlers) send(c *commands.Call, request redlock.LockRequest, done redlock.LockDone) {
	client := c.Client
	request.Requester = client.Identity()
	if request.Hold != nil {
		done = h.bind(client, &request, done)
	}
	if request.Wait == 0 {
		h.deps.Locks.Lock(c.Batch, request, done)
		return
	}
	request.Owner = &client.LastAcquired
	done = unlessExpelled(client, done)
	client.OnClose.SetWait(h.deps.Locks.Wait(c.Batch, request, done))
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

// bind makes the lock end with the client's connection.
func (h *handlers) bind(client *commands.Client, request *redlock.LockRequest, done redlock.LockDone) redlock.LockDone {
	b := &heldLock{client: client, users: h.deps.Users}
	terms := *request.Hold
	terms.OnEnd = b.onEnded
	request.Hold = &terms
	return func(grant redlock.Grant, err error) {
		done(grant, err)
		if err == nil && grant.Hold != nil {
			b.onGranted(grant.Hold)
		}
	}
}

// lasting is for how long a grant counts; a lock that is renewed counts until its
// renewal ends.
func lasting(grant *redlock.Grant) time.Duration {
	if grant.Hold != nil {
		return commands.Unbounded
	}
	return grant.Left()
}

// waitOption reads WAIT ms; 0 is for ever, which ends as every wait does.
func (h *handlers) waitOption(value string, request *redlock.LockRequest) error {
	if !h.deps.Waits {
		return errNoWaits
	}
	var err error
	request.Wait, err = arg.Milliseconds(0, h.deps.MaxWait, "--max-wait").ParseTime("WAIT", value)
	if request.Wait == 0 {
		request.Wait = h.deps.MaxWait
	}
	return err
}

// holdOption reads HOLD and, if a number follows, after how long it ends for good.
func (h *handlers) holdOption(words *arg.Words, request *redlock.LockRequest) error {
	if !h.deps.Waits {
		return errNoWaits
	}
	request.Hold = &redlock.HoldTerms{}
	ms, given := words.NextInteger()
	if !given {
		return nil
	}
	var err error
	request.Hold.MaxTime, err = arg.Milliseconds(arg.MinTTL, maxHold, "").ParseTime("HOLD", ms)
	return err
}

// maxHold bounds max-ms: for more, leave it out.
const maxHold = 365 * 24 * time.Hour

// blocksLock makes a lock command with WAIT hold back the later commands of its
// connection, as BLPOP does. A token or note that contains WAIT only costs order.
func blocksLock(args []string) bool {
	for i := 3; i < len(args); i++ {
		if arg.IsWord(args[i], "WAIT") {
			return true
		}
	}
	return false
}
