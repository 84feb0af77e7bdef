// Readers together, or one writer.
//
// Readers are members of a zset at the key, each with an end of its own. A
// writer finds the key taken, whoever it is; a reader finds it taken by a writer.
// A quorum of readers' copies and a quorum of writers' copies share a master, and
// there one of the two was refused.
package redlock

import "redlockd/pool"

// reader shares the key with other readers. With the token of the writer it
// turns the writer into a reader: that is never undone, and from the moment it
// was asked for the lock is at most a reader's.
type reader struct{}

var _ form = reader{}

func (reader) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	c.Set("EVALSHA", a.call.locker.script.share, "1", a.key, string(a.token), m.Decimal(end))
}

func (reader) read(_ *attempt, answer pool.Answer) said { return readTaken(answer) }

func (reader) takeBack(a *attempt, lane int, c copyState) { a.undo(lane, c) }

func (f reader) after(a *attempt, v verdict) (form, error) { return sameAgain(f, a, v) }
