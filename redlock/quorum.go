// This file counts votes and decides whether a quorum agrees. It uses no network, clock
// or goroutine.

package redlock

// ballotResult is what the votes so far decide.
type ballotResult uint8

const (
	undecided ballotResult = iota
	granted                // a quorum said yes
	refused                // so many said no that a quorum of yes is impossible
	split                  // a quorum answered, but neither yes nor no has enough
	unknown                // fewer than a quorum gave an answer that counts
)

// tally counts the votes of one operation. Each master is counted once, because its lane
// answers once.
type tally struct {
	n, quorum int
	yes, no   int // answers that count
	uncounted int // answers that do not count: cut, late, void, quarantined, not asked
}

// pending is how many masters have not answered yet.
func (t *tally) pending() int { return t.n - t.yes - t.no - t.uncounted }

// result decides as soon as the answers still to come cannot change it.
func (t *tally) result() ballotResult {
	switch {
	case t.yes >= t.quorum:
		return granted
	case t.no > t.n-t.quorum:
		return refused
	case t.yes+t.pending() >= t.quorum, t.no+t.pending() > t.n-t.quorum:
		return undecided
	case t.yes+t.no >= t.quorum:
		return split
	case t.pending() == 0: // not earlier: the error reports how many masters answered
		return unknown
	}
	return undecided
}

// answered is how many masters gave an answer that counts.
func (t *tally) answered() int { return t.yes + t.no }
