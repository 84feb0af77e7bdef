package judge

// Is there any order of events in which one perfect lock, that several may hold
// at a time, gives all the answers that were seen? A second opinion, by search
// (porcupine), on readers and writers, on permits, and on several keys that are
// taken together.
//
// The state is who holds which key, as what, and up to which deadline he was
// told, and how late it is at least. Each call takes effect at one instant
// between its call and its return, not before that of the call placed before it:
//
//	take     a successful acquire: of every key those who cannot be together with
//	         the token have gone. Who has not, goes now, if his deadline is over
//	prolong  a successful extend: the key is held by this token
//	give     a release, whatever it answered: the token does not hold the key
//	perhaps  an acquire of unknown outcome: take, or nothing
//
// A deadline that is over frees nothing by itself: masters may keep a lock for
// longer, and then its token may still prolong it. So nobody lapses before
// somebody else needs the place, and the search spares the instants of lapses.

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// part is how a token holds a key.
type part int

const (
	solely part = iota
	reads
	permitted
)

// joint is one operation of the model.
type joint struct {
	step  step
	keys  []string
	token string
	as    part
	limit int             // of permits
	until []time.Duration // the deadline told, for each key
	call  time.Duration
	done  time.Duration // the instant at which it has taken effect at the latest
	event *Event
}

// place is one token's on one key.
type place struct {
	key, token string
	as         part
	until      time.Duration
}

// company is the state: the places, sorted, and the instant it is not before.
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

// with a place, which prolongs the one that the token has.
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
			for _, room := range in.room(before, in.keys[i]) {
				next = append(next, room.with(place{in.keys[i], in.token, in.as, in.until[i]}))
			}
		}
		states = next
	}
	return states
}

// room are the ways to make room on a key: those leave who cannot be together
// with the token, and of too many permits any one whose deadline is over.
func (in *joint) room(s company, key string) []company {
	others := 0
	for _, p := range slices.Clone(s.places) {
		switch {
		case p.key != key:
		case p.token == in.token && (p.as == permitted) == (in.as == permitted): // it may be another part from now on
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
