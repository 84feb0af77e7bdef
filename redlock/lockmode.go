// lockMode: what a ballot writes on a master, and how it reads the answer.

package redlock

import "redlockd/pool"

// lockMode is one way to hold a key: exclusive, as a reader, with one of several permits, over
// several keys. The ballot is the same for all of them; its mode writes the command and reads
// the answer. command and read are called for each master from its lane, the other methods
// after the ballot is decided.
type form interface {
	// command requests a copy from one master that lasts until end, ms of the master's clock.
	command(a *attempt, m *pool.Moment, c *pool.Command, end int64)
	// read turns one master's answer into a vote. It is called with the ballot's lock held, in
	// the order of the answers.
	read(a *attempt, answer pool.Answer) said
	// takeBack returns what this ballot made, or may have made, on one master.
	takeBack(a *attempt, lane int, c copyState)
	// after decides what follows a ballot that was refused or split: another ballot in the
	// returned mode, at once or after a pause, or the error for the caller.
	after(a *attempt, v verdict) (form, error)
}

// vote is a master's answer in the terms of the ballot.
type said struct {
	took, refused, odd bool
	repeats            bool // some of it was this token's before
	copy               copyState
}

// lockModeOf is the mode of a request.
func formOf(r *LockRequest, token Token) form {
	if r.Fair {
		inner := *r
		inner.Fair = false
		if f := formOf(&inner, token); f != (plain{}) {
			return &fairly{form: f}
		}
		return &fairly{form: &named{}} // a script, which can check the queue
	}
	switch {
	case r.Script != nil:
		return &scripted{script: r.Script}
	case r.Valued:
		return valued{}
	case len(r.More) > 0:
		return &multi{reads: r.Mode == Shared}
	case r.Mode == Shared:
		return &reader{ends: new([maxMasters]int64)}
	case r.Mode == Permits:
		return &permits{limit: r.Limit, slot: firstSlot(token, r.Limit), named: r.Token != ""}
	case r.Token != "":
		return &named{}
	}
	return plain{}
}

// plainMode is an exclusive lock with a token of the ballot's own. It is a plain SET, so that
// this lock and those of every other Redlock client on the same masters exclude one another.
// Its expiry is absolute: a copy that arrives late has already expired.
type plain struct{}

var _ form = plain{}

func (plain) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	c.Set("SET", a.key, string(a.token), "NX", "PXAT", m.Decimal(end))
}

func (plain) read(_ *attempt, answer pool.Answer) said { return readTaken(answer) }

func (plain) takeBack(a *attempt, lane int, c copyState) { a.undo(lane, c) }

func (f plain) after(a *attempt, v verdict) (form, error) { return sameAgain(f, a, v) }

// retrySplit is after for modes that send the same request again after a split.
func sameAgain(f form, a *attempt, v verdict) (form, error) {
	switch {
	case v == split:
		return f, nil
	case a.oddMost():
		return nil, ErrWrongType
	}
	return nil, ErrHeld
}

// readVote reads the answer of SET NX and of scripts that answer a number: 1 = this ballot made
// a copy, above 1 = the token had one, 0 = another token has one, −1 = it is not a lock.
func readTaken(answer pool.Answer) said {
	r := answer.Reply
	switch {
	case r.Err != nil && answer.Asked:
		return said{copy: copyMaybe}
	case !answer.Asked:
		return said{}
	case r.Kind == pool.ReplyString, r.Kind == pool.ReplyInt && r.Int == 1:
		return said{took: true, copy: copyMade}
	case r.Kind == pool.ReplyInt && r.Int > 1:
		return said{took: true, copy: copyEarlier}
	case r.Kind == pool.ReplyInt && r.Int == -1:
		return said{refused: true, odd: true}
	}
	return said{refused: true}
}

// replyNumbers are the numbers of an array answer.
func words(r pool.Reply) (n []int64) {
	for _, item := range r.Items {
		n = append(n, item.Int)
	}
	return n
}
