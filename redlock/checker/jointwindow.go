package checker

// The operations of tokens that hold a key together, in stretches that are small enough
// to search. What is open is closed as in window.go: an unknown release, and an
// unknown acquire, by the end of everything that its token was promised. From there on
// it makes no difference to any client. The history is cut where no call is pending
// and no token can hold anything.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// joints are the operations of one token on one key.
func (t *tokenRecord) joints(key string) []*jointOp {
	if len(t.promises) == 0 {
		return nil // no client relied on it, and what it extended is not known to have been
	}
	over := t.allOver()
	var all []*jointOp
	for _, e := range t.acquires {
		op := &jointOp{step: take, keys: []string{key}, token: t.token, access: e.access(), limit: e.Limit, until: []time.Duration{0}, call: e.Invoke, done: e.Complete, event: e}
		if e.Outcome == Unknown {
			op.step, op.done = perhaps, max(e.Invoke, over)
		} else {
			op.until[0] = e.deadline()
		}
		all = append(all, op)
	}
	for _, e := range t.extends {
		all = append(all, &jointOp{step: prolong, keys: []string{key}, token: t.token, until: []time.Duration{e.deadline()}, call: e.Invoke, done: e.Complete, event: e})
	}
	for _, e := range t.releases {
		op := &jointOp{step: give, keys: []string{key}, token: t.token, call: e.Invoke, done: e.Complete, event: e}
		if e.Outcome == Unknown {
			op.done = max(e.Invoke, over)
		}
		all = append(all, op)
	}
	return all
}

// allOver is when everything has ended that the token was promised.
func (t *tokenRecord) allOver() time.Duration {
	over := time.Duration(0)
	for i := range t.promises {
		over = max(over, t.promises[i].until, t.promises[i].from)
	}
	return over
}

func (e *CallRecord) access() accessMode {
	switch {
	case e.Shared:
		return sharedAccess
	case e.Limit > 0:
		return permitAccess
	}
	return exclusiveAccess
}

// checkJoint searches an order for operations that depend on one another.
func checkJoint(all []*jointOp, records []*tokenRecord, s Search, f *findings) {
	slices.SortStableFunc(all, func(a, b *jointOp) int { return cmp.Compare(a.call, b.call) })
	gone := goneBy(all, records)
	var stretch []*jointOp
	busy := time.Duration(-1)
	for _, op := range all {
		if op.call > busy && len(stretch) > s.Window/10 {
			searchJoint(stretch, s, f)
			stretch = nil
		}
		stretch = append(stretch, op)
		busy = max(busy, gone[op.token])
	}
	if len(stretch) > 0 {
		searchJoint(stretch, s, f)
	}
}

// goneBy is when no part of a token matters any more: its calls are over, and it
// holds nothing, because it has released everything or its deadlines are over.
func goneBy(all []*jointOp, records []*tokenRecord) map[string]time.Duration {
	gone := map[string]time.Duration{}
	for _, t := range records {
		if !t.releasedLast() {
			gone[t.token] = max(gone[t.token], t.allOver())
		}
	}
	for _, op := range all {
		if op.event.Outcome != Unknown {
			gone[op.token] = max(gone[op.token], op.done)
		}
	}
	return gone
}

// releasedLast reports whether the last event of the token was a release.
func (t *tokenRecord) releasedLast() bool {
	last := time.Duration(-1)
	for i := range t.promises {
		last = max(last, t.promises[i].from)
	}
	for _, e := range t.acquires {
		last = max(last, e.effectBy())
	}
	return last < Never && t.voiding.doneAfter(last+1) < Never
}

// searchJoint searches one stretch.
func searchJoint(stretch []*jointOp, s Search, f *findings) {
	first, last := stretch[0].call, stretch[len(stretch)-1].call
	undecided := func(why string) {
		f.errs = append(f.errs, &Undecided{Key: f.key, From: first, To: last, Operations: len(stretch), Why: why})
	}
	if len(stretch) > s.Window {
		undecided(fmt.Sprintf("no instant without a holder within %d operations; spread the load over more keys", s.Window))
		return
	}
	var operations []porcupine.Operation
	for _, op := range stretch {
		operations = append(operations, porcupine.Operation{ClientId: op.event.Client, Input: op, Call: int64(op.call), Return: int64(op.done)})
	}
	result, info := porcupine.CheckOperationsVerbose(jointModel(), operations, s.Timeout)
	switch result {
	case porcupine.Unknown:
		undecided(fmt.Sprintf("the search took longer than %v; raise the timeout or record fewer overlapping calls", s.Timeout))
	case porcupine.Illegal:
		stuck := firstUnplaced(operations, &info)
		f.add(fmt.Sprintf("no order of its calls over %s explains their answers; the longest one breaks off before this call", span(first, last)),
			operations[stuck].Input.(*jointOp).event)
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
