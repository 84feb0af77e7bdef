// DMLOCK ttl numkeys key [key …] [SHARED] [FAIR] [WAIT ms] [TOKEN token] [META text]
// [HOLD [max-ms]]: takes several keys, all or none.

package lock

import (
	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dmlock answers [token, validity, fence], or nil if another token holds one of
// the keys.
func (h *handlers) dmlock(c *commands.Call) error {
	request, err := h.multiLockRequest(c)
	if err != nil {
		return err
	}
	if c.MayUseAll(request.Key) && c.MayUseAll(request.More...) {
		h.acquire(c, request)
	}
	return nil
}

func (h *handlers) multiLockRequest(c *commands.Call) (redlock.LockRequest, error) {
	request := redlock.LockRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.TTL, err = arg.ParseTTL(words.Next(), h.deps.MaxTTL); err != nil {
		return request, err
	}
	keys, err := arg.ParseKeys(&words)
	if err != nil {
		return request, err
	}
	request.Key, request.More = keys[0], keys[1:]
	for words.More() {
		if err := h.lockOption(&words, &request); err != nil {
			return request, err
		}
	}
	return request, nil
}
