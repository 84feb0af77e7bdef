// What Redisson names its keys, and what it reads of a lock.

package rediscompat

import (
	"strconv"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

const (
	// redissonLatch begins the names of keys in which Redisson keeps the answer to an unlock that
	// waits for replicas. There are none, and so no such key.
	redissonLatch = "redisson_unlock_latch:"
	// redissonToken before the name of an RFencedLock names its fence.
	redissonToken = "redisson_lock_token:"
	// minRedissonWait and maxRedissonWait bound how long Redisson sleeps if no message wakes it:
	// the message of another daemon may be lost.
	minRedissonWait = 10 * time.Millisecond
	maxRedissonWait = 2 * time.Second
)

// redissonSleep is for how many milliseconds Redisson sleeps, or until a message comes.
func redissonSleep(v redlock.View) int64 {
	if v.Left >= redlock.Endless {
		return maxRedissonWait.Milliseconds()
	}
	return min(max(v.Left, minRedissonWait), maxRedissonWait).Milliseconds()
}

func hasLevel(count int) commands.Reply { return commands.Bool(count > 0) }

func levelCount(count int) commands.Reply {
	if count == 0 {
		return commands.Nil
	}
	return commands.Bulk(strconv.Itoa(count))
}

// fencedName is the RFencedLock whose fence has this name: redisson_lock_token:{name}, without the
// braces if the name has its own.
func fencedName(key string) (name string, is bool) {
	name, is = strings.CutPrefix(key, redissonToken)
	if inner, ok := strings.CutPrefix(name, "{"); ok && strings.HasSuffix(inner, "}") {
		name = strings.TrimSuffix(inner, "}")
	}
	return name, is
}
