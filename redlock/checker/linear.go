package checker

// The search for an order of events in which one perfect lock gives all the answers
// that were seen. It is a second check of exclusion, by search (porcupine) instead
// of by intervals, so that an error in either reasoning shows as a disagreement.
//
// The lock's state is its holder and the deadline in its holder's reply. Each
// call takes effect at one instant between its call and its return:
//
//	take     a successful acquire: the key is free, or held by the same token
//	prolong  a successful extend: the key is held by this token
//	give     a release with any answer: if this token holds the key, the
//	         key is free. Without an answer its return is open, so that it may
//	         just as well take effect when that no longer matters
//	lapse    no client calls this. One follows each grant: called at its
//	         deadline, at the earliest, the key becomes free unless the token
//	         was prolonged. Its return is open: masters may keep a lock for longer
//	perhaps  an acquire of unknown outcome: take, or nothing. The model carries
//	         both states on, which spares the search trying every instant for it
//
// Refusals are no calls: a lock may refuse at any time. The truth of a release's
// answer is no concern of this model either (releases that overlap may each
// delete a part); the rule of releases checks it.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// searchBounds bound the search for an order. Zero values mean the defaults.
type searchBounds struct {
	// window is how many operations are searched at once, at most: the search
	// takes memory with the square of it.
	window int
	// timeout bounds the search of one window. What is not decided by then is
	// reported as *Undecided.
	timeout time.Duration
}

// complete puts the defaults in.
func (s searchBounds) complete() searchBounds {
	return searchBounds{cmp.Or(s.window, 10_000), cmp.Or(s.timeout, 10*time.Second)}
}

// checkLinear searches an order for each key.
func checkLinear(keys []*keyRecord, s searchBounds) error {
	s = s.complete()
	f := &findings{rule: ruleLinear}
	for _, k := range keys {
		f.key = k.key
		for _, w := range k.windows(s.window) {
			s.search(lockModel(w.start), w.operations, "pending call", f)
		}
	}
	return f.err()
}

// modelStep is what an operation does to the lock.
type modelStep int

const (
	take modelStep = iota
	prolong
	give
	lapse
	perhaps
)

// input is one operation of the model. event is the call it stands for.
type input struct {
	step    modelStep
	token   string
	until   time.Duration // the deadline in the reply, for take, prolong and lapse
	event   *CallRecord
	promise *promise // what a take or prolong promised
}

// lockState is the state of the lock; the zero value is a free lock.
type lockState struct {
	token string
	until time.Duration
}

// next returns the states that the operation can lead to; none if the lock
// cannot have given this answer in that state.
func (in *input) next(s lockState) []lockState {
	own, free := s.token == in.token, s.token == ""
	switch {
	case in.step == take && (free || own), in.step == prolong && own:
		return []lockState{{token: in.token, until: max(s.until, in.until)}}
	case in.step == take, in.step == prolong:
		return nil
	case in.step == give && own, in.step == lapse && own && s.until <= in.until:
		return []lockState{{}}
	case in.step == perhaps && free:
		return []lockState{s, {token: in.token}}
	}
	return []lockState{s}
}

func (in *input) record() *CallRecord { return in.event }

// lockModel is the perfect lock on one key.
func lockModel(start lockState) porcupine.Model { return modelOf[*input](start, nil) }

// modelOf is a model whose operations lead from one state to any of several.
func modelOf[O interface{ next(S) []S }, S any](start S, equal func(a, b any) bool) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{start} },
		Step: func(state, operation, _ any) (states []any) {
			for _, s := range operation.(O).next(state.(S)) {
				states = append(states, s)
			}
			return states
		},
		Equal: equal,
	}
	return model.ToModel()
}

// search searches an order for operations. quiet is what their history lacks if they are too many.
// The verbose search runs only on those without an order, to find where the order breaks off.
func (s searchBounds) search(model porcupine.Model, operations []porcupine.Operation, quiet string, f *findings) {
	first, last := time.Duration(operations[0].Call), time.Duration(operations[len(operations)-1].Call)
	undecided := func(why string) {
		f.errs = append(f.errs, &Undecided{Key: f.key, From: first, To: last, Operations: len(operations), Why: why})
	}
	if len(operations) > s.window {
		undecided(fmt.Sprintf("no instant without a %s within %d operations; spread the load over more keys", quiet, s.window))
		return
	}
	switch porcupine.CheckOperationsTimeout(model, operations, s.timeout) {
	case porcupine.Unknown:
		undecided(fmt.Sprintf("the search took longer than %v; raise the timeout or record fewer overlapping calls", s.timeout))
	case porcupine.Illegal:
		_, info := porcupine.CheckOperationsVerbose(model, operations, s.timeout)
		stuck := operations[firstUnplaced(operations, &info)].Input.(interface{ record() *CallRecord })
		f.add(fmt.Sprintf("no order of its calls over %s explains their answers; the longest one breaks off before this call", span(first, last)), stuck.record())
	}
}

// firstUnplaced is, of the calls outside the longest order that was found, the
// one that returned first.
func firstUnplaced(operations []porcupine.Operation, info *porcupine.LinearizationInfo) (first int) {
	var longest []int
	for _, partition := range info.PartialLinearizations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	first = -1
	for i := range operations {
		if !slices.Contains(longest, i) && (first < 0 || operations[i].Return < operations[first].Return) {
			first = i
		}
	}
	return max(first, 0)
}
