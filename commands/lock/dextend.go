// DEXTEND key token ttl makes a held lock last at least ttl from now,
// DMEXTEND token ttl numkeys key [key …] several.

package lock

import (
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

// dextend answers the new validity in milliseconds, or nil if the token does
// not hold the lock any more.
func (h *handlers) dextend(c *commands.Call) error {
	words := c.Words()
	request := redlock.ExtendRequest{DB: c.Client.DB, Key: words.Key(), Token: words.Token(), TTL: words.TTL(h.deps.MaxTTL)}
	if err := words.Err(); err != nil {
		return err
	}
	h.extend(c, request, "the lock may be lost")
	return nil
}

// dmextend answers the new validity in milliseconds, or nil unless the token
// holds every one of the keys.
func (h *handlers) dmextend(c *commands.Call) error {
	words := c.Words()
	request := redlock.ExtendRequest{DB: c.Client.DB, Token: words.Token(), TTL: words.TTL(h.deps.MaxTTL)}
	keys := words.Keys()
	words.EndOfKeys()
	if err := words.Err(); err != nil {
		return err
	}
	request.Key, request.More = keys[0], keys[1:]
	if c.MayUseAll(keys...) {
		h.extend(c, request, "the locks may be lost")
	}
	return nil
}

// extension is the reply of one DEXTEND or DMEXTEND.
type extension struct {
	handlers *handlers
	call     *commands.Call
	request  redlock.ExtendRequest
	fate     string // of locks that are extended too late
	grant    redlock.Grant
}

func (h *handlers) extend(c *commands.Call, request redlock.ExtendRequest, fate string) {
	e := &extension{handlers: h, call: c, request: request, fate: fate}
	h.deps.Locks.Extend(c.Batch, request, e.decided)
}

func (e *extension) decided(grant redlock.Grant, err error) {
	if err != nil {
		e.call.Reply(commands.Failure(err))
		return
	}
	e.grant = grant
	e.call.Completer.CompleteDeferred(e)
}

// Reply reports what is left when it is written.
func (e *extension) Reply() commands.Reply {
	validity := e.grant.Validity()
	if validity < time.Millisecond {
		return commands.TooLate(e.grant.ExpiredError(), e.fate)
	}
	e.prolonged(e.request.Key, validity)
	for _, key := range e.request.More {
		e.prolonged(key, validity)
	}
	return commands.Int(validity.Milliseconds())
}

func (e *extension) prolonged(key redlock.Key, validity time.Duration) {
	e.call.Client.LastAcquired.Prolong(e.request.DB, key, e.request.Token, validity)
	e.handlers.deps.Users.ProlongedKey(e.request.DB, key, e.request.Token, validity)
}

// Undelivered does nothing: the locks were held before, and the client with the token
// may still be there on another connection.
func (e *extension) Undelivered() {}
