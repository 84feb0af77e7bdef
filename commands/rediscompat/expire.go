// EXPIRE key seconds and PEXPIRE key ms [NX | XX | GT | LT]: set a lock's lease, regardless of its
// holder.

package rediscompat

import (
	"math"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// expireReads selects the calls of EXPIRE that read first and must not be overtaken meanwhile: with a
// condition, or if they delete.
func expireReads(args []string) bool {
	if len(args) != 3 {
		return true
	}
	n, ok := arg.ParseInteger(args[2])
	return ok && n <= 0
}

func (h *handlers) expire(c *commands.Call) error { return h.expireIn(c, 1000) }

func (h *handlers) pexpire(c *commands.Call) error { return h.expireIn(c, 1) }

// expireIn sets the lease: a time that is over deletes, as in Redis.
func (h *handlers) expireIn(c *commands.Call, unit int64) error {
	if h.deps.CompatTest {
		return h.forwardKey(c)
	}
	key, err := arg.ParseKey(c.Args[1])
	if err != nil {
		return err
	}
	when, err := parseExpireCondition(c.Args[3:])
	if err != nil {
		return err
	}
	ttl, err := h.expiryOf(c.Args, unit)
	if err != nil || !mayForce(c) {
		return err
	}
	request := redlock.WriteRequest{DB: c.Client.DB, Key: key, Effect: redlock.WriteExpires, TTL: ttl, EndlessToo: h.endlessToo(), Longest: h.deps.Longest(c, 0)}
	if ttl == 0 {
		request.Effect = redlock.WriteDeletes
	}
	done := h.noting(c, request, timed(c, h.deps.DropinStats.Timed("expire"), commands.Int(1), commands.Int(0)))
	if (when == expireCondition{}) {
		h.deps.RedisCompat.Write(c.Batch, request, done)
	} else {
		expireSeen(h.deps.RedisCompat, c, request, when, done)
	}
	return nil
}

// expireSeen is EXPIRE with a condition. It changes the lock that it has read, and each master
// compares the expiry once more: with GT, no lease ends earlier that was prolonged meanwhile.
func expireSeen(masters commands.RedisCompat, c *commands.Call, r redlock.WriteRequest, when expireCondition, done redlock.WriteDone) {
	masters.View(c.Batch, r.DB, r.Key, func(v redlock.View, err error) {
		switch {
		case err != nil || v.Kind == "none" || v.Kind == "string" && !when.holds(v, r.TTL):
			done(false, err)
			return
		case v.Kind != "string":
			done(false, redlock.ErrNoValue)
			return
		case when.later:
			r.Only = redlock.WriteLater
		case when.earlier:
			r.Only = redlock.WriteEarlier
		}
		r.Equal = v.Value
		masters.Write(nil, r, done)
	})
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
	return h.newLease(n * unit)
}

// expireCondition has the demands of EXPIRE on the expiry that a key has.
type expireCondition struct{ absent, present, later, earlier bool }

func parseExpireCondition(words []string) (when expireCondition, err error) {
	for _, word := range words {
		switch {
		case arg.IsWord(word, "NX"):
			when.absent = true
		case arg.IsWord(word, "XX"):
			when.present = true
		case arg.IsWord(word, "GT"):
			when.later = true
		case arg.IsWord(word, "LT"):
			when.earlier = true
		default:
			return when, commands.RedisText("Unsupported option " + commands.Clip(word, commands.MaxCommandName))
		}
	}
	switch {
	case when.absent && (when.present || when.later || when.earlier):
		err = commands.RedisText("NX and XX, GT or LT options at the same time are not compatible")
	case when.later && when.earlier:
		err = commands.RedisText("GT and LT options at the same time are not compatible")
	}
	return when, err
}

// holds reports whether a held key meets the condition; ttl 0 is a time that is over.
func (e expireCondition) holds(v redlock.View, ttl time.Duration) bool {
	endless := v.Left >= redlock.Endless
	return !(e.absent && !endless || e.present && endless ||
		e.later && (endless || ttl <= v.Left) || e.earlier && !endless && ttl >= v.Left)
}
