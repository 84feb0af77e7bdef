// This file acquires exclusive locks, of one or several keys, with a token that no master can know.
//
// The daemon generated the token for this ballot, and the request has no place in the queue of
// FAIR. So a master only has to find out whether anything stands in the way. Usually nothing
// does, for all such requests of a flush: one script finds that out once, and then writes the
// copies. Like multi.lua it takes all keys of a request or none, see multi.go. It checks the
// queues as well, see queuecheck.go.
//
// Measured on an isolated Redis 7.0, µs of the master for acquire and release together, with the
// seals of their flushes, instead of a call of acquire.lua or multi.lua for each: FAIR 9.5
// instead of 10.6 with 4 of them, 4.6 instead of 7.4 with 16, 3.6 instead of 7.4 with 64; three
// keys at a time 13.7 instead of 18.2, 9.3 instead of 15.5 and 8.3 instead of 17.2. A plain SET
// NX for each of the three keys costs 8.4, 5.5 and 4.7. The names of the queues are not among
// KEYS: that would cost a tenth more, and this daemon would have to write them.
// With five masters and 32 requests at a time, engine and masters together, µs of a pair: FAIR 58
// instead of 93, three keys 101 instead of 190; a plain lock 47.

package lease

import (
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/scripts"
)

// freshMode takes the ballot's key and its further keys.
type freshMode struct{ multiMode }

var (
	_ ballotMode = (*freshMode)(nil)
	_ bulkMode   = (*freshMode)(nil)
)

func (f *freshMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	e, n := a.call.leases.engine, strconv.Itoa(1+len(a.rest))
	c.Set("EVALSHA", e.Scripts.Acquires, n, a.key)
	c.Args = append(append(c.Args, a.rest...), strconv.Itoa(len(e.KeyPrefix)), n, string(a.token), m.Decimal(end), "alone")
}

func (f *freshMode) bulkScript(_ *lockBallot, s *scripts.Set) string { return s.Acquires }

func (f *freshMode) addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64) {
	if len(c.Args) == 0 {
		c.Args = append(c.Args, strconv.Itoa(len(a.call.leases.engine.KeyPrefix)))
	}
	c.Keys = append(append(c.Keys, a.key), a.rest...)
	c.Args = append(c.Args, strconv.Itoa(1+len(a.rest)), string(a.token), m.Decimal(end))
}
