// DMUNLOCK token numkeys key [key …]: releases several locks.

package lock

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dmunlock answers how many of the keys the token held. Every key is released
// by itself: a failure of one of them affects none of the others.
func (h *handlers) dmunlock(c *commands.Call) error {
	words := c.Words()
	token, err := arg.ParseToken(words.Next())
	if err != nil {
		return err
	}
	keys, err := arg.ParseKeys(&words)
	if err != nil {
		return err
	}
	if err := arg.NoMore(&words); err != nil {
		return err
	}
	if !c.MayUseAll(keys...) {
		return nil
	}
	answer := &multiUnlockAnswer{
		completer: c.Completer, lastAcquired: &c.Client.LastAcquired, users: h.deps.Users,
		db: c.Client.DB, token: token, keys: keys, errs: make([]error, len(keys)), open: len(keys),
	}
	for i, key := range keys {
		request := redlock.UnlockRequest{DB: answer.db, Key: key, Token: token}
		h.deps.Locks.Unlock(c.Batch, request, func(released bool, err error) { answer.decided(i, released, err) })
	}
	return nil
}

// multiUnlockAnswer is the reply of one DMUNLOCK. The keys' answers come from
// several goroutines.
type multiUnlockAnswer struct {
	completer    commands.Completer
	lastAcquired *commands.LastAcquired
	users        *access.Users
	db           int
	token        redlock.Token
	keys         []redlock.Key

	mu       sync.Mutex
	errs     []error // by key, nil = decided
	released int64
	open     int // keys without an answer
}

// decided takes one key's outcome, as unlockAnswer does.
func (a *multiUnlockAnswer) decided(i int, released bool, err error) {
	if err == nil {
		a.lastAcquired.Forget(a.db, a.keys[i], a.token)
		a.users.ReleasedKey(a.db, a.keys[i], a.token)
	}
	a.mu.Lock()
	a.errs[i] = err
	if released {
		a.released++
	}
	a.open--
	last := a.open == 0
	a.mu.Unlock()
	if last {
		a.completer.Complete(a.reply())
	}
}

// reply names the keys that are not decided; those that are released stay so.
func (a *multiUnlockAnswer) reply() commands.Reply {
	var first error
	var names []string
	for i, err := range a.errs {
		if err == nil {
			continue
		}
		names = append(names, arg.Quoted(string(a.keys[i])))
		var noQuorum *redlock.NoQuorum
		if first == nil || errors.As(err, &noQuorum) {
			first = err
		}
	}
	if first == nil {
		return commands.Int(a.released)
	}
	return commands.Error(commands.Code(first), fmt.Sprintf("of %d keys %d were released and %d are undecided: %s; %s",
		len(a.keys), a.released, len(names), strings.Join(names, " "), commands.Wording(first)))
}
