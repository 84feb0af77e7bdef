package checker

// Windows: the parts of a long history that are small enough to search. The search
// is exponential in the number of calls that are pending at once, and an operation
// that may return at any later time is pending for ever. So there are three cuts, none
// of which changes the result:
//
//  1. What cannot matter is left out: the lapse of a grant that was certainly
//     lost or prolonged before its deadline, an unknown acquire whose token
//     never extends, a release whose token never got anything.
//  2. Open returns are closed. Let F be a successful call of another token that
//     was invoked when the deadline had passed. In every order F finds the key
//     free or its own, so by then the lapse happened or had nothing left to do:
//     it may as well return when F does. Likewise an unknown release, if F was
//     invoked after the last grant of the released token; and an unknown acquire
//     returns with the last extend that may need it.
//  3. At an instant with no call pending the history is cut in two, if the state
//     there is the same in every order: the token whose lease runs on, else free.

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// window is a stretch of operations that is searched by itself.
type window struct {
	start      lockState
	operations []porcupine.Operation
}

// windows cuts a key's operations, at the first quiet instant of known state
// after a tenth of the limit. A stretch without one grows beyond the limit.
func (k *keyRecord) windows(limit int) []*window {
	var windows []*window
	var carried []*promise // of the operations so far, those that may still hold the key
	w, quiet := &window{}, int64(-1)
	for _, op := range k.operations() {
		if at := time.Duration(op.Call); op.Call > quiet && len(w.operations) > limit/10 {
			carried = slices.DeleteFunc(carried, func(c *promise) bool { return c.until < at || c.gone < at })
			if start, known := stateAt(at, carried); known {
				windows = append(windows, w)
				w = &window{start: start}
			}
		}
		w.operations = append(w.operations, op)
		quiet = max(quiet, op.Return)
		if in := op.Input.(*input); in.step == take || in.step == prolong {
			carried = append(carried, in.promise)
		}
	}
	if len(w.operations) > 0 {
		windows = append(windows, w)
	}
	return windows
}

// stateAt returns the state of the lock at a quiet instant, from the promises that
// are not over. The state is unknown where a release overlapped a grant, so that
// either may have come first.
func stateAt(at time.Duration, carried []*promise) (state lockState, known bool) {
	for _, c := range carried {
		if c.end < at || state.token != "" && state.token != c.event.Token {
			return lockState{}, false
		}
		state = lockState{token: c.event.Token, until: max(state.until, c.until)}
	}
	return state, true
}

// operations of one key, sorted by call.
func (k *keyRecord) operations() []porcupine.Operation {
	var operations []porcupine.Operation
	for _, t := range k.tokens {
		operations = append(operations, t.operations(k)...)
	}
	slices.SortStableFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return operations
}

// operations of one token. What is open returns with the first call by another
// token that cannot have succeeded before.
func (t *tokenRecord) operations(k *keyRecord) []porcupine.Operation {
	var operations []porcupine.Operation
	add := func(in input, call, until time.Duration) {
		operations = append(operations, porcupine.Operation{
			ClientId: in.event.Client, Input: &in, Call: int64(call), Return: int64(until),
		})
	}
	settled := time.Duration(-1) // when the token's last successful call was answered
	for i := range t.promises {
		c := &t.promises[i]
		settled = max(settled, c.from)
		in := input{step: take, token: t.token, until: c.until, event: c.event, promise: c}
		if c.event.Op == Extend {
			in.step = prolong
		}
		add(in, c.event.Invoke, c.from)
		if t.lapses(i) {
			in.step = lapse
			over := max(c.until, c.event.Invoke)
			add(in, over, k.takenBy(max(over, c.from+1), t.token))
		}
	}
	needed := t.lastExtend()
	for _, e := range t.acquires {
		if e.Outcome == Unknown && needed >= e.Invoke {
			add(input{step: perhaps, token: t.token, event: e}, e.Invoke, needed)
		}
	}
	for _, e := range t.releases {
		in := input{step: give, token: t.token, event: e}
		switch {
		case len(t.promises) == 0:
		case e.Outcome == Unknown:
			add(in, e.Invoke, k.takenBy(max(e.Invoke, settled+1), t.token))
		default:
			add(in, e.Invoke, e.Complete)
		}
	}
	return operations
}

// lapses reports whether the deadline of a promise can end the time in which the token holds the key.
func (t *tokenRecord) lapses(i int) bool {
	c := &t.promises[i]
	if c.gone < c.until {
		return false // lost before
	}
	if i+1 == len(t.promises) {
		return true
	}
	next := &t.promises[i+1]
	prolonged := next.event.Invoke > c.from && next.from < c.until && next.until >= c.until
	return !prolonged
}

// lastExtend is when the token's last successful extend was answered; −1 if none.
func (t *tokenRecord) lastExtend() time.Duration {
	last := time.Duration(-1)
	for _, e := range t.extends {
		last = max(last, e.Complete)
	}
	return last
}
