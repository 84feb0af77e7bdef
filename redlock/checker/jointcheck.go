package checker

// The checks of keys that several tokens hold at a time, and of several keys that
// one request takes, both by search.

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// checkTogetherLinear searches an order for each key of a history whose acquires
// are shared, for one of several permits, or exclusive.
func checkTogetherLinear(h History, s searchBounds) error {
	return checkJointly(h, s, func(keys []*keyRecord) [][]*keyRecord { return slices.Collect(slices.Chunk(keys, 1)) })
}

// CheckSeveral checks a history in which one request takes several keys, all of
// them or none; each key of it is an acquire of its own. Beside the rules of Check
// for every key, it searches an order in which the keys of a grant are taken at
// one instant.
func CheckSeveral(h History) error {
	return errors.Join(Check(h), checkJointly(h, searchBounds{}, keyGroups))
}

// checkJointly searches an order for each group of keys.
func checkJointly(h History, s searchBounds, group func([]*keyRecord) [][]*keyRecord) error {
	keys, err := newIndex(h)
	if err != nil {
		return err
	}
	s = s.complete()
	f := &findings{rule: ruleLinear}
	for _, some := range group(keys) {
		var all []*jointOp
		var records []*tokenRecord
		var names []string
		for _, k := range some {
			for _, t := range k.tokens {
				all = append(all, t.joints(k.key)...)
			}
			records = append(records, k.tokens...)
			names = append(names, k.key)
		}
		f.key = strings.Join(names, " ")
		checkJoint(joinRequests(all), records, s, f)
	}
	return f.err()
}

// grantID identifies the grants of one request: they are of one client and token, and
// their calls overlap.
type grantID struct {
	client int
	token  string
}

// joinRequests makes one operation of the grants of one request.
func joinRequests(all []*jointOp) (out []*jointOp) {
	open := map[grantID]*jointOp{}
	slices.SortStableFunc(all, func(a, b *jointOp) int { return cmp.Compare(a.call, b.call) })
	for _, op := range all {
		id := grantID{op.event.Client, op.token}
		whole := open[id]
		if op.step != take {
			out = append(out, op)
			continue
		}
		if whole == nil || whole.done < op.call || slices.Contains(whole.keys, op.keys[0]) {
			open[id] = op
			out = append(out, op)
			continue
		}
		whole.keys, whole.until = append(whole.keys, op.keys[0]), append(whole.until, op.until[0])
		whole.done = max(whole.done, op.done)
	}
	return out
}

// keyGroups are the keys that some token has had together.
func keyGroups(keys []*keyRecord) (out [][]*keyRecord) {
	leader := make([]int, len(keys)) // of each key's group
	first := map[string]int{}        // key that a token was seen at
	find := func(i int) int {
		for leader[i] != i {
			i = leader[i]
		}
		return i
	}
	for i, k := range keys {
		leader[i] = i
		for _, t := range k.tokens {
			if other, known := first[t.token]; known {
				leader[find(i)] = find(other)
			} else {
				first[t.token] = i
			}
		}
	}
	of := map[int]int{} // index of a leader's group
	for i, k := range keys {
		at, known := of[find(i)]
		if !known {
			at = len(out)
			of[find(i)] = at
			out = append(out, nil)
		}
		out[at] = append(out[at], k)
	}
	return out
}
