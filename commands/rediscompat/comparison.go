// comparison is a SET or DELEX that compares the key's value: yes, no, or an error where the
// key is no string, as in Redis.

package rediscompat

import (
	"errors"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

type comparison struct {
	masters commands.RedisCompat
	call    *commands.Call
	key     redlock.Key
	watch   dropin.Stopwatch
	yes, no commands.Reply
}

// errNoStringToCompare is the error of Redis for a DELEX with a condition.
const errNoStringToCompare = commands.RedisText("Key should be of string type if conditions are specified")

// read reads the value first, because masters compare whole values only. It continues with
// the lock if that meets the condition, and with none where the condition is met by that. If
// another client changes the lock before the masters compare it, the condition counts as not
// met.
func (c comparison) read(when dropin.Condition, operand string, then func(redlock.View)) {
	c.masters.View(c.call.Batch, c.call.Client.DB, c.key, func(v redlock.View, err error) {
		c.call.Batch = nil // it has been sent
		if err == nil && (v.Kind == "string" && when.Holds(string(v.Value), operand) || v.Kind == "none" && when.Negative()) {
			then(v)
			return
		}
		c.answer(false, orWrongType(v, err))
	})
}

// done answers the outcome on the masters. Their scripts do not distinguish a key that is no
// string from another value, so it looks at the key after a no.
func (c comparison) done(so bool, err error) {
	if so || err != nil {
		c.answer(so, err)
	} else {
		c.refuted()
	}
}

func (c comparison) refuted() {
	checkKind(c.masters, c.call.Client.DB, c.key, func(err error) { c.answer(false, err) })
}

func (c comparison) answer(so bool, err error) {
	c.watch.Stop(so, err)
	if errors.Is(err, redlock.ErrWrongType) && arg.IsWord(c.call.Args[0], "DELEX") {
		err = errNoStringToCompare
	}
	c.call.Reply(commands.Either(so, err, c.yes, c.no))
}

// checkKind passes ErrWrongType to done if a quorum has something at the key that is no
// string. A look that fails passes nil: the comparison itself is decided.
func checkKind(masters commands.RedisCompat, db int, key redlock.Key, done func(error)) {
	masters.View(nil, db, key, func(v redlock.View, err error) {
		if err != nil {
			v.Kind = "none"
		}
		done(orWrongType(v, nil))
	})
}

// orWrongType is the error of a comparison with what a quorum has.
func orWrongType(v redlock.View, err error) error {
	if err == nil && v.Kind != "string" && v.Kind != "none" {
		return redlock.ErrNoValue
	}
	return err
}
