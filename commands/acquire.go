// Acquires: at once, with a wait, or held for as long as the connection lasts.

package commands

import (
	"errors"
	"time"

	"redlockd/redlock"
)

// errNoWaits is for a daemon that was built without waits.
var errNoWaits = errors.New("options WAIT and HOLD are not served by this daemon; nothing was locked")

// acquire sends a request to the masters; done is called exactly once.
func (t *Table) acquire(c *Call, request redlock.LockRequest, done redlock.LockDone) {
	client := c.Client
	request.Requester = client.identity()
	if request.Hold != nil {
		done = t.bind(client, &request, done)
	}
	if request.Wait == 0 {
		t.deps.Locks.Lock(c.Batch, request, done)
		return
	}
	request.Owner = &client.LastAcquired
	done = client.unlessExpelled(done)
	client.OnClose.setWait(t.deps.Waits.Wait(c.Batch, request, done))
}

// unlessExpelled gives a wait that the daemon ended with its connection the reason.
func (c *Client) unlessExpelled(done redlock.LockDone) redlock.LockDone {
	return func(grant redlock.Grant, err error) {
		if errors.Is(err, redlock.ErrLeft) {
			if why := c.OnClose.expelled(); why != nil {
				err = why
			}
		}
		done(grant, err)
	}
}

// bind makes the lock end with the client's connection.
func (t *Table) bind(client *Client, request *redlock.LockRequest, done redlock.LockDone) redlock.LockDone {
	b := &heldLock{client: client, users: t.deps.Users}
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
		return unbounded
	}
	return grant.Left()
}

// waitOption reads WAIT ms; 0 is for ever, which ends as every wait does.
func (t *Table) waitOption(value string, request *redlock.LockRequest) error {
	if t.deps.Waits == nil {
		return errNoWaits
	}
	var err error
	request.Wait, err = milliseconds(0, t.deps.MaxWait, "--max-wait").parseTime("WAIT", value)
	if request.Wait == 0 {
		request.Wait = t.deps.MaxWait
	}
	return err
}

// holdOption reads HOLD and, if a number follows, after how long it ends for good.
func (t *Table) holdOption(words *arguments, request *redlock.LockRequest) error {
	if t.deps.Waits == nil {
		return errNoWaits
	}
	request.Hold = &redlock.HoldTerms{}
	ms, given := words.nextInteger()
	if !given {
		return nil
	}
	var err error
	request.Hold.MaxTime, err = milliseconds(minTTL, maxHold, "").parseTime("HOLD", ms)
	return err
}

// maxHold bounds max-ms: for more, leave it out.
const maxHold = 365 * 24 * time.Hour

// blocksLock makes a lock command with WAIT hold back the later commands of its
// connection, as BLPOP does. A token or note that contains WAIT only costs order.
func blocksLock(args []string) bool {
	for i := 3; i < len(args); i++ {
		if isWord(args[i], "WAIT") {
			return true
		}
	}
	return false
}
