// evaluation is one call of a script.

package rediscompat

import (
	"fmt"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// Bounds of one call. Redisson renews up to 100 locks with one script.
const (
	maxScriptKeys      = 2 * arg.MaxKeys
	maxScriptArguments = maxScriptKeys
)

type evaluation struct {
	handlers *handlers
	call     *commands.Call
	db       int
	sha      string
	text     string
	keys     []redlock.Key
	key      [1]redlock.Key    // behind keys in the usual case of one
	given    dropin.ScriptCall // KEYS and ARGV
	class    *dropin.Class
	reads    bool // it may change nothing: EVAL_RO
	watch    dropin.Stopwatch

	locks []redlock.Key // the keys that are locks
	token redlock.Token
	ttl   time.Duration
	looks int             // at a quorum, so far
	fixed *commands.Reply // the answer, once a look has shown it
}

// arguments reads numkeys key … arg ….
func (e *evaluation) arguments(words []string) error {
	n, ok := arg.ParseInteger(words[2])
	rest := words[3:]
	switch {
	case !ok:
		return commands.RedisText("value is not an integer or out of range")
	case n < 0:
		return commands.RedisText("Number of keys can't be negative")
	case n > int64(len(rest)):
		return commands.RedisText("Number of keys can't be greater than number of args")
	case n > maxScriptKeys || len(rest)-int(n) > maxScriptArguments:
		return fmt.Errorf("a script with %d keys and %d arguments is refused, allowed are 0 to %d and 0 to %d", n, len(rest)-int(n), maxScriptKeys, maxScriptArguments)
	}
	e.given = dropin.ScriptCall{Keys: rest[:n], Args: rest[n:]}
	e.keys = e.key[:0]
	for _, name := range e.given.Keys {
		key, err := arg.ParseKey(name)
		if err != nil {
			return err
		}
		e.keys = append(e.keys, key)
	}
	for i, word := range e.given.Args {
		if len(word) > maxValueBytes {
			return fmt.Errorf("argument %d of the script has %d bytes, allowed are 0 to %d", i+1, len(word), maxValueBytes)
		}
	}
	return nil
}

// refuse names the script and why this daemon does not run it.
func (e *evaluation) refuse(format string, values ...any) error {
	return fmt.Errorf("script %s is not served: %s", e.sha, fmt.Sprintf(format, values...))
}
