// EXPIRE key seconds, PEXPIRE key ms: set a lock's lease, regardless of its holder.

package commands

import (
	"math"
	"time"

	"redlockd/redlock"
)

// expireDeletes reports whether an EXPIRE is a DEL, which reads first and must not be
// overtaken meanwhile.
func expireDeletes(args []string) bool {
	if len(args) != 3 {
		return false
	}
	n, ok := parseInteger(args[2])
	return ok && n <= 0
}

func (t *Table) expire(c *Call) error { return t.expireIn(c, 1000) }

func (t *Table) pexpire(c *Call) error { return t.expireIn(c, 1) }

// expireIn sets the lease: a time that is over deletes, as in Redis.
func (t *Table) expireIn(c *Call, unit int64) error {
	if t.deps.CompatTest != nil {
		return t.forwardKey(c)
	}
	key, err := parseKey(c.Args[1])
	if err != nil {
		return err
	}
	ttl, err := t.expiryOf(c.Args, unit)
	if err != nil || !mayForce(c) {
		return err
	}
	request := redlock.WriteRequest{DB: c.Client.DB, Key: key, Effect: redlock.WriteExpires, TTL: ttl, EndlessToo: t.endlessToo()}
	if ttl == 0 {
		request.Effect = redlock.WriteDeletes
	}
	t.deps.RedisCompat.Write(c.Batch, request, t.noting(request, newMultiKeyCount(c.Completer, 1, t.deps.DropinStats.Timed("expire")).add))
	return nil
}

// expiryOf reads the time of EXPIRE (unit 1000) and PEXPIRE (unit 1); 0 is one
// that is over.
func (t *Table) expiryOf(words []string, unit int64) (time.Duration, error) {
	n, ok := parseInteger(words[2])
	if !ok || n > math.MaxInt64/unit {
		return 0, redisText("value is not an integer or out of range")
	}
	if n <= 0 {
		return 0, nil
	}
	return t.leaseOf(n * unit)
}
