package checker

// The rule of continuity: a token that extends has held the key all along. A successful
// extend states that, from the token's last acquire up to the extend, even across a
// deadline that its client had let pass: what a quorum has lost is never revived.

import "fmt"

// continuity reports successful extends by a token that had never requested
// the key, whose release had been answered, or in whose time another token
// had the key.
func (k *keyRecord) continuity(f *findings) {
	var marks []rankedEvent
	leases := k.leases()
	for i := range leases {
		marks = append(marks, rankedEvent{at: leases[i].from, value: leases[i].end, event: leases[i].first})
	}
	running := newFrontier(marks)
	k.extendsTrue(&k.foreignDone, &running, f)
}

// extendsTrue checks the extends of each token. rivals are the calls by which another token had
// the key alone, and running the leases in which it did.
func (k *keyRecord) extendsTrue(rivals, running *frontier, f *findings) {
	for _, t := range k.tokens {
		for _, e := range t.extends {
			t.continuous(e, rivals, running, f)
		}
	}
}

// continuous checks one extend. An acquire of the token that may have taken
// effect later than the supposed loss allows everything, an unknown one always.
func (t *tokenRecord) continuous(e *CallRecord, rivals, running *frontier, f *findings) {
	grant, ok := t.grantable.before(e.Complete+1, "")
	if !ok {
		f.add("extended by a token that had never requested it", e)
		return
	}
	held := grant.value // from here to e.Invoke, if the answer to the extend is true
	if held >= e.Invoke {
		return
	}
	if release, ok := t.answered.before(e.Invoke, ""); ok && held < release.value {
		f.add("extended after its release had been answered", grant.event, release.event, e)
	}
	if other, ok := rivals.before(e.Invoke, t.token); ok && held < other.value {
		f.add(fmt.Sprintf("extended by %q although %q had got it in between", t.token, other.event.Token),
			grant.event, other.event, e)
		return
	}
	if other, ok := running.before(e.Invoke, t.token); ok && held < other.value {
		f.add(fmt.Sprintf("extended by %q, which must have held it since %v, although %q held it over %s",
			t.token, held, other.event.Token, span(max(held, other.at), min(other.value, e.Invoke))),
			grant.event, other.event, e)
	}
}
