// BLPOP lock-signal:<name> seconds: how python-redis-lock waits. Nothing is
// popped: the answer comes when lock:<name> is free, and the library requests the
// lock again.

package rediscompat

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// signalPrefix before the name of a lock that has lockPrefix names its signal.
const (
	signalPrefix = "lock-signal:"
	lockPrefix   = "lock:"
)

var errNoList = errors.New("redlockd is not a database: BLPOP waits for one lock of python-redis-lock, BLPOP lock-signal:<name> seconds")

func (h *handlers) blpop(c *commands.Call) error {
	name, ok := strings.CutPrefix(c.Args[1], signalPrefix)
	if !ok || len(c.Args) != 3 {
		return errNoList
	}
	key, err := arg.ParseKey(lockPrefix + name)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(c.Args[2], 64)
	if err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return commands.RedisText("timeout is not a float or out of range")
	}
	if seconds < 0 {
		return commands.RedisText("timeout is negative")
	}
	timeout := h.deps.MaxWait
	if seconds > 0 && seconds < h.deps.MaxWait.Seconds() {
		timeout = time.Duration(seconds * float64(time.Second))
	}
	if !c.MayUseAll(key) {
		return nil
	}
	signal, onClose := c.Args[1], &c.Client.OnClose
	request := redlock.AwaitRequest{DB: c.Client.DB, Key: key, Timeout: timeout, Requester: c.Client.Identity()}
	onClose.SetWait(h.deps.RedisCompat.AwaitFree(request, func(free bool, err error) {
		if err == nil && !free {
			err = onClose.Expelled()
		}
		c.Reply(commands.Either(free, err, commands.Array(commands.Bulk(signal), commands.Bulk("1")), commands.NilArray))
	}))
	return nil
}
