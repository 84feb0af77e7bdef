// DEXTEND key token ttl [DELAY ms] makes a held lock last at least ttl from now,
// DMEXTEND token ttl numkeys key [key …] [DELAY ms] several.

package lock

import (
	"fmt"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dextend answers the new validity in milliseconds, or nil if the token does
// not hold the lock any more.
func (h *handlers) dextend(c *commands.Call) error {
	words := c.Words()
	request := redlock.ExtendRequest{DB: c.Client.DB, Key: words.Key(), Token: words.Token(), TTL: words.TTL(h.deps.MaxTTL)}
	h.delayOption(&words, &request)
	if err := words.Err(); err != nil {
		if isTime(c.Args[2]) && !isTime(c.Args[3]) {
			err = fmt.Errorf("%w; if it is the ttl, the token stands before it", err)
		}
		return err
	}
	h.extend(c, request, "the lock may be lost")
	return nil
}

func isTime(word string) bool {
	_, is := arg.ParseCount(word)
	return is
}

// dmextend answers the new validity in milliseconds, or nil unless the token
// holds every one of the keys.
func (h *handlers) dmextend(c *commands.Call) error {
	words := c.Words()
	request := redlock.ExtendRequest{DB: c.Client.DB, Token: words.Token(), TTL: words.TTL(h.deps.MaxTTL)}
	keys := words.Keys()
	h.delayOption(&words, &request)
	if err := words.Err(); err != nil {
		return err
	}
	request.Key, request.More = keys[0], keys[1:]
	if c.MayUseAll(keys...) {
		h.extend(c, request, "the locks may be lost")
	}
	return nil
}

func (h *handlers) delayOption(words *arg.Words, request *redlock.ExtendRequest) {
	for words.More() {
		words.Option()
		request.Linger = words.Delay(request.TTL, h.deps.MaxTTL)
	}
}

func (h *handlers) extend(c *commands.Call, request redlock.ExtendRequest, fate string) {
	request.Longest = h.deps.Longest(c, 0)
	h.deps.Locks.Extend(c.Batch, request, commands.AnswerValidity(c, fate, func(grant *redlock.Grant, validity time.Duration) {
		for _, key := range append([]redlock.Key{request.Key}, request.More...) {
			c.Client.LastAcquired.Prolong(request.DB, key, request.Token, validity)
			h.deps.Users.ProlongedKey(request.DB, key, request.Token, validity+grant.Linger())
		}
	}))
}
