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
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// Search bounds the search for an order. Zero values mean the defaults.
type Search struct {
	// Window is how many operations are searched at once, at most: the search
	// takes memory with the square of it. Default and maximum 10 000.
	Window int
	// Timeout bounds the search of one window. Default 10 s. What is not decided
	// by then is reported as *Undecided.
	Timeout time.Duration
}

const (
	maxWindow      = 10_000
	defaultTimeout = 10 * time.Second
)

// CheckLinear searches an order for each key of the history.
func CheckLinear(h History, s Search) error {
	keys, err := newIndex(h)
	if err != nil {
		return err
	}
	return checkLinear(keys, s)
}

func checkLinear(keys []*keyRecord, s Search) error {
	if err := s.complete(); err != nil {
		return err
	}
	f := &findings{rule: ruleLinear}
	for _, k := range keys {
		f.key = k.key
		for _, w := range k.windows(s.Window) {
			w.check(s, f)
		}
	}
	return f.err()
}

// complete puts the defaults in.
func (s *Search) complete() error {
	if s.Window < 0 || s.Window > maxWindow || s.Timeout < 0 {
		return fmt.Errorf("checker: search window %d and timeout %v: want 1 to %d operations (0 = %d) and a timeout above 0 (0 = %v)",
			s.Window, s.Timeout, maxWindow, maxWindow, defaultTimeout)
	}
	if s.Window == 0 {
		s.Window = maxWindow
	}
	if s.Timeout == 0 {
		s.Timeout = defaultTimeout
	}
	return nil
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
	mine, free := s.token == in.token, s.token == ""
	switch {
	case in.step == take && (free || mine), in.step == prolong && mine:
		return []lockState{{token: in.token, until: max(s.until, in.until)}}
	case in.step == take, in.step == prolong:
		return nil
	case in.step == give && mine, in.step == lapse && mine && s.until <= in.until:
		return []lockState{{}}
	case in.step == perhaps && free:
		return []lockState{s, {token: in.token}}
	}
	return []lockState{s}
}

// lockModel is the perfect lock on one key.
func lockModel(start lockState) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{start} },
		Step: func(state, in, _ any) []any { return boxed(in.(*input).next(state.(lockState))) },
	}
	return model.ToModel()
}

func boxed(states []lockState) []any {
	out := make([]any, len(states))
	for i, s := range states {
		out[i] = s
	}
	return out
}

// check searches one window. The verbose search runs only on windows without an
// order, to find where the order breaks off.
func (w *window) check(s Search, f *findings) {
	undecided := func(why string) {
		last := w.operations[len(w.operations)-1]
		f.errs = append(f.errs, &Undecided{Key: f.key, From: time.Duration(w.operations[0].Call),
			To: time.Duration(last.Call), Operations: len(w.operations), Why: why})
	}
	if len(w.operations) > s.Window {
		undecided(fmt.Sprintf("no instant without a pending call within %d operations; spread the load over more keys", s.Window))
		return
	}
	model := lockModel(w.start)
	switch porcupine.CheckOperationsTimeout(model, w.operations, s.Timeout) {
	case porcupine.Unknown:
		undecided(fmt.Sprintf("the search took longer than %v; raise the timeout or record fewer overlapping calls", s.Timeout))
	case porcupine.Illegal:
		_, info := porcupine.CheckOperationsVerbose(model, w.operations, s.Timeout)
		stuck := w.operations[firstUnplaced(w.operations, &info)].Input.(*input).event
		f.add(fmt.Sprintf("no order of its calls over %s explains their answers; the longest one breaks off before this call",
			span(time.Duration(w.operations[0].Call), time.Duration(w.operations[len(w.operations)-1].Call))), stuck)
	}
}
