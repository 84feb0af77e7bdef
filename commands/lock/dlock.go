// DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text]
// [HOLD [max-ms]] [MAXHOLD ms] takes a lock; DMLOCK ttl numkeys key [key …] with the same options but
// LIMIT and REENTRANT takes several keys, all or none.

package lock

import (
	"errors"
	"fmt"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

const (
	// maxPermits is the largest number of holders of one key.
	maxPermits = 1024
	// maxHold bounds max-ms and MAXHOLD: for more, leave it out.
	maxHold = 365 * 24 * time.Hour
	// maxOwnerBytes leaves room for what follows the owner in the tokens of levels.
	maxOwnerBytes = arg.MaxTokenBytes - 28
)

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

// dlock answers [token, validity, fence], or nil if another token holds the key.
func (h *handlers) dlock(c *commands.Call) error {
	words := c.Words()
	request := redlock.LockRequest{DB: c.Client.DB, Key: words.Key()}
	request.TTL = words.TTL(h.deps.MaxTTL)
	if err := words.Err(); err != nil {
		if _, number := arg.ParseCount(string(request.Key)); number {
			err = fmt.Errorf("%w; the key stands before the ttl", err)
		}
		return err
	}
	h.lockOptions(&words, &request)
	if err := words.Err(); err != nil {
		return err
	}
	h.acquire(c, request)
	return nil
}

// dmlock answers [token, validity, fence], or nil if another token holds one of
// the keys.
func (h *handlers) dmlock(c *commands.Call) error {
	words := c.Words()
	request := redlock.LockRequest{DB: c.Client.DB, TTL: words.TTL(h.deps.MaxTTL)}
	if err := words.Err(); err != nil {
		if _, number := arg.ParseCount(c.Args[len(c.Args)-1]); number {
			err = fmt.Errorf("%w; the ttl stands first", err)
		}
		return err
	}
	keys := words.Keys()
	h.lockOptions(&words, &request)
	if err := words.Err(); err != nil {
		return err
	}
	request.Key, request.More = keys[0], keys[1:]
	if c.MayUseAll(keys...) {
		h.acquire(c, request)
	}
	return nil
}

func (h *handlers) lockOptions(words *arg.Words, request *redlock.LockRequest) {
	reentrant, longest := false, time.Duration(0)
	for words.More() {
		switch name := words.Option(); name {
		case "SHARED":
			words.Fail(lockMode(request, redlock.Readers))
		case "LIMIT":
			limit := words.Int(name, arg.Bounds{Min: 1, Max: maxPermits})
			words.Fail(lockMode(request, redlock.PermitsOf(int(limit))))
		case "REENTRANT":
			reentrant = true
			words.Fail(lockMode(request, redlock.Readers))
		case "TOKEN":
			request.Token = words.Token()
		case "META":
			request.Requester = &redlock.Requester{Meta: words.Meta()}
		case "FAIR":
			request.Fair = true
		case "DELAY":
			request.Linger = words.Delay(request.TTL, h.deps.MaxTTL)
		case "WAIT":
			request.Wait = words.Wait(h.deps.MaxWait)
		case "MAXHOLD":
			longest = words.Time(name, arg.Milliseconds(arg.MinTTL, maxHold, ""))
		case "HOLD":
			request.Hold = &redlock.HoldTerms{} // for ever, unless a number follows
			if words.IntegerFollows() {
				request.Hold.MaxTime = words.Time(name, arg.Milliseconds(arg.MinTTL, maxHold, ""))
			}
		}
	}
	if words.Err() == nil {
		words.Fail(levelTokens(request, reentrant))
		request.Mode = redlock.HeldFor(request.Mode, longest)
	}
}

// levelTokens makes the token of REENTRANT the owner's. The form of the levels' own tokens is
// theirs alone: a reader of that form would count as a level.
func levelTokens(request *redlock.LockRequest, reentrant bool) error {
	switch token := request.Token; {
	case redlock.OwnerOf(token) != "":
		return errors.New("option TOKEN has the token of a level, which ends in '#' and 27 characters: extend the level with DEXTEND, or give the owner's token and REENTRANT")
	case !reentrant:
		return nil
	case token == "":
		return errors.New("option REENTRANT needs TOKEN: the owner that may take the lock again")
	case len(token) > maxOwnerBytes:
		return fmt.Errorf("option REENTRANT: a token of %d bytes, allowed are up to %d", len(token), maxOwnerBytes)
	}
	request.Mode, request.Token = redlock.LevelsOf(request.Token), ""
	return nil
}

// lockMode refuses modes that exclude each other.
func lockMode(request *redlock.LockRequest, mode redlock.Mode) error {
	if request.Mode != nil {
		return errors.New("options SHARED, LIMIT and REENTRANT contradict each other: a key has readers, a number of permits, or one owner's levels")
	}
	request.Mode = mode
	return nil
}
