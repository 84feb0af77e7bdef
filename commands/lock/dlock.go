// DLOCK key ttl [SHARED | LIMIT n] [FAIR] [WAIT ms] [TOKEN token] [META text]
// [HOLD [max-ms]]: takes a lock.

package lock

import (
	"errors"
	"fmt"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// maxPermits is the largest number of holders of one key.
const maxPermits = 1024

// dlock answers [token, validity, fence], or nil if another token holds the key.
func (h *handlers) dlock(c *commands.Call) error {
	request, err := h.lockRequest(c)
	if err != nil {
		return err
	}
	h.acquire(c, request)
	return nil
}

func (h *handlers) lockRequest(c *commands.Call) (redlock.LockRequest, error) {
	request := redlock.LockRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.Key, err = arg.ParseKey(words.Next()); err != nil {
		return request, err
	}
	if request.TTL, err = arg.ParseTTL(words.Next(), h.deps.MaxTTL); err != nil {
		if _, number := arg.ParseCount(string(request.Key)); number {
			err = fmt.Errorf("%w; the key stands before the ttl", err)
		}
		return request, err
	}
	for words.More() {
		if err := h.lockOption(&words, &request); err != nil {
			return request, err
		}
	}
	return request, nil
}

// lockOption reads one option and its value into the request.
func (h *handlers) lockOption(words *arg.Words, request *redlock.LockRequest) error {
	name, value, err := words.Option()
	if err != nil {
		return err
	}
	switch name {
	case "SHARED":
		return lockMode(request, redlock.Shared)
	case "LIMIT":
		limit, err := arg.Bounds{Min: 1, Max: maxPermits}.Parse(name, value)
		request.Limit = int(limit)
		return errors.Join(err, lockMode(request, redlock.Permits))
	case "TOKEN":
		request.Token, err = arg.ParseToken(value)
	case "META":
		request.Meta, err = arg.ParseMeta(value)
	case "FAIR":
		request.Fair = true
	case "WAIT":
		return h.waitOption(value, request)
	case "HOLD":
		return h.holdOption(words, request)
	}
	return err
}

// lockMode refuses modes that exclude each other.
func lockMode(request *redlock.LockRequest, mode redlock.Mode) error {
	if request.Mode != redlock.Exclusive {
		return errors.New("options SHARED and LIMIT contradict each other: a key has either readers or a number of permits")
	}
	request.Mode = mode
	return nil
}
