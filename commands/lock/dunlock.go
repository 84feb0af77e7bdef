// DUNLOCK key [token [KEEP ms | REENTRANT]] releases a lock, DMUNLOCK token numkeys key [key …] several.

package lock

import (
	"fmt"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// readsFirst selects the calls that wait for the answers before them, which decide what they
// release: those without a token, and those that release one of several levels.
func readsFirst(args []string) bool {
	return len(args) == 2 || len(args) == 4 && arg.IsWord(args[3], "REENTRANT")
}

// dunlock answers 1 if the lock was released and 0 if the token does not hold
// it (any more); with REENTRANT how many levels are left, or nil if the owner has none.
func (h *handlers) dunlock(c *commands.Call) error {
	request, oneLevel, err := h.unlockRequest(c)
	if err != nil {
		return err
	}
	if oneLevel {
		owner := redlock.Lease{DB: request.DB, Key: request.Key, Token: request.Token}
		h.deps.LeaveLevel(c.Client, owner, commands.Answer(c, commands.Int))
		return nil
	}
	h.unlock(c, request, func(released bool, err error) {
		c.Reply(commands.Either(released, err, commands.Int(1), commands.Int(0)))
	})
	return nil
}

func (h *handlers) unlockRequest(c *commands.Call) (request redlock.UnlockRequest, oneLevel bool, err error) {
	words, last := c.Words(), &c.Client.LastAcquired
	request = redlock.UnlockRequest{DB: c.Client.DB, Key: words.Key()}
	if words.More() {
		request.Token = words.Token()
		for words.More() {
			switch name := words.Option(); name {
			case "KEEP":
				request.Linger = words.Time(name, arg.Milliseconds(time.Millisecond, h.deps.MaxTTL, "--max-ttl"))
			case "REENTRANT":
				oneLevel = true
			}
		}
		if words.Err() == nil && !oneLevel {
			last.SawToken(request.DB, request.Key, request.Token)
		}
		return request, oneLevel, words.Err()
	}
	var ok bool
	if request.Token, ok = last.Token(request.DB, request.Key); !ok {
		words.Fail(fmt.Errorf("this connection holds nothing on %s in database %d, give the token",
			arg.Quoted(string(request.Key)), request.DB))
	}
	return request, false, words.Err()
}

// unlock releases a lock. After an error the connection still remembers it, so that
// DUNLOCK can be repeated without a token.
func (h *handlers) unlock(c *commands.Call, request redlock.UnlockRequest, done redlock.UnlockDone) {
	goesOn := func(time.Duration) {}
	if request.Linger > 0 {
		goesOn = h.deps.Users.KeepKey(request.DB, request.Key, request.Token)
	}
	h.deps.Locks.Unlock(c.Batch, request, func(released bool, err error) {
		if err == nil {
			c.Client.LastAcquired.Forget(request.DB, request.Key, request.Token)
			h.deps.Users.ReleasedKey(request.DB, request.Key, request.Token)
			switch {
			case released && request.Linger > 0:
				goesOn(request.Linger)
			case released:
				c.Freed(request.Key)
			}
		}
		done(released, err)
	})
}

// dmunlock answers how many of the keys the token held. Every key is released
// by itself: a failure of one of them affects none of the others.
func (h *handlers) dmunlock(c *commands.Call) error {
	words := c.Words()
	request := redlock.UnlockRequest{DB: c.Client.DB, Token: words.Token()}
	keys := words.Keys()
	words.EndOfKeys()
	if err := words.Err(); err != nil {
		return err
	}
	if !c.MayUseAll(keys...) {
		return nil
	}
	each := commands.Gather(len(keys), func(released []bool, errs []error) { c.Reply(releasedReply(keys, released, errs)) })
	for i, key := range keys {
		request.Key = key
		h.unlock(c, request, each(i))
	}
	return nil
}

// releasedReply names the keys that are not decided; those that are released stay so.
func releasedReply(keys []redlock.Key, released []bool, errs []error) commands.Reply {
	var first error
	var undecided []string
	n := 0
	for i, err := range errs {
		switch {
		case err != nil:
			undecided = append(undecided, arg.Quoted(string(keys[i])))
			if first == nil || commands.Code(err) == "NOQUORUM" {
				first = err
			}
		case released[i]:
			n++
		}
	}
	if first == nil {
		return commands.Int(int64(n))
	}
	return commands.Error(commands.Code(first), fmt.Sprintf("of %d keys %d were released and %d are undecided: %s; %s",
		len(keys), n, len(undecided), strings.Join(undecided, " "), commands.Wording(first)))
}
