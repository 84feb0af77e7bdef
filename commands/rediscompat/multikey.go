// multiKeyCount counts the outcomes of a Redis command on several keys. Each key is
// a request of its own; the answer is for how many of them it was true.

package rediscompat

import (
	"fmt"
	"sync"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// multiKeyCount collects the outcomes of one command.
type multiKeyCount struct {
	completer commands.Completer
	watch     dropin.Stopwatch

	mu   sync.Mutex
	open int
	n    int64
	err  error // the first that was not decided
}

func newMultiKeyCount(completer commands.Completer, keys int, watch dropin.Stopwatch) *multiKeyCount {
	return &multiKeyCount{completer: completer, open: keys, watch: watch}
}

func (c *multiKeyCount) add(yes bool, err error) {
	c.mu.Lock()
	c.open--
	switch {
	case err != nil && c.err == nil:
		c.err = err
	case err == nil && yes:
		c.n++
	}
	open, n, failed := c.open, c.n, c.err
	c.mu.Unlock()
	if open == 0 {
		c.watch.Stop(n > 0, failed)
	}
	switch {
	case open > 0:
	case failed != nil:
		c.completer.Complete(commands.Failure(failed))
	default:
		c.completer.Complete(commands.Int(n))
	}
}

// keysOf returns all arguments of the call as keys. ok is false if the call has been
// answered, because the client may not use all of them.
func (h *handlers) keysOf(c *commands.Call) (keys []redlock.Key, ok bool, err error) {
	if n := len(c.Args) - 1; n > arg.MaxKeys {
		return nil, false, fmt.Errorf("%d keys are given, allowed are 1 to %d", n, arg.MaxKeys)
	}
	for _, word := range c.Args[1:] {
		key, err := arg.ParseKey(word)
		if err != nil {
			return nil, false, err
		}
		keys = append(keys, key)
	}
	return keys, c.MayUseAll(keys...), nil
}
