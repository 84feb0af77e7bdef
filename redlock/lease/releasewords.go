// releaseWords: the command that releases a copy on a master, for releases and undos.

package lease

import (
	"strconv"

	"redlockd/redlock/engine"
)

// expiryRange is a range on a master's clock, in ms; anyExpiry is all of it.
type expiryRange struct{ low, high int64 }

var anyExpiry expiryRange

// releaseWords is the command that deletes a copy if it ends within the range.
func releaseWords(e *engine.Engine, key string, token engine.Token, ends expiryRange) []string {
	low, high := "", ""
	if ends != anyExpiry {
		low, high = strconv.FormatInt(ends.low, 10), strconv.FormatInt(ends.high, 10)
	}
	return []string{"EVALSHA", e.Scripts.Release, "1", key, string(token), low, high}
}
