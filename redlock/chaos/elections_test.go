package chaos

// elections_test.go: the requests for a key, their order, and when they were served. It
// checks what the checks of leases leave out: that no later request passes an earlier
// one, and that no key lies idle while a client waits for it.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlockd/redlock/checker"
)

// election is one request for a key. Times are those of the history.
type election struct {
	Client, Daemon int
	Key            string
	Reads          bool // together with others
	Waits          bool // or respects those that do
	Invoke         time.Duration
	Stood          time.Duration // it was seen in its wait queue before this instant; 0: it was not checked
	End            time.Duration // its time is not over before
	Complete       time.Duration
	Outcome        checker.Outcome
	Fence          int64
	Until          time.Duration // the key is not this election's any more
}

func (v *election) String() string {
	return fmt.Sprintf("client %d at daemon %d for %q [%v, %v], seen waiting at %v: %s, fence %d, gone at %v",
		v.Client, v.Daemon, v.Key, v.Invoke, v.Complete, v.Stood, v.Outcome, v.Fence, v.Until)
}

// overtakes are elections that were served before one that was in the wait queue when
// they came. Fences show the order of those that exclude one another.
func overtakes(visits []election, concern func(first, later *election) bool) []error {
	var found []error
	byTime := slices.Clone(visits)
	slices.SortStableFunc(byTime, func(a, b election) int { return cmp.Compare(a.Invoke, b.Invoke) })
	for i := range byTime {
		first := &byTime[i]
		if first.Stood == 0 || first.Outcome == checker.Unknown {
			continue
		}
		next, _ := slices.BinarySearchFunc(byTime, first.Stood+1, func(v election, at time.Duration) int { return cmp.Compare(v.Invoke, at) })
		for j := next; j < len(byTime) && byTime[j].Invoke < first.Complete; j++ {
			later := &byTime[j]
			switch {
			case later.Key != first.Key, later.Outcome != checker.OK, !later.Waits, later.Reads && first.Reads:
			case first.Outcome == checker.OK && later.Fence > first.Fence:
			case first.Outcome == checker.No && later.Complete >= first.End:
			case !concern(first, later):
			default:
				found = append(found, fmt.Errorf("overtaken: %v\n\tby %v", first, later))
			}
		}
	}
	return found
}

// idle is how long a key had no holder while a client waited for it.
type idle struct {
	from, to time.Duration
	election *election
}

// idles of all keys that are taken by one at a time, the longest first. An election
// of unknown outcome may have the key up to its Until.
func idles(visits []election) []idle {
	byKey := map[string][]*election{}
	for i := range visits {
		byKey[visits[i].Key] = append(byKey[visits[i].Key], &visits[i])
	}
	var all []idle
	for _, list := range byKey {
		slices.SortFunc(list, func(a, b *election) int { return cmp.Compare(a.Complete, b.Complete) })
		for i, v := range list {
			if !v.Waits || v.Outcome == checker.Unknown {
				continue
			}
			from := v.Invoke
			for j, other := range list {
				if j < i && other.Outcome == checker.OK || other.Outcome == checker.Unknown && other.Invoke < v.Complete {
					from = max(from, other.Until)
				}
			}
			if from < v.Complete {
				all = append(all, idle{from, v.Complete, v})
			}
		}
	}
	slices.SortFunc(all, func(a, b idle) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	return all
}

// prompt checks the idle times that no fault explains. The ceiling is for those
// without any fault near, and it is held against long runs alone: a short one is
// one of many tests at once. Where faults left the waiter's daemon its quorum, a
// failed attempt of another daemon may have left a copy on a master or two that
// no daemon could take back: it ends with its lease.
func (r *run) prompt(visits []election, ceiling time.Duration) (tally string, err error) {
	var calm, near struct {
		count   int
		longest time.Duration
	}
	var found []error
	for _, one := range idles(visits) {
		among, most := &near, ceiling+maxTTL+maxTTL/10
		switch {
		case r.nemesis.quiet(one.election.Daemon, one.from-settled, one.to):
			among, most = &calm, ceiling
		case r.nemesis.allowedError(one.election.Daemon, one.election.Key, one.from, one.to, waitTerms) != "":
			continue
		}
		spent := one.to - one.from
		among.count++
		among.longest = max(among.longest, spent)
		if r.long && spent > most && len(found) < 5 {
			found = append(found, fmt.Errorf("no client had the key for %v (at most %v) while another one waited: %v", spent, most, one.election))
		}
	}
	return fmt.Sprintf("%d waits ended without a fault near, the key lay idle for %v at most; %d with a quorum all the time, %v",
		calm.count, calm.longest.Round(100*time.Microsecond), near.count, near.longest.Round(100*time.Microsecond)), errors.Join(found...)
}

// first few of many.
func first(all []error, n int) error {
	return errors.Join(all[:min(len(all), n)]...)
}
