// What does an attempt write on a master, and how does the answer read?
package redlock

import "redlockd/pool"

// form is one way to hold a key: exclusive, as a reader, with one of several
// permits, over several keys. An attempt is a ballot whatever it asks for; its
// form writes the question and reads the answer. Command and read are called
// for each master from its lane, the rest with the ballot decided.
type form interface {
	// rest are the keys beside the attempt's first; no two operations that take
	// one of them share a flush.
	rest() []string
	// command asks one master for a copy that lasts until end, ms of its clock.
	command(a *attempt, m *pool.Moment, c *pool.Command, end int64)
	// read puts one master's answer into the ballot's terms. It is called with
	// the attempt's lock held, in the order of the answers.
	read(a *attempt, answer pool.Answer) said
	// takeBack returns what this attempt made, or may have made, on one master.
	takeBack(a *attempt, lane int, c copyState)
}

// said is a master's answer in the terms of the ballot.
type said struct {
	took, refused, odd bool
	copy               copyState
}

// formOf is how the request asks.
func formOf(r *LockRequest) form {
	if r.Token == "" {
		return plain{}
	}
	return named{}
}

// plain is an exclusive lock with a token of the attempt's own: a plain SET, so
// that this lock and those of every other Redlock client on the same masters
// exclude one another. Its expiry is absolute: a copy that arrives late is dead
// on arrival.
type plain struct{}

func (plain) rest() []string { return nil }

func (plain) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	c.Set("SET", a.key, string(a.token), "NX", "PXAT", m.Decimal(end))
}

func (plain) read(_ *attempt, answer pool.Answer) said { return readTaken(answer) }

func (plain) takeBack(a *attempt, lane int, c copyState) { a.undo(lane, c) }

// named is an exclusive lock with the caller's token, which may hold it already.
type named struct{}

func (named) rest() []string { return nil }

func (named) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	c.Set("EVALSHA", a.call.locker.script.acquire, "1", a.key, string(a.token), m.Decimal(end))
}

func (named) read(_ *attempt, answer pool.Answer) said { return readTaken(answer) }

func (named) takeBack(a *attempt, lane int, c copyState) { a.undo(lane, c) }

// readTaken reads the answer of SET NX and of acquire.lua.
func readTaken(answer pool.Answer) said {
	r := answer.Reply
	switch {
	case r.Err != nil && answer.Asked:
		return said{copy: copyMaybe}
	case !answer.Asked:
		return said{}
	case r.Kind == pool.ReplyString, r.Kind == pool.ReplyInt && r.Int == 1:
		return said{took: true, copy: copyMade}
	case r.Kind == pool.ReplyInt && r.Int == 2:
		return said{took: true, copy: copyEarlier}
	case r.Kind == pool.ReplyInt && r.Int == -1:
		return said{refused: true, odd: true}
	}
	return said{refused: true}
}
