package lease

import "testing"

// Two observations need a quorum of masters in common that show the same: less does not exclude that a
// quorum has prolonged the lock meanwhile.
func TestObservation_SameNeedsAQuorumThatIsTheSame(t *testing.T) {
	const mine, end = "mine", 1000
	view := View{Kind: "string", Value: mine}
	have, none, missing := observedCopy{known: true, value: mine, ends: end}, observedCopy{known: true, absent: true}, observedCopy{}
	moved, other := have, have
	moved.ends, other.value = end+8, "other"
	of := func(v View, copies ...observedCopy) *Observation {
		o := &Observation{View: v, quorum: 3}
		copy(o.copies[:], copies)
		return o
	}
	for _, c := range []struct {
		what          string
		before, after *Observation
		same          bool
	}{
		{"unchanged", of(view, have, have, have, none, none), of(view, have, have, have, none, none), true},
		{"a copy arrived late", of(view, have, have, have, none, none), of(view, have, have, have, have, none), true},
		{"prolonged on a quorum", of(view, have, have, have, have, have), of(view, moved, moved, moved, have, have), false},
		{"different masters answered", of(view, have, have, have, missing, missing), of(view, missing, have, have, have, missing), false},
		{"prolonged where it was not seen before", of(view, have, have, have, missing, missing), of(view, have, have, moved, moved, moved), false},
		{"missing masters are not alike", of(view, have, have, have, missing, missing), of(view, have, have, missing, missing, missing), false},
		{"another holder", of(view, have, have, have, none, none), of(View{Kind: "string", Value: "other"}, other, other, other, none, none), false},
		{"free both times", of(View{Kind: "none"}, none, none, none, none, none), of(View{Kind: "none"}, none, none, none, none, none), true},
		{"taken", of(View{Kind: "none"}, none, none, none, none, none), of(view, have, have, have, none, none), false},
	} {
		if got := c.after.Same(c.before); got != c.same {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
