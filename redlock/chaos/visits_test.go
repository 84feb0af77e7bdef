package chaos

// visits_test.go: who came for a key, in which order, and when was he served?
// What the judges of leases do not look at: that nobody passes who came later,
// and that no key lies idle while somebody waits for it.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlockd/redlock/judge"
)

// visit is one request for a key. Times are those of the history.
type election struct {
	Client, Daemon int
	Key            string
	Reads          bool // together with others
	Waits          bool // or minds who does
	Invoke         time.Duration
	Stood          time.Duration // it was seen in its line before this instant; 0: nobody looked
	End            time.Duration // its time is not over before
	Complete       time.Duration
	Outcome        judge.Outcome
	Fence          int64
	Until          time.Duration // the key is not this visit's any more
}

func (v *election) String() string {
	return fmt.Sprintf("client %d at daemon %d for %q [%v, %v], seen in line at %v: %s, fence %d, gone at %v",
		v.Client, v.Daemon, v.Key, v.Invoke, v.Complete, v.Stood, v.Outcome, v.Fence, v.Until)
}

// overtakes are visits that were served before one that stood in line when they
// came. Fences tell the order of those who exclude one another.
func overtakes(visits []election, concern func(first, later *election) bool) []error {
	var found []error
	for i := range visits {
		first := &visits[i]
		if first.Stood == 0 || first.Outcome == judge.Unknown {
			continue
		}
		for j := range visits {
			later := &visits[j]
			switch {
			case later.Key != first.Key, later.Outcome != judge.OK, !later.Waits, later.Reads && first.Reads:
			case later.Invoke <= first.Stood || later.Invoke >= first.Complete:
			case first.Outcome == judge.OK && later.Fence > first.Fence:
			case first.Outcome == judge.No && later.Complete >= first.End:
			case !concern(first, later):
			default:
				found = append(found, fmt.Errorf("overtaken: %v\n\tby %v", first, later))
			}
		}
	}
	return found
}

// idle is how long a key was nobody's while one waited for it.
type idle struct {
	from, to time.Duration
	election *election
}

// idles of all keys that are taken by one at a time, the longest first. A visit
// of which nothing is known may have the key up to its Until.
func idles(visits []election) []idle {
	byKey := map[string][]*election{}
	for i := range visits {
		byKey[visits[i].Key] = append(byKey[visits[i].Key], &visits[i])
	}
	var all []idle
	for _, list := range byKey {
		slices.SortFunc(list, func(a, b *election) int { return cmp.Compare(a.Complete, b.Complete) })
		for i, v := range list {
			if !v.Waits || v.Outcome == judge.Unknown {
				continue
			}
			from := v.Invoke
			for j, other := range list {
				if j < i && other.Outcome == judge.OK || other.Outcome == judge.Unknown && other.Invoke < v.Complete {
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

// prompt judges the idle times that no fault explains. The ceiling is for those
// without any fault near, and it is held against long runs alone: a short one is
// one of many tests at once. Where faults left the waiter's daemon its quorum, a
// failed attempt of another daemon may have left a copy on a master or two that
// nobody could take back: it ends with its lease.
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
		case r.nemesis.allowedError(one.election.Daemon, one.from, one.to, waitTerms) != "":
			continue
		}
		spent := one.to - one.from
		among.count++
		among.longest = max(among.longest, spent)
		if r.long && spent > most && len(found) < 5 {
			found = append(found, fmt.Errorf("nobody had the key for %v (at most %v) while somebody waited: %v", spent, most, one.election))
		}
	}
	return fmt.Sprintf("%d waits ended without a fault near, the key lay idle for %v at most; %d with a quorum all the time, %v",
		calm.count, calm.longest.Round(100*time.Microsecond), near.count, near.longest.Round(100*time.Microsecond)), errors.Join(found...)
}

// first few of many.
func first(all []error, n int) error {
	return errors.Join(all[:min(len(all), n)]...)
}
