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
	for _, c := range []struct {
		to *atomic.Int64
		n  int64
	}{{&v.yes, n.Yes}, {&v.no, n.No}, {&v.uncounted, n.Uncounted}} {
		if c.n != 0 {
			c.to.Add(c.n)
		}
	}
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

// The reasons why a flush did not count.
const (
	voidMemoryGone = iota
	voidBalanced
	voidLate
	voidSuspect
	voidBehind
	voidRolledBack
	voidDamaged
	voidEvicted
	voidOther
	// VoidReasons is the number of reasons.
	VoidReasons
)

// VoidReason is the name of the reason i of Counters.Void.
func VoidReason(i int) string {
	return [VoidReasons]string{"forgot", "balanced", "late", "suspect", "behind", "rolled-back", "damaged", "evicted", "other"}[i]
}

func voidReason(err error) int {
	for reason, sentinel := range [VoidReasons]error{
		voidMemoryGone: errMemoryGone, voidBalanced: errBalanced, voidLate: errLate, voidSuspect: errSuspect,
		voidBehind: errBehind, voidRolledBack: errRolledBack, voidDamaged: errDamaged, voidEvicted: errEvicted,
	} {
		if sentinel != nil && errors.Is(err, sentinel) {
			return reason
		}
	}
	return voidOther
}
