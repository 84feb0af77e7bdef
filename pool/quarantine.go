// Quarantine: a master whose memory is too new to vote, or has to begin anew.

package pool

import (
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
)

// quarantineEvicting ends the incarnations of an unfit server that may evict keys: the
// keys that the policy removed do not return when the policy changes. If it cannot end
// them, the next dial tries again, and the admission compares the count.
func (l *lane) quarantineEvicting(link Link, f admission.ServerInfo, cause error) error {
	if f.Policy == "" || f.Policy == "noeviction" {
		return cause
	}
	all, _ := admission.EndIncarnations(link, l.group.sealKey)
	for _, e := range all {
		l.group.pool.options.Logger.Warn("incarnation invalidated", "master", l.master.Name, "db", e.DB, "err", cause.Error())
	}
	return cause
}

// quarantineLocked is how long a quarantined master still has to wait, 0 if it is not.
func (l *lane) quarantineLocked() time.Duration {
	age := clock.Micros(l.group.pool.options.Age())
	left := l.conn.incarnation.Base + age - l.est.At(l.group.now())
	return max(0, time.Duration(left)*time.Microsecond)
}
