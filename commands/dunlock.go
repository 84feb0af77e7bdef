// DUNLOCK key [token]: releases a lock.

package commands

import (
	"fmt"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// withoutToken makes DUNLOCK without a token wait for the answers before it: they
// decide which lock it releases.
func withoutToken(args []string) bool { return len(args) == 2 }

// dunlock answers 1 if the lock was released and 0 if the token does not hold
// it (any more).
func (t *Table) dunlock(c *Call) error {
	request, err := unlockRequest(c)
	if err != nil {
		return err
	}
	answer := &unlockAnswer{completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: t.deps.Users, request: request}
	t.deps.Locks.Unlock(c.Batch, request, answer.decided)
	return nil
}

func unlockRequest(c *Call) (redlock.UnlockRequest, error) {
	request := redlock.UnlockRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.Key, err = parseKey(words.next()); err != nil {
		return request, err
	}
	if words.more() {
		if request.Token, err = parseToken(words.next()); err == nil {
			c.Client.LastAcquired.sawToken(request.DB, request.Key, request.Token)
		}
		return request, err
	}
	token, ok := c.Client.LastAcquired.Token(request.DB, request.Key)
	if !ok {
		return request, fmt.Errorf("this connection holds nothing on %s in database %d, give the token",
			quoted(string(request.Key)), request.DB)
	}
	request.Token = token
	return request, nil
}

// unlockAnswer is the reply of one DUNLOCK.
type unlockAnswer struct {
	completer    Completer
	lastAcquired *LastAcquired
	users        *access.Users
	request      redlock.UnlockRequest
}

// decided takes the outcome. After an error the connection still remembers the
// lock, so that DUNLOCK can be repeated without a token.
func (a *unlockAnswer) decided(released bool, err error) {
	if err != nil {
		a.completer.Complete(failure(err))
		return
	}
	a.lastAcquired.Forget(a.request.DB, a.request.Key, a.request.Token)
	a.users.ReleasedKey(a.request.DB, a.request.Key, a.request.Token)
	if released {
		a.completer.Complete(Int(1))
	} else {
		a.completer.Complete(Int(0))
	}
}
