// Keys of a command, and completions that reply by whether something was so: for one key,
// or for how many of several. Each key is a request of its own.

package rediscompat

import (
	"cmp"
	"fmt"

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

// counting replies for how many of the keys it was so.
func counting(c *commands.Call, keys int, watch dropin.Stopwatch) func(i int) func(bool, error) {
	return commands.Gather(keys, func(so []bool, errs []error) {
		n := int64(0)
		for i := range so {
			if so[i] && errs[i] == nil {
				n++
			}
		}
		err := cmp.Or(errs...)
		watch.Stop(n > 0, err)
		c.Reply(commands.Either(true, err, commands.Int(n), commands.Nil))
	})
}

// keysOf returns all arguments of the call as keys; nil if there is an error, or if the
// call has been answered because the client may not use all of them.
func (h *handlers) keysOf(c *commands.Call) ([]redlock.Key, error) {
	if n := len(c.Args) - 1; n > arg.MaxKeys {
		return nil, fmt.Errorf("%d keys are given, allowed are 1 to %d", n, arg.MaxKeys)
	}
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
