package checker

// The operations of tokens that hold a key together, in stretches that are small enough
// to search. What is open is closed as in window.go: an unknown release, and an
// unknown acquire, by the end of everything that its token was promised. From there on
// it makes no difference to any client. The history is cut where no call is pending
// and no token can hold anything.

import (
	"cmp"
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
func checkJoint(all []*jointOp, records []*tokenRecord, s searchBounds, f *findings) {
	slices.SortStableFunc(all, func(a, b *jointOp) int { return cmp.Compare(a.call, b.call) })
	gone := goneBy(all, records)
	var stretch []*jointOp
	busy := time.Duration(-1)
	for _, op := range all {
		if op.call > busy && len(stretch) > s.window/10 {
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
func searchJoint(stretch []*jointOp, s searchBounds, f *findings) {
	var operations []porcupine.Operation
	for _, op := range stretch {
		operations = append(operations, porcupine.Operation{ClientId: op.event.Client, Input: op, Call: int64(op.call), Return: int64(op.done)})
	}
	s.search(jointModel(), operations, "holder", f)
}
