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
type part int

const (
	solely part = iota
	reads
	permitted
)

// jointOp is one operation of the model.
type joint struct {
	step  step
	keys  []string
	token string
	as    part
	limit int             // of permits
	until []time.Duration // the deadline in the reply, for each key
	call  time.Duration
	done  time.Duration // the instant at which it has taken effect at the latest
	event *Event
}

// jointHolder is one token that holds one key.
type place struct {
	key, token string
	as         part
	until      time.Duration
}

// jointState is the state: the holders, sorted, and the earliest possible time.
type company struct {
	places []place
	now    time.Duration
}

func (c company) equal(o company) bool { return c.now == o.now && slices.Equal(c.places, o.places) }

// without the token on the key.
func (c company) without(key, token string) company {
	places := slices.DeleteFunc(slices.Clone(c.places), func(p place) bool { return p.key == key && p.token == token })
	return company{places, c.now}
}

func (c company) find(key, token string) int {
	return slices.IndexFunc(c.places, func(p place) bool { return p.key == key && p.token == token })
}

// with a holder. If the token is one already, it is prolonged.
func (c company) with(p place) company {
	if i := c.find(p.key, p.token); i >= 0 {
		p.until = max(p.until, c.places[i].until)
	}
	next := c.without(p.key, p.token)
	at, _ := slices.BinarySearchFunc(next.places, p, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.token, b.token))
	})
	next.places = slices.Insert(next.places, at, p)
	return next
}

// next returns the states that the operation can lead to; none if the lock
// cannot have given this answer in that state.
func (in *joint) next(s company) []company {
	s.now = max(s.now, in.call)
	if s.now > in.done {
		return nil
	}
	switch in.step {
	case give:
		return []company{s.without(in.keys[0], in.token)}
	case prolong:
		i := s.find(in.keys[0], in.token)
		if i < 0 {
			return nil
		}
		held := s.places[i]
		held.until = max(held.until, in.until[0])
		return []company{s.with(held)}
	case perhaps:
		return append(in.take(s), s)
	}
	return in.take(s)
}

// take all keys at once.
func (in *joint) take(s company) []company {
	states := []company{s}
	for i := range in.keys {
		var next []company
		for _, before := range states {
			for _, after := range in.room(before, in.keys[i]) {
				next = append(next, after.with(place{in.keys[i], in.token, in.as, in.until[i]}))
			}
		}
		states = next
	}
	return states
}

// withRoomFor returns the states in which the key is free for the operation's token. The
// tokens that cannot be together with it leave, and of too many permits any one whose
// deadline is over.
func (in *joint) room(s company, key string) []company {
	others := 0
	for _, p := range slices.Clone(s.places) {
		switch {
		case p.key != key:
		case p.token == in.token && (p.as == permitted) == (in.as == permitted): // it may have another mode from now on
		case p.as == in.as && p.as != solely:
			others++
		case p.until > in.done:
			return nil
		default:
			s = s.without(key, p.token)
			s.now = max(s.now, p.until)
		}
	}
	if in.as != permitted || others < in.limit {
		return []company{s}
	}
	var ways []company
	for _, p := range s.places {
		if p.key == key && p.token != in.token && p.until <= in.done {
			way := s.without(key, p.token)
			way.now = max(s.now, p.until)
			ways = append(ways, way)
		}
	}
	return ways
}

// jointModel is the perfect lock.
func jointModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{company{}} },
		Step: func(state, in, _ any) []any {
			var out []any
			for _, s := range in.(*joint).next(state.(company)) {
				out = append(out, s)
			}
			return out
		},
		Equal: func(a, b any) bool { return a.(company).equal(b.(company)) },
	}
	return model.ToModel()
}
