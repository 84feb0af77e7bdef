package checker

// What clients may rely on, and until when. A promise is what one answer
// guarantees; a leaseSpan is what the promises of one token add up to.

import (
	"cmp"
	"slices"
	"time"
)

// promise is what one successful acquire or extend guarantees: the token holds the
// key from the answer up to the deadline, or up to the first release that may
// have ended it. The interval [from, end) is empty if end <= from.
type promise struct {
	event *CallRecord
	from  time.Duration // when the answer came
	until time.Duration // from + validity
	end   time.Duration // min(until, invocation of a release that may end it)
	gone  time.Duration // when it certainly was over, by a later release or a later holder; Never if by neither
}

// newPromises requires that t.voiding and k.foreignNext are built.
func newPromises(k *keyRecord, t *tokenRecord) []promise {
	var claims []promise
	add := func(e *CallRecord) {
		if e.Outcome != OK {
			return
		}
		c := promise{event: e, from: e.Complete, until: e.deadline()}
		c.end = min(c.until, t.voiding.first(e.Invoke))
		later := c.from + 1 // at the same instant, either may come first
		c.gone = min(t.voiding.doneAfter(later), k.takenBy(later, t.token))
		claims = append(claims, c)
	}
	for _, e := range t.acquires {
		add(e)
	}
	for _, e := range t.extends {
		add(e)
	}
	slices.SortStableFunc(claims, func(a, b promise) int { return cmp.Compare(a.from, b.from) })
	return claims
}

// leaseSpan is a stretch of time over which the promises of one token overlap or
// touch. first opened it, last prolonged it.
type leaseSpan struct {
	first, last *CallRecord
	from, end   time.Duration
}

// leases are disjoint and sorted by from. An extend whose answer came after the
// old deadline opens a new lease: in between its client relied on nothing (the
// rule of continuity checks that gap).
func (t *tokenRecord) leases() []leaseSpan {
	var leases []leaseSpan
	for _, c := range t.promises {
		if c.end <= c.from {
			continue
		}
		if n := len(leases); n > 0 && c.from <= leases[n-1].end {
			if c.end > leases[n-1].end {
				leases[n-1].end, leases[n-1].last = c.end, c.event
			}
			continue
		}
		leases = append(leases, leaseSpan{first: c.event, last: c.event, from: c.from, end: c.end})
	}
	return leases
}

// leases of all tokens of a key, sorted by from.
func (k *keyRecord) leases() []leaseSpan {
	var all []leaseSpan
	for _, t := range k.tokens {
		all = append(all, t.leases()...)
	}
	slices.SortStableFunc(all, func(a, b leaseSpan) int { return cmp.Compare(a.from, b.from) })
	return all
}

// events that explain a lease in an error.
func (l *leaseSpan) events() []*CallRecord {
	if l.first == l.last {
		return []*CallRecord{l.first}
	}
	return []*CallRecord{l.first, l.last}
}

// releaseTimes finds the releases of one token that bear on a promise. An answered
// release that completed before a call was invoked cannot touch what that call
// got. An unknown one can, however much later it was sent: its time of arrival is
// unknown.
type releaseTimes struct {
	unknown     time.Duration   // earliest Invoke of an unknown release; Never if none
	completes   []time.Duration // of answered releases, ascending
	firstInvoke []time.Duration // earliest Invoke of completes[i:]
	invokes     []time.Duration // of answered releases, ascending
	firstDone   []time.Duration // earliest Complete of invokes[i:]
}

func newReleaseTimes(releases []*CallRecord) releaseTimes {
	t := releaseTimes{unknown: Never}
	var answered []*CallRecord
	for _, e := range releases {
		if e.Outcome == Unknown {
			t.unknown = min(t.unknown, e.Invoke)
			continue
		}
		answered = append(answered, e)
	}
	invoke := func(e *CallRecord) time.Duration { return e.Invoke }
	complete := func(e *CallRecord) time.Duration { return e.Complete }
	t.invokes, t.firstDone = suffixMin(answered, invoke, complete)
	t.completes, t.firstInvoke = suffixMin(answered, complete, invoke)
	return t
}

// suffixMin sorts events by at and returns those instants together with the
// least value from each position on.
func suffixMin(events []*CallRecord, at, value func(*CallRecord) time.Duration) (ats, least []time.Duration) {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b *CallRecord) int { return cmp.Compare(at(a), at(b)) })
	ats, least = make([]time.Duration, len(events)), make([]time.Duration, len(events))
	low := Never
	for i := len(events) - 1; i >= 0; i-- {
		low = min(low, value(events[i]))
		ats[i], least[i] = at(events[i]), low
	}
	return ats, least
}

// first is the earliest invocation of a release that may have ended what a call
// invoked at that instant got; Never if there is none.
func (t *releaseTimes) first(invoked time.Duration) time.Duration {
	if i, _ := slices.BinarySearch(t.completes, invoked); i < len(t.completes) {
		return min(t.unknown, t.firstInvoke[i])
	}
	return t.unknown
}

// doneAfter is the earliest completion of an answered release that was invoked
// at the instant or later; Never if there is none.
func (t *releaseTimes) doneAfter(instant time.Duration) time.Duration {
	if i, _ := slices.BinarySearch(t.invokes, instant); i < len(t.invokes) {
		return t.firstDone[i]
	}
	return Never
}
