package checker

// The rules of readers and writers: no reader and writer, and no two writers, hold one
// key at the same time. Readers may be together. The token of a reader may become the
// writer's and the other way round; from its request to be a reader on it counts as one.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// CheckReaders checks a history whose acquires are shared or exclusive.
func CheckReaders(h History) error {
	return errors.Join(checkSwept(h, (*keyRecord).readersAndWriters), checkTogetherLinear(h, searchBounds{}))
}

// checkSwept checks keys that several tokens may hold at a time, without a search. The modes differ
// in which tokens exclude one another.
func checkSwept(h History, exclusion func(*keyRecord, *findings)) error {
	return checkRules(h, rule{ruleExclusion, exclusion}, rule{ruleFence, (*keyRecord).fences},
		rule{ruleRelease, (*keyRecord).ownReleases}, rule{ruleContinuity, (*keyRecord).ownContinuity})
}

// stay is a stretch of time over which a token relied on the key.
type stay struct {
	from, end time.Duration
	writes    bool
	event     *CallRecord
}

// stays of a token. A promise ends early by a release, or for a writer by the
// token's own request to be a reader.
func (t *tokenRecord) stays() []stay {
	var all []stay
	for i := range t.promises {
		c := &t.promises[i]
		s := stay{from: c.from, end: c.end, event: c.event, writes: t.writesAt(c.event)}
		if s.writes {
			s.end = min(s.end, t.downgradedAt(c.event.Invoke))
		}
		if s.from < s.end {
			all = append(all, s)
		}
	}
	return all
}

// writesAt reports whether the call certainly made, or kept, the token the writer.
// An extend keeps what the token was: it is the writer only if every acquire
// that may have been the last one was exclusive.
func (t *tokenRecord) writesAt(e *CallRecord) bool {
	if e.Op == Acquire {
		return !e.Shared
	}
	for _, a := range t.acquires {
		if a.Shared && a.Invoke <= e.Complete {
			return false
		}
	}
	return true
}

// downgradedAt is when the token requested to be a reader, for calls that may have
// come after one that was invoked at the instant; Never if it did not.
func (t *tokenRecord) downgradedAt(invoked time.Duration) time.Duration {
	first := Never
	for _, a := range t.acquires {
		if a.Shared && a.effectBy() >= invoked {
			first = min(first, a.Invoke)
		}
	}
	return first
}

func (k *keyRecord) stays() []stay {
	var all []stay
	for _, t := range k.tokens {
		all = append(all, t.stays()...)
	}
	slices.SortStableFunc(all, func(a, b stay) int { return cmp.Compare(a.from, b.from) })
	return all
}

func (k *keyRecord) readersAndWriters(f *findings) {
	stays := k.stays()
	var everyone, writers []rankedEvent
	for _, s := range stays {
		m := rankedEvent{at: s.from, value: s.end, event: s.event}
		everyone = append(everyone, m)
		if s.writes {
			writers = append(writers, m)
		}
	}
	all, only := newFrontier(everyone), newFrontier(writers)
	for _, s := range stays {
		against, what := &only, "the reader"
		if s.writes {
			against, what = &all, "the writer"
		}
		if other, ok := against.before(s.from+1, s.event.Token); ok && other.value > s.from {
			f.add(fmt.Sprintf("%s %q and %q both hold it over %s", what, s.event.Token, other.event.Token,
				span(s.from, min(s.end, other.value))), other.event, s.event)
		}
	}
}

// ownReleases checks each token by itself: that others had the key in between
// proves nothing where several may have it.
func (k *keyRecord) ownReleases(f *findings) { k.releasesTrue(&frontier{}, f) }

// ownContinuity reports an extend by a token that had never requested the key, or had
// been released, or in whose time a writer had the key.
func (k *keyRecord) ownContinuity(f *findings) {
	writers := lastInvoked(k.proofs, func(e *CallRecord) bool { return e.Op == Acquire && !e.Shared && e.Limit == 0 })
	k.extendsTrue(&writers, &frontier{}, f)
}
