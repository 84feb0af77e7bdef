// This file acquires locks for a client that treats the quorum as one Redis, in the cases that a
// plain SET NX does not serve: the key may hold a value of the caller's already, which then is
// given another lease, longer or shorter, and each of several keys may have its own value.

package lease

import (
	"strconv"
	"strings"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// swapped is the answer of swap.lua where it did its work.
type swapped struct {
	before string       // for each key "1" if it existed before
	kept   []keptExpiry // copies that keep a later expiry
}

// readSwap reads an answer. code is 1, 0 or −1; ok is false for anything else.
func readSwap(answer pool.Answer, keys []string) (code int64, s swapped, ok bool) {
	r := answer.Reply
	switch {
	case r.Err != nil || !answer.Sent:
		return 0, s, false
	case r.Kind == pool.ReplyInt:
		return r.Int, s, r.Int == 0 || r.Int == -1
	case len(r.Items) != 3 || r.Items[0].Int != 1:
		return 0, s, false
	}
	s.before = r.Items[1].Str
	for _, one := range r.Items[2].Items {
		if at := one.Items; len(at) == 4 && at[0].Int >= 1 && at[0].Int <= int64(len(keys)) {
			s.kept = append(s.kept, keptExpiry{lane: answer.Lane, key: keys[at[0].Int-1], ends: at[1].Int, set: at[2].Int, value: at[3].Str})
		}
	}
	return 1, s, true
}

// Swap is the Mode of an acquire with values of the caller's choice.
type Swap struct {
	oneToken
	// Tokens of the keys, in their order, if each has its own; the first is the request's.
	Tokens  []engine.Token
	Retakes *Retake // it may find a value of the caller's; nil = that is another's, or Token
}

// Retake is of an acquire that also succeeds where the key has a value that belongs to the
// caller. That value is replaced by the request's Token.
type Retake struct {
	Held       engine.Token // the value; Token itself to prolong a lock or take it anew
	Bytes      int          // so many leading bytes are compared; 0 = the whole value
	EndlessToo bool         // also where it has no expiry
}

func (s *Swap) Kind() Kind                    { return Exclusive }
func (s *Swap) ballot(*lockBallot) ballotMode { return &swapMode{swap: s} }

func (s *Swap) tokenOf(i int, own engine.Token) engine.Token {
	if i < len(s.Tokens) {
		return s.Tokens[i]
	}
	return own
}

// swapMode is its part of one ballot.
type swapMode struct {
	sameAgain
	swap   *Swap
	before [quorum.MaxMasters]string // which of the keys existed
	kept   []keptExpiry              // the caller's copies that are to end earlier
}

var (
	_ ballotMode  = (*swapMode)(nil)
	_ grantedMode = (*swapMode)(nil)
)

func (f *swapMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	r, keys, ends := &a.call.request, a.keys(), ""
	if r.TTL < Endless {
		ends = m.Decimal(end)
	}
	may, bytes, endlessToo := "", "", false
	if t := f.swap.Retakes; t != nil {
		if may, endlessToo = string(t.Held), t.EndlessToo; t.Bytes > 0 {
			bytes = strconv.Itoa(t.Bytes)
		}
	}
	c.Set("EVALSHA", a.call.leases.engine.Scripts.Swap, strconv.Itoa(len(keys)))
	c.Args = append(append(c.Args, keys...), ends, engine.Flag(endlessToo), bytes, may)
	for i := range keys {
		c.Args = append(c.Args, string(a.tokenOf(i)))
	}
}

func (a *lockBallot) keys() []string { return append([]string{a.key}, a.rest...) }

func (f *swapMode) read(a *lockBallot, answer pool.Answer) vote {
	code, s, ok := readSwap(answer, a.keys())
	switch {
	case !answer.Sent:
		return vote{}
	case !ok:
		return vote{copy: copyMaybe}
	case code != 1:
		return vote{no: true, wrongType: code == -1}
	}
	f.before[answer.Lane] = s.before
	if !a.ballot.Over() {
		f.kept = append(f.kept, s.kept...)
	}
	if !strings.Contains(s.before, "0") {
		return vote{yes: true, copy: copyEarlier}
	}
	return vote{yes: true, hadCopy: strings.Contains(s.before, "1"), copy: copyMade}
}

// repeats: a client with such values repeats by itself.
func (f *swapMode) repeats(*lockBallot) bool { return false }

// takeBack spares what was there before.
func (f *swapMode) takeBack(a *lockBallot, lane int, c copyState) {
	if c != copyMade {
		return
	}
	end := a.ends[lane]
	ends := expiryRange{end - 1, end}
	if a.call.request.TTL >= Endless {
		ends = anyExpiry
	}
	for i, key := range a.keys() {
		if before := f.before[lane]; i >= len(before) || before[i] != '1' {
			a.undoWithin(lane, c, key, a.tokenOf(i), ends)
		}
	}
}

// granted notes that a grant has taken the place of another lease of the same caller.
func (f *swapMode) granted(a *lockBallot) {
	l, r := a.call.leases, &a.call.request
	if f.swap.Retakes == nil {
		return
	}
	l.shorten(a.call.group, f.kept, quorum.Deadline(a.start, r.TTL), a.ids()...)
	if t := f.swap.Retakes; t.Held != a.token && t.Bytes == 0 {
		takenAway(l, engine.LeaseID{DB: r.DB, Key: r.Key, Token: t.Held}, a.start)
	}
}
