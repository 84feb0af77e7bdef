// Votes are counts of the answers of each master to acquires. They are for people:
// no decision depends on them.

package pool

import (
	"errors"
	"sync/atomic"
)

// Votes count the answers of one master to operations that acquire a key.
type Votes struct {
	Yes       int64 // consents that counted
	No        int64 // refusals that counted
	Uncounted int64 // neither: cut, late, void, quarantined, or not sent
}

// votes are kept outside of the group's lock: the task that delivers the answers
// updates them.
type votes struct{ yes, no, uncounted atomic.Int64 }

func (v *votes) add(n Votes) {
	if n != (Votes{}) {
		v.yes.Add(n.Yes)
		v.no.Add(n.No)
		v.uncounted.Add(n.Uncounted)
	}
}

// addUncounted adds operations whose outcome is unknown, or that were not sent.
func (v *votes) addUncounted(entries []queueEntry) {
	var n Votes
	for i := range entries {
		if entries[i].props.Exclusive {
			n.Uncounted++
		}
	}
	v.add(n)
}

func (v *votes) load() Votes {
	return Votes{Yes: v.yes.Load(), No: v.no.Load(), Uncounted: v.uncounted.Load()}
}

// count adds one answer. A command that acquires a key answers a string or a
// positive number if it did, alone or as {1, …}, and anything else if not.
func (v *Votes) count(a *Answer) {
	r := a.Reply
	if r.Kind == ReplyArray && len(r.Items) > 0 && r.Items[0].Int == 1 {
		r = r.Items[0]
	}
	yes := r.Kind == ReplyString || r.Kind == ReplyInt && r.Int > 0
	switch {
	case !a.Sent || r.Err != nil || !a.Seal.Good || yes && a.Seal.Quarantined:
		v.Uncounted++
	case yes:
		v.Yes++
	default:
		v.No++
	}
}

// VoidReasons is the number of reasons why a flush did not count; the last one is any other.
const (
	VoidReasons = 9
	voidOther   = VoidReasons - 1
)

var voidReasons = [VoidReasons]struct {
	name string
	err  error
}{
	{"forgot", errMemoryGone}, {"balanced", errBalanced}, {"late", errLate}, {"suspect", errSuspect}, {"behind", errBehind},
	{"rolled-back", errRolledBack}, {"damaged", errDamaged}, {"evicted", errEvicted}, {"other", nil},
}

func VoidReason(i int) string { return voidReasons[i].name }

func voidReason(err error) int {
	for i, r := range voidReasons[:voidOther] {
		if errors.Is(err, r.err) {
			return i
		}
	}
	return voidOther
}
