// What does an attempt write on a master, and how does the answer read?
package redlock

import "redlockd/pool"

// form is one way to hold a key: exclusive, as a reader, with one of several
// permits, over several keys. An attempt is a ballot whatever it asks for; its
// form writes the question and reads the answer. Command and read are called
// for each master from its lane, the rest with the ballot decided.
type form interface {
	// command asks one master for a copy that lasts until end, ms of its clock.
	command(a *attempt, m *pool.Moment, c *pool.Command, end int64)
	// read puts one master's answer into the ballot's terms. It is called with
	// the attempt's lock held, in the order of the answers.
	read(a *attempt, answer pool.Answer) said
	// takeBack returns what this attempt made, or may have made, on one master.
	takeBack(a *attempt, lane int, c copyState)
	// after is what follows a ballot that was refused or split: another attempt
	// in this form, at once or after a pause, or what the caller is told.
	after(a *attempt, v verdict) (form, error)
}

// said is a master's answer in the terms of the ballot.
type said struct {
	took, refused, odd bool
	repeats            bool // some of it was this token's before
	copy               copyState
}

// formOf is how the request asks.
func formOf(r *LockRequest, token Token) form {
	if r.Fair {
		asks := *r
		asks.Fair = false
		if f := formOf(&asks, token); f != (plain{}) {
			return &fairly{form: f}
		}
		return &fairly{form: &named{}} // a script, which can look at the queue
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

// plain is an exclusive lock with a token of the attempt's own: a plain SET, so
// that this lock and those of every other Redlock client on the same masters
// exclude one another. Its expiry is absolute: a copy that arrives late is dead
// on arrival.
type plain struct{}

var _ form = plain{}

func (plain) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	c.Set("SET", a.key, string(a.token), "NX", "PXAT", m.Decimal(end))
}

func (plain) read(_ *attempt, answer pool.Answer) said { return readTaken(answer) }

func (plain) takeBack(a *attempt, lane int, c copyState) { a.undo(lane, c) }

func (f plain) after(a *attempt, v verdict) (form, error) { return sameAgain(f, a, v) }

// sameAgain is after for forms that ask the same question again after a split.
func sameAgain(f form, a *attempt, v verdict) (form, error) {
	switch {
	case v == split:
		return f, nil
	case a.oddMost():
		return nil, ErrWrongType
	}
	return nil, ErrHeld
}

// readTaken reads the answer of SET NX and of scripts that answer a number: 1
// this attempt made a copy, above 1 the token had one, 0 another's, −1 no lock.
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

// words are the numbers of an answer of several.
func words(r pool.Reply) (n []int64) {
	for _, item := range r.Items {
		n = append(n, item.Int)
	}
	return n
}
