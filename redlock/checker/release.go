package checker

// The rule of releases: the answer to a release is true. 1 means that the token held
// the key until then, 0 means that it did not.

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// releaseTruth reports answers 1 to a token that was never granted the key,
// that had already received 1 or that had certainly lost the key to another
// token; and answers 0 to a token that certainly held it. Calls that overlap
// get every benefit of the doubt.
func (k *keyRecord) releaseTruth(f *findings) { k.releasesTrue(&k.foreignDone, f) }

// releasesTrue checks the releases of each token. rivals are the calls by which another token
// had the key alone.
func (k *keyRecord) releasesTrue(rivals *frontier, f *findings) {
	for _, t := range k.tokens {
		for _, e := range t.releases {
			if e.Outcome == OK && e.Released {
				t.releasedTruth(e, rivals, f)
			}
		}
		t.notHeldTruth(f)
	}
}

// releasedTruth checks one answer 1. An acquire of the token that may have
// taken effect after the supposed loss allows everything.
func (t *tokenRecord) releasedTruth(e *CallRecord, rivals *frontier, f *findings) {
	grant, ok := t.grantable.before(e.Complete+1, "")
	if !ok {
		f.add("released by a token that had never requested it", e)
		return
	}
	if earlier, ok := t.released.before(e.Invoke, ""); ok && grant.value < earlier.value {
		f.add("released twice by one grant", grant.event, earlier.event, e)
	}
	if other, ok := rivals.before(e.Invoke, t.token); ok && grant.value < other.value {
		f.add(fmt.Sprintf("released by %q although %q had got it in between", t.token, other.event.Token),
			grant.event, other.event, e)
	}
}

// notHeldTruth checks the answers 0. The token certainly held the key if one
// of its promises was answered before the release was invoked and still ran when
// the release was answered, and no other release can have ended it.
func (t *tokenRecord) notHeldTruth(f *findings) {
	answered := make([]*CallRecord, 0, len(t.releases))
	for _, e := range t.releases {
		if e.Outcome != Unknown {
			answered = append(answered, e)
		}
	}
	over := time.Duration(-1) // when the last of the releases before this one was answered
	for i, e := range answered {
		alone := i+1 == len(answered) || e.Complete < answered[i+1].Invoke // as to earlier ones, see promiseAcross
		if alone && !e.Released && e.Complete < t.voiding.unknown {
			if c := t.promiseAcross(over, e); c != nil {
				f.add(fmt.Sprintf("answered \"not held\" although the lease ran until %v", c.until), c.event, e)
			}
		}
		over = max(over, e.Complete)
	}
}

// promiseAcross returns a promise that was requested after the instant and ran all
// through the release, nil if there is none, as where an earlier release was
// answered only after this one was invoked. The walks of successive releases do
// not overlap, so all of them together are linear.
func (t *tokenRecord) promiseAcross(after time.Duration, release *CallRecord) *promise {
	n, _ := slices.BinarySearchFunc(t.promises, release.Invoke, func(c promise, at time.Duration) int { return cmp.Compare(c.from, at) })
	for i := n - 1; i >= 0 && t.promises[i].from > after; i-- {
		if c := &t.promises[i]; c.event.Invoke > after && c.until > release.Complete {
			return c
		}
	}
	return nil
}
