package chaos

// allowederrors_test.go: the faults that explain why a promise of service was not kept.
//
// No fault allows an error of exclusion, fences or releases. That a HOLD lasts, that no
// waiter is passed in a queue, that a free key does not lie idle are promised as long as
// the daemon runs and reaches a quorum of masters that have their memory. So the log of
// faults is searched for an instant at which it could not. A master counts as
// away while a fault is upon it, or upon its link to this daemon, and for the time
// that it takes after that to be found, and to get again what it missed. The replies to
// clients (NOQUORUM, for example) explain nothing: they are what is checked.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"redlockd/redlock/checker"
)

// terms are how many faults a promise survives.
type terms struct {
	returns time.Duration // after a fault, until the promise is as good as new
	stall   time.Duration // of the daemon without a processor, all together
	settles time.Duration // from its beginning, until it stands the loss of a master
}

// A HOLD is renewed each third of its ttl and retried each twentieth of it while that
// is not decided. So a master that is back (0.5 s at most, ten times the aim) is
// repaired by the next renewal, 0.34 s later at most. The two thirds of the shortest
// ttl (0.5 s) that are left for retries are 330 ms; a daemon that does not run
// for half of it, in pieces, gives up its masters over and over. Under contention only a
// bare quorum may have a copy. The others get theirs when the contender has
// taken its copies back, for which its daemon may stand still as long as any, and when
// they are retried, which is put off no longer than it has taken so far.
var holdTerms = terms{
	returns: 10*promptly + maxTTL/3 + 150*time.Millisecond,
	stall:   holdStall,
	settles: 2 * holdStall,
}

const holdStall = 160 * time.Millisecond

// A ticket in the queue of FAIR is refreshed on all masters each second, and lasts
// three.
var queueTerms = terms{returns: 10*promptly + time.Second, stall: 500 * time.Millisecond}

// A waiter that receives no announcement of a key polls twice a second.
var waitTerms = terms{returns: 10*promptly + polled, stall: 160 * time.Millisecond}

// allowedError names the fault that explains why a daemon did not keep a promise about a key
// between two instants; "" if none does. Faults that are harmless to the promise are left
// out, and those of the masters that do not have the key.
func (n *nemesis) allowedError(daemon int, key string, from, to time.Duration, terms terms, harmless ...string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stood := n.stoodLocked(daemon, from, to); stood > terms.stall {
		return fmt.Sprintf("it was kept from running for %v", stood)
	}
	type edge struct {
		at     time.Duration
		master int
		by     int
	}
	var edges []edge
	for _, one := range n.all {
		begins, ends := max(one.from, from), one.to
		if ends < checker.Never {
			ends += terms.returns
		}
		if ends = min(ends, to); begins > ends || slices.Contains(harmless, one.fault) {
			continue
		}
		switch v := one.victim; {
		case v.scope == onAll, v.scope == onDaemon && v.daemon == daemon:
			return one.fault
		case v.scope == onDaemon, v.scope == onLink && v.daemon != daemon, n.stand.groupOfMaster(v.master) != n.stand.groupOf(key):
		case one.from >= from && one.from < from+terms.settles:
			return fmt.Sprintf("%s when all that held it may have been a quorum", one.fault)
		default:
			edges = append(edges, edge{begins, v.master, 1}, edge{ends, v.master, -1})
		}
	}
	// At the same instant a beginning comes first: one master may take over from
	// another.
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), b.by-a.by) })
	upon := map[int]int{} // master -> faults
	for _, e := range edges {
		if upon[e.master] += e.by; upon[e.master] == 0 {
			delete(upon, e.master)
		}
		if len(upon) > n.stand.minority() {
			return fmt.Sprintf("%d masters were away at %v", len(upon), e.at)
		}
	}
	return ""
}

// quiet reports whether no fault was under way between two instants, and a daemon had
// its machine.
func (n *nemesis) quiet(daemon int, from, to time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stoodLocked(daemon, from, to) == 0 &&
		!slices.ContainsFunc(n.all, func(one *strike) bool { return one.from <= to && one.to >= from })
}

// allVote: every master votes for every daemon, all its faults are over.
func (n *nemesis) allVote() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.all {
		one.to = min(one.to, n.since())
	}
}
