// This file makes leases end earlier than before.
//
// A client of one Redis may set any expiry, and a message may be late. When it reaches a
// slow master, the other masters may have answered its client, and the client may have
// prolonged the same lease through another daemon, with that master's vote. Also, when an
// extension fails, a minority must not have shortened copies on which the old validity
// depends.
//
// So in the first round no copy ends earlier: a copy that would be shortened keeps
// its expiry, moved a little (retime.lua, swap.lua). Once a quorum has said yes, the
// masters that reported such a copy before the decision shorten it to the requested
// expiry, if it still ends exactly then. Every command that gives an exclusive copy
// another lease moves its expiry, if only by 1 ms (acquire.lua, multi.lua, extend.lua,
// multiextend.lua, retime.lua, swap.lua). A late shortening then finds another expiry and does nothing. A copy
// that a master reported after the decision may already be a later lease; it stays.

package lease

import (
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// keptExpiry is a copy that is to end earlier and has kept its expiry.
type keptExpiry struct {
	lane      int
	key       string
	ends, set int64  // ms of the master's clock: its expiry, and the requested one
	value     string // SHA-1, hex
}

// shorten makes copies of these leases end at until, to which a quorum has agreed.
func (l *Leases) shorten(g *pool.Group, kept []keptExpiry, until time.Duration, ids ...engine.LeaseID) {
	for _, id := range ids { // a client that sets an end is promised no more
		if known, ok := l.records.find(id); ok && known.until > until {
			l.records.update(id, func(known *leaseRecord) { known.until = min(known.until, until) })
			l.report(shortened, id, known.fence, until-l.engine.Clock.Now()+l.engine.MasterTimeout+l.engine.Late)
		}
	}
	for _, k := range kept {
		engine.RetryUntilAnswered(g, k.lane, k.key, pool.PendingRelease{
			Args: []string{"EVALSHA", l.engine.Scripts.Trim, "1", k.key,
				strconv.FormatInt(k.ends, 10), strconv.FormatInt(k.set, 10), k.value},
			Until: until + 4*l.engine.MasterTimeout,
		})
	}
	for _, id := range ids { // last: a renewal follows it on every master
		l.changes.Shortened(id, until)
	}
}
