package checker

// The model of one perfect lock that several tokens may hold at a time. The search
// (porcupine) finds an order of events in which it gives all the answers that were
// seen. It is a second check of readers and writers, of permits, and of several keys
// that are taken together.
//
// The state is the tokens that hold each key, how they hold it, the deadlines in their
// replies, and the earliest possible time. Each call takes effect at one instant
// between its call and its return, not before that of the call placed before it:
//
//	take     a successful acquire: on every key the tokens that cannot be together
//	         with this one have gone. One that has not goes now, if its deadline is over
//	prolong  a successful extend: the key is held by this token
//	give     a release with any answer: the token does not hold the key
//	perhaps  an acquire of unknown outcome: take, or nothing
//
// A deadline that is over frees nothing by itself: masters may keep a lock for
// longer, and then its token may still prolong it. So no token lapses before
// another one needs the key, and the search spares the instants of lapses.

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// accessMode is how a token holds a key.
type accessMode int

const (
	exclusiveAccess accessMode = iota
	sharedAccess
	permitAccess
)

// jointOp is one operation of the model.
type jointOp struct {
	step   modelStep
	keys   []string
	token  string
	access accessMode
	limit  int             // of permits
	until  []time.Duration // the deadline in the reply, for each key
	call   time.Duration
	done   time.Duration // the instant at which it has taken effect at the latest
	event  *CallRecord
}

// jointHolder is one token that holds one key.
type jointHolder struct {
	key, token string
	access     accessMode
	until      time.Duration
}

// jointState is the state: the holders, sorted, and the earliest possible time.
type jointState struct {
	holders []jointHolder
	now     time.Duration
}

func (c jointState) equal(o jointState) bool {
	return c.now == o.now && slices.Equal(c.holders, o.holders)
}

// without the token on the key.
func (c jointState) without(key, token string) jointState {
	places := slices.DeleteFunc(slices.Clone(c.holders), func(p jointHolder) bool { return p.key == key && p.token == token })
	return jointState{places, c.now}
}

func (c jointState) find(key, token string) int {
	return slices.IndexFunc(c.holders, func(p jointHolder) bool { return p.key == key && p.token == token })
}

// with a holder. If the token is one already, it is prolonged.
func (c jointState) with(p jointHolder) jointState {
	if i := c.find(p.key, p.token); i >= 0 {
		p.until = max(p.until, c.holders[i].until)
	}
	next := c.without(p.key, p.token)
	at, _ := slices.BinarySearchFunc(next.holders, p, func(a, b jointHolder) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.token, b.token))
	})
	next.holders = slices.Insert(next.holders, at, p)
	return next
}

// next returns the states that the operation can lead to; none if the lock
// cannot have given this answer in that state.
func (in *jointOp) next(s jointState) []jointState {
	s.now = max(s.now, in.call)
	if s.now > in.done {
		return nil
	}
	switch in.step {
	case give:
		return []jointState{s.without(in.keys[0], in.token)}
	case prolong:
		i := s.find(in.keys[0], in.token)
		if i < 0 {
			return nil
		}
		held := s.holders[i]
		held.until = max(held.until, in.until[0])
		return []jointState{s.with(held)}
	case perhaps:
		return append(in.take(s), s)
	}
	return in.take(s)
}

// take all keys at once.
func (in *jointOp) take(s jointState) []jointState {
	states := []jointState{s}
	for i := range in.keys {
		var next []jointState
		for _, before := range states {
			for _, after := range in.withRoomFor(before, in.keys[i]) {
				next = append(next, after.with(jointHolder{in.keys[i], in.token, in.access, in.until[i]}))
			}
		}
		states = next
	}
	return states
}

// withRoomFor returns the states in which the key is free for the operation's token. The
// tokens that cannot be together with it leave, and of too many permits any one whose
// deadline is over.
func (in *jointOp) withRoomFor(s jointState, key string) []jointState {
	others := 0
	for _, p := range slices.Clone(s.holders) {
		switch {
		case p.key != key:
		case p.token == in.token && (p.access == permitAccess) == (in.access == permitAccess): // it may have another mode from now on
		case p.access == in.access && p.access != exclusiveAccess:
			others++
		case p.until > in.done:
			return nil
		default:
			s = s.without(key, p.token)
			s.now = max(s.now, p.until)
		}
	}
	if in.access != permitAccess || others < in.limit {
		return []jointState{s}
	}
	var ways []jointState
	for _, p := range s.holders {
		if p.key == key && p.token != in.token && p.until <= in.done {
			way := s.without(key, p.token)
			way.now = max(s.now, p.until)
			ways = append(ways, way)
		}
	}
	return ways
}

func (in *jointOp) record() *CallRecord { return in.event }

// jointModel is the perfect lock.
func jointModel() porcupine.Model {
	return modelOf[*jointOp](jointState{}, func(a, b any) bool { return a.(jointState).equal(b.(jointState)) })
}
