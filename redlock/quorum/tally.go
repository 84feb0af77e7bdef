// Tally counts votes and decides whether a quorum agrees.

package quorum

// Result is what the votes so far decide.
type Result uint8

const (
	Undecided Result = iota
	Granted          // a quorum said yes
	Refused          // a quorum said no
	Split            // a quorum answered, but neither yes nor no has enough
	Unknown          // fewer than a quorum gave an answer that counts
)

// Tally counts the votes of one operation. Each master is counted once, because its lane
// answers once.
type Tally struct {
	N, Quorum int
	Yes, No   int // answers that count
	Uncounted int // answers that do not count: cut, late, void, quarantined, not asked
}

// Pending is how many masters have not answered yet.
func (t *Tally) Pending() int { return t.N - t.Yes - t.No - t.Uncounted }

// Result decides as soon as the answers still to come cannot change it. A refusal takes a
// quorum, too: of 4 masters, 2 may hold all that a change of masters left of a grant by 3 of 5.
func (t *Tally) Result() Result {
	switch {
	case t.Yes >= t.Quorum:
		return Granted
	case t.No >= t.Quorum:
		return Refused
	case t.Yes+t.Pending() >= t.Quorum, t.No+t.Pending() >= t.Quorum:
		return Undecided
	case t.Yes+t.No >= t.Quorum:
		return Split
	case t.Pending() == 0: // not earlier: the error reports how many masters answered
		return Unknown
	}
	return Undecided
}

// MostAlike is the answer that most of them are like, and how many are. Among several it is the
// first.
func MostAlike[T any](answers []T, alike func(a, b T) bool) (most T, n int) {
	for _, one := range answers {
		same := 0
		for _, other := range answers {
			if alike(one, other) {
				same++
			}
		}
		if same > n {
			most, n = one, same
		}
	}
	return most, n
}

// Answered is how many masters gave an answer that counts.
func (t *Tally) Answered() int { return t.Yes + t.No }
