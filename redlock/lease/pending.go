// Releases that are repeated until a master answers.

package lease

import (
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// pendingRelease releases whatever the token may have held when the release was
// requested.
func (l *Leases) pendingRelease(key string, token engine.Token, requested time.Duration) pool.PendingRelease {
	return l.pendingReleaseUpTo(key, token, requested, l.engine.MaxTTL+l.engine.MasterTimeout+time.Second, 0)
}

// pendingReleaseUpTo spares copies that end later than upTo after the release was
// requested, and later than wrote, ms of the master's clock.
func (l *Leases) pendingReleaseUpTo(key string, token engine.Token, requested, upTo time.Duration, wrote int64) pool.PendingRelease {
	return pool.PendingRelease{
		ArgsAt: func(then int64) []string {
			return l.releaseWords(key, token, 0, max(then/1000+upTo.Milliseconds(), wrote))
		},
		Since: requested,
		Until: requested + l.engine.MaxTTL + 4*l.engine.MasterTimeout,
	}
}

func (l *Leases) pendingReleaseWithin(key string, token engine.Token, lo, hi int64, until time.Duration) pool.PendingRelease {
	return pool.PendingRelease{Args: l.releaseWords(key, token, lo, hi), Until: until}
}

// releaseWords is the command that deletes a copy if it ends within [lo, hi].
func (l *Leases) releaseWords(key string, token engine.Token, lo, hi int64) []string {
	return []string{"EVALSHA", l.engine.Scripts.Release, "1", key, string(token), strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10)}
}
