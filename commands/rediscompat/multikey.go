// Keys of a command, and completions that reply by whether something was so: for one key,
// or for how many of several. Each key is a request of its own.

package rediscompat

import (
	"cmp"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// timed stops the watch and replies yes or no.
func timed(c *commands.Call, watch dropin.Stopwatch, yes, no commands.Reply) func(bool, error) {
	return func(so bool, err error) {
		watch.Stop(so, err)
		c.Reply(commands.Either(so, err, yes, no))
	}
}

// maxAtOnce keys of a command are asked for together.
const maxAtOnce = arg.MaxKeys

// counting asks for each key, a slice of them at a time, and replies for how many it was so.
func counting(c *commands.Call, keys []redlock.Key, watch dropin.Stopwatch, ask func(key redlock.Key, done func(bool, error))) {
	countFrom(c, keys, 0, watch, ask)
}

func countFrom(c *commands.Call, keys []redlock.Key, before int64, watch dropin.Stopwatch, ask func(key redlock.Key, done func(bool, error))) {
	now := keys[:min(len(keys), maxAtOnce)]
	each := commands.Gather(len(now), func(so []bool, errs []error) {
		n, err := before, cmp.Or(errs...)
		for i := range so {
			if so[i] && errs[i] == nil {
				n++
			}
		}
		if rest := keys[len(now):]; err == nil && len(rest) > 0 {
			c.Batch = nil // it has been sent
			countFrom(c, rest, n, watch, ask)
			return
		}
		watch.Stop(n > 0, err)
		c.Reply(commands.Either(true, err, commands.Int(n), commands.Nil))
	})
	for i, key := range now {
		ask(key, each(i))
	}
}

// keysOf returns all arguments of the call as keys; nil if there is an error, or if the
// call has been answered because the client may not use all of them.
func (h *handlers) keysOf(c *commands.Call) ([]redlock.Key, error) {
	var keys []redlock.Key
	for _, word := range c.Args[1:] {
		key, err := arg.ParseKey(word)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if !c.MayUseAll(keys...) {
		return nil, nil
	}
	return keys, nil
}
