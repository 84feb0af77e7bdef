// EXPIRE key seconds, PEXPIRE key ms: set a lock's lease, regardless of its holder.

package rediscompat

import (
	"math"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// expireDeletes reports whether an EXPIRE is a DEL, which reads first and must not be
// overtaken meanwhile.
func expireDeletes(args []string) bool {
	if len(args) != 3 {
		return false
	}
	n, ok := arg.ParseInteger(args[2])
	return ok && n <= 0
}

func (h *handlers) expire(c *commands.Call) error { return h.expireIn(c, 1000) }

func (h *handlers) pexpire(c *commands.Call) error { return h.expireIn(c, 1) }

// expireIn sets the lease: a time that is over deletes, as in Redis.
func (h *handlers) expireIn(c *commands.Call, unit int64) error {
	if h.compat.on() {
		return h.compat.forwardKey(c)
	}
	key, err := arg.ParseKey(c.Args[1])
	if err != nil {
		return err
	}
	ttl, err := h.expiryOf(c.Args, unit)
	if err != nil || !mayForce(c) {
		return err
	}
	request := redlock.WriteRequest{DB: c.Client.DB, Key: key, Effect: redlock.WriteExpires, TTL: ttl, EndlessToo: h.leases.endlessToo()}
	if ttl == 0 {
		request.Effect = redlock.WriteDeletes
	}
	h.deps.RedisCompat.Write(c.Batch, request, h.noting(request, newMultiKeyCount(c.Completer, 1, h.deps.DropinStats.Timed("expire")).add))
	return nil
}

// expiryOf reads the time of EXPIRE (unit 1000) and PEXPIRE (unit 1); 0 is one
// that is over.
func (h *handlers) expiryOf(words []string, unit int64) (time.Duration, error) {
	n, ok := arg.ParseInteger(words[2])
	if !ok || n > math.MaxInt64/unit {
		return 0, commands.RedisText("value is not an integer or out of range")
	}
	if n <= 0 {
		return 0, nil
	}
	return h.leases.lease(n * unit)
}
