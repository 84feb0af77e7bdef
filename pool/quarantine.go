// Quarantine: a master whose memory is too new to vote, or has to begin anew.

package pool

import (
	"time"

	"redlockd/pool/clock"
)

// quarantineLocked is how long a quarantined master still has to wait, 0 if it is not.
func (l *lane) quarantineLocked() time.Duration {
	age := clock.Micros(l.group.pool.options.Age())
	left := l.conn.incarnation.Base + age - l.est.At(l.group.now())
	return max(0, time.Duration(left)*time.Microsecond)
}
