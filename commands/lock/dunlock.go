// DUNLOCK key [token]: releases a lock.

package lock

import (
	"fmt"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// withoutToken makes DUNLOCK without a token wait for the answers before it: they
// decide which lock it releases.
func withoutToken(args []string) bool { return len(args) == 2 }

// dunlock answers 1 if the lock was released and 0 if the token does not hold
// it (any more).
func (h *handlers) dunlock(c *commands.Call) error {
	request, err := unlockRequest(c)
	if err != nil {
		return err
	}
	answer := &unlockAnswer{completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: h.deps.Users, request: request}
	h.deps.Locks.Unlock(c.Batch, request, answer.decided)
	return nil
}

func unlockRequest(c *commands.Call) (redlock.UnlockRequest, error) {
	request := redlock.UnlockRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.Key, err = arg.ParseKey(words.Next()); err != nil {
		return request, err
	}
	if words.More() {
		if request.Token, err = arg.ParseToken(words.Next()); err == nil {
			c.Client.LastAcquired.SawToken(request.DB, request.Key, request.Token)
		}
		return request, err
	}
	token, ok := c.Client.LastAcquired.Token(request.DB, request.Key)
	if !ok {
		return request, fmt.Errorf("this connection holds nothing on %s in database %d, give the token",
			arg.Quoted(string(request.Key)), request.DB)
	}
	request.Token = token
	return request, nil
}

// unlockAnswer is the reply of one DUNLOCK.
type unlockAnswer struct {
	completer    commands.Completer
	lastAcquired *commands.LastAcquired
	users        *access.Users
	request      redlock.UnlockRequest
}

// decided takes the outcome. After an error the connection still remembers the
// lock, so that DUNLOCK can be repeated without a token.
func (a *unlockAnswer) decided(released bool, err error) {
	if err != nil {
		a.completer.Complete(commands.Failure(err))
		return
	}
	a.lastAcquired.Forget(a.request.DB, a.request.Key, a.request.Token)
	a.users.ReleasedKey(a.request.DB, a.request.Key, a.request.Token)
	if released {
		a.completer.Complete(commands.Int(1))
	} else {
		a.completer.Complete(commands.Int(0))
	}
}
