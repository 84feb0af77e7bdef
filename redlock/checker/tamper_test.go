package checker

import (
	"slices"
	"testing"
)

// A mutation turns a legal history into one that is certainly illegal, if it
// finds the place for it.
type mutation struct {
	name   string
	rule   string
	mutate func(History) (History, bool)
}

// alone reports that the token has exactly one acquire that may have taken
// effect, and returns the other events of the token on that key.
func alone(h History, grant *CallRecord) (others []*CallRecord, ok bool) {
	for i := range h {
		e := &h[i]
		switch {
		case e == grant || e.Key != grant.Key || e.Token != grant.Token:
		case e.Op == Acquire && e.Outcome != No:
			return nil, false
		default:
			others = append(others, e)
		}
	}
	return others, true
}

// grants calls visit with each pair of grants of one key, a before b, until it
// returns true.
func grants(h History, visit func(a, b *CallRecord) bool) bool {
	for i := range h {
		for j := range h {
			a, b := &h[i], &h[j]
			if a.Op == Acquire && b.Op == Acquire && a.Outcome == OK && b.Outcome == OK && a.Key == b.Key &&
				a.Token != b.Token && a.Complete < b.Invoke && visit(a, b) {
				return true
			}
		}
	}
	return false
}

func without(h History, gone func(*CallRecord) bool) History {
	return slices.DeleteFunc(slices.Clone(h), func(e CallRecord) bool { return gone(&e) })
}

func mutations() []mutation {
	return slices.Concat(overlapMutations(), fenceMutations(), answerMutations())
}

func overlapMutations() []mutation {
	return []mutation{
		{"a validity is lengthened into the next lease", ruleExclusion, func(h History) (History, bool) {
			return h, grants(h, func(a, b *CallRecord) bool {
				others, ok := alone(h, a)
				next, lasts := alone(h, b)
				if !ok || !lasts || len(others) > 0 || len(next) > 0 || b.Validity <= ms(1) {
					return false
				}
				a.Validity = b.Complete - a.Complete + ms(1)
				return true
			})
		}},
		{"a release is forgotten", ruleExclusion, func(h History) (out History, ok bool) {
			ok = grants(h, func(a, b *CallRecord) bool {
				if _, once := alone(h, a); !once || a.deadline() <= b.Complete+ms(1) || b.Validity <= 0 {
					return false
				}
				if next, once := alone(h, b); !once || len(next) > 0 {
					return false
				}
				out = without(h, func(e *CallRecord) bool { return e.Op == Release && e.Token == a.Token })
				return true
			})
			return out, ok
		}},
		{"a stranger is granted in the middle of a lease", ruleExclusion, func(h History) (History, bool) {
			for i := range h {
				e := &h[i]
				if others, once := alone(h, e); e.Op == Acquire && e.Outcome == OK && once && len(others) == 0 && e.Validity > ms(5) {
					return append(h, CallRecord{Op: Acquire, Key: e.Key, Token: "stranger", Outcome: OK, Validity: ms(1),
						Invoke: e.Complete + ms(1), Complete: e.Complete + ms(2)}), true
				}
			}
			return h, false
		}},
	}
}

func fenceMutations() []mutation {
	return []mutation{
		{"a fence is duplicated", ruleFence, func(h History) (History, bool) {
			return h, grants(h, func(a, b *CallRecord) bool {
				if a.Fence == 0 || b.Fence == 0 {
					return false
				}
				b.Fence = a.Fence
				return true
			})
		}},
		{"two fences are swapped", ruleFence, func(h History) (History, bool) {
			return h, grants(h, func(a, b *CallRecord) bool {
				if a.Fence == 0 || b.Fence == 0 {
					return false
				}
				a.Fence, b.Fence = b.Fence, a.Fence
				return true
			})
		}},
	}
}

func answerMutations() []mutation {
	return []mutation{
		{"two grants swap their owners before an extend", ruleContinuity, swapOwners(Extend)},
		{"two grants swap their owners before a release", ruleRelease, swapOwners(Release)},
		{"a true release is answered 0", ruleRelease, func(h History) (History, bool) {
			for i := range h {
				e := &h[i]
				others, once := alone(h, e)
				if e.Op == Acquire && e.Outcome == OK && once && len(others) == 1 && others[0].Released &&
					others[0].Invoke > e.Complete && others[0].Complete < e.deadline() {
					others[0].Released = false
					return h, true
				}
			}
			return h, false
		}},
		{"a vain release is answered 1", ruleRelease, func(h History) (History, bool) {
			return h, grants(h, func(a, b *CallRecord) bool {
				others, once := alone(h, a)
				i := slices.IndexFunc(others, func(e *CallRecord) bool {
					return e.Op == Release && e.Outcome == OK && !e.Released && e.Invoke > b.Complete
				})
				if !once || i < 0 {
					return false
				}
				others[i].Released = true
				return true
			})
		}},
		{"a refused extend is granted", ruleContinuity, func(h History) (History, bool) {
			return h, grants(h, func(a, b *CallRecord) bool {
				others, once := alone(h, a)
				i := slices.IndexFunc(others, func(e *CallRecord) bool {
					return e.Op == Extend && e.Outcome == No && e.Invoke > b.Complete
				})
				if !once || i < 0 {
					return false
				}
				others[i].Outcome, others[i].Validity = OK, ms(1)
				return true
			})
		}},
	}
}

// swapOwners exchanges the tokens of two grants, the first of which was used
// before the second was requested.
func swapOwners(use OpKind) func(History) (History, bool) {
	return func(h History) (History, bool) {
		return h, grants(h, func(a, b *CallRecord) bool {
			others, once := alone(h, a)
			_, onceToo := alone(h, b)
			used := slices.ContainsFunc(others, func(e *CallRecord) bool {
				return e.Op == use && e.Outcome == OK && (use == Extend || e.Released) && e.Complete < b.Invoke
			})
			if !once || !onceToo || !used {
				return false
			}
			a.Token, b.Token = b.Token, a.Token
			return true
		})
	}
}

func TestCheck_RejectsLegalHistoriesThatWereTamperedWith(t *testing.T) {
	histories := uint64(120)
	if testing.Short() {
		histories /= 2
	}
	for _, m := range mutations() {
		found := uint64(0)
		for seed := range histories {
			h, ok := m.mutate(legalHistory(seed, 4, 150))
			if !ok {
				continue
			}
			found++
			rules := rulesBroken(Check(h))
			if !slices.Contains(rules, m.rule) {
				t.Errorf("%s, seed %d: broke %q, want %q among them", m.name, seed, rules, m.rule)
			}
			if (m.rule == ruleExclusion || m.rule == ruleContinuity) && !slices.Contains(rules, ruleLinear) {
				t.Errorf("%s, seed %d: the search found an order, the intervals did not", m.name, seed)
			}
		}
		if least := histories / 8; found < least {
			t.Errorf("%s: only %d of %d histories had a place for it, want at least %d", m.name, found, histories, least)
		}
	}
}
