package chaos

// excuses_test.go: which fault explains that a promise of service was not kept?
//
// Exclusion, fences and releases have no excuse. That a HOLD lasts, that nobody
// is passed in a queue, that a free key does not lie idle are promised as long as
// the daemon runs and reaches a quorum of masters that remember. So the log of
// faults is asked: was there an instant at which it could not? A master counts as
// away while a fault is upon it, or upon its link to this daemon, and for the time
// it takes after that to be found, and to be told again what it missed. What the
// clients were told (NOQUORUM, say) is no excuse: it is what is judged.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"redlockd/redlock/judge"
)

// terms say how much of the world's failing a promise stands.
type terms struct {
	returns time.Duration // after a fault, until the promise is as good as new
	stall   time.Duration // of the daemon without a processor, all together
	settles time.Duration // from its beginning, until it stands the loss of a master
}

// A HOLD is renewed each third of its ttl and asks each twentieth of it while that
// is not decided. So a master that is back (0.5 s at most, ten times the aim) is
// healed by the next renewal, 0.34 s later at most. The two thirds of the shortest
// ttl (0.5 s) that are left for asking again are 330 ms; a daemon that does not run
// for half of it, in pieces, gives up its masters over and over. Beside contenders a
// bare quorum may be all that has a copy: the others get theirs when who competes has
// taken its copies back, for which its daemon may stand still as long as any, and when
// they are asked again, which is put off no longer than it has taken so far.
var holdTerms = terms{
	returns: 10*promptly + maxTTL/3 + 150*time.Millisecond,
	stall:   holdStall,
	settles: 2 * holdStall,
}

const holdStall = 160 * time.Millisecond

// A place in the queue of FAIR is told again to all masters each second, and lasts
// three.
var queueTerms = terms{returns: 10*promptly + time.Second, stall: 500 * time.Millisecond}

// A waiter that heard no news of a key asks twice a second.
var waitTerms = terms{returns: 10*promptly + polled, stall: 160 * time.Millisecond}

// excuse names what explains that a daemon did not keep a promise between two
// instants; "" if nothing does. Faults that are harmless to the promise are not
// looked at.
func (n *nemesis) allowedError(daemon int, from, to time.Duration, terms terms, harmless ...string) string {
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
		if ends < judge.Never {
			ends += terms.returns
		}
		if ends = min(ends, to); begins > ends || slices.Contains(harmless, one.fault) {
			continue
		}
		switch v := one.victim; {
		case v.scope == onDaemon && v.daemon == daemon:
			return one.fault
		case v.scope == onDaemon, v.scope == onLink && v.daemon != daemon:
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

// quiet tells whether no fault was under way between two instants, and a daemon had
// its machine.
func (n *nemesis) quiet(daemon int, from, to time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stoodLocked(daemon, from, to) == 0 &&
		!slices.ContainsFunc(n.all, func(one *strike) bool { return one.from <= to && one.to >= from })
}

// allVote: every master votes for everybody, whatever was upon it is over.
func (n *nemesis) allVote() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.all {
		one.to = min(one.to, n.since())
	}
}
