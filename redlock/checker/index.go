package checker

// The index of a history by key and token. It sorts the history once and answers
// the questions that the rules share, each in O(log n).

import (
	"cmp"
	"slices"
	"time"
)

// keyRecord is all that happened to one key.
type keyRecord struct {
	key         string
	tokens      []*tokenRecord // in order of first appearance
	proofs      []*CallRecord  // successful acquires and extends, by Invoke: their token held the key at an instant within
	foreignDone frontier       // of the proofs completed before an instant, the one that was invoked last
	foreignNext frontier       // mirrored: of the proofs invoked from an instant on, the one that completed first
}

// tokenRecord is all that one token did to one key.
type tokenRecord struct {
	token    string
	acquires []*CallRecord // granted or unknown, by Invoke
	extends  []*CallRecord // successful, by Invoke
	releases []*CallRecord // all, by Invoke
	promises []promise     // by from

	grantable frontier // of the acquires invoked before an instant, the one that may have taken effect last
	voiding   releaseTimes
	released  frontier // of the releases answered 1
	answered  frontier // of the releases answered at all
}

// newIndex validates and sorts a history. The keys keep the order of their
// first event, so that reports are reproducible.
func newIndex(h History) ([]*keyRecord, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	events := make([]*CallRecord, len(h))
	for i := range h {
		events[i] = &h[i]
	}
	slices.SortStableFunc(events, func(a, b *CallRecord) int { return cmp.Compare(a.Invoke, b.Invoke) })
	var keys []*keyRecord
	keyOf := map[string]*keyRecord{}
	type owner struct{ key, token string }
	tokenOf := map[owner]*tokenRecord{}
	for _, e := range events {
		k := keyOf[e.Key]
		if k == nil {
			k = &keyRecord{key: e.Key}
			keyOf[e.Key], keys = k, append(keys, k)
		}
		if e.Token == "" {
			continue // the client never received the token, so no later call can depend on it
		}
		t := tokenOf[owner{e.Key, e.Token}]
		if t == nil {
			t = &tokenRecord{token: e.Token}
			tokenOf[owner{e.Key, e.Token}], k.tokens = t, append(k.tokens, t)
		}
		k.add(t, e)
	}
	for _, k := range keys {
		k.finish()
	}
	return keys, nil
}

func (k *keyRecord) add(t *tokenRecord, e *CallRecord) {
	switch {
	case e.Op == Release:
		t.releases = append(t.releases, e)
		return
	case e.Op == Acquire && e.Outcome != No:
		t.acquires = append(t.acquires, e)
	case e.Op == Extend && e.Outcome == OK:
		t.extends = append(t.extends, e)
	}
	if e.Outcome == OK {
		k.proofs = append(k.proofs, e)
	}
}

func (k *keyRecord) finish() {
	k.foreignDone = lastInvoked(k.proofs, func(*CallRecord) bool { return true })
	marks := make([]rankedEvent, 0, len(k.proofs))
	for _, e := range k.proofs {
		marks = append(marks, rankedEvent{at: -e.Invoke, value: -e.Complete, event: e})
	}
	k.foreignNext = newFrontier(marks)
	for _, t := range k.tokens {
		var acquires []rankedEvent
		for _, e := range t.acquires {
			acquires = append(acquires, rankedEvent{at: e.Invoke, value: e.effectBy(), event: e})
		}
		t.grantable = newFrontier(acquires)
		t.voiding = newReleaseTimes(t.releases)
		t.promises = newPromises(k, t)
		t.released = lastInvoked(t.releases, func(e *CallRecord) bool { return e.Outcome == OK && e.Released })
		t.answered = lastInvoked(t.releases, func(e *CallRecord) bool { return e.Outcome != Unknown })
	}
}

// takenBy is when another token certainly had the key by a call invoked at the
// instant or later; Never if there was none.
func (k *keyRecord) takenBy(instant time.Duration, token string) time.Duration {
	if m, ok := k.foreignNext.before(-instant+1, token); ok {
		return -m.value
	}
	return Never
}

// effectBy is the latest instant at which the call can have taken effect.
func (e *CallRecord) effectBy() time.Duration {
	if e.Outcome == Unknown {
		return Never
	}
	return e.Complete
}

// rankedEvent is one event placed at an instant, with a value to be maximised.
type rankedEvent struct {
	at, value time.Duration
	event     *CallRecord
}

// frontier finds, of the events placed before an instant, the one of another token
// with the highest value. Two candidates of different tokens are enough.
type frontier struct {
	ranked []rankedEvent
	best   [][2]rankedEvent
}

func newFrontier(marks []rankedEvent) frontier {
	slices.SortStableFunc(marks, func(a, b rankedEvent) int { return cmp.Compare(a.at, b.at) })
	f := frontier{ranked: marks, best: make([][2]rankedEvent, len(marks))}
	var top [2]rankedEvent
	for i, m := range marks {
		switch {
		case top[0].event == nil || m.value > top[0].value:
			if top[0].event != nil && top[0].event.Token != m.event.Token {
				top[1] = top[0]
			}
			top[0] = m
		case m.event.Token != top[0].event.Token && (top[1].event == nil || m.value > top[1].value):
			top[1] = m
		}
		f.best[i] = top
	}
	return f
}

// lastInvoked builds the frontier that finds, of the chosen events completed
// before an instant, the one that was invoked last.
func lastInvoked(events []*CallRecord, chosen func(*CallRecord) bool) frontier {
	var marks []rankedEvent
	for _, e := range events {
		if chosen(e) {
			marks = append(marks, rankedEvent{at: e.Complete, value: e.Invoke, event: e})
		}
	}
	return newFrontier(marks)
}

// before returns the best event strictly before the instant that is not token's
// ("" excludes none); ok is false if there is none.
func (f *frontier) before(instant time.Duration, token string) (m rankedEvent, ok bool) {
	n, _ := slices.BinarySearchFunc(f.ranked, instant, func(m rankedEvent, t time.Duration) int { return cmp.Compare(m.at, t) })
	if n == 0 {
		return rankedEvent{}, false
	}
	for _, m := range f.best[n-1] {
		if m.event != nil && m.event.Token != token {
			return m, true
		}
	}
	return rankedEvent{}, false
}
