package lease

import (
	"errors"
	"testing"

	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// decided is the outcome of a release after this decision.
func (d *pureDaemon) decided(r *release, v quorum.Result) (released bool, err error) {
	d.engine.EnterAlways()
	r.done = func(ok bool, failed error) { released, err = ok, failed }
	r.ballot.Engine = d.engine
	r.Decided(v)
	return released, err
}

// deleted: the copy is gone now; absent: it certainly was not there; silent: no proof.
func TestRelease_ReturnsOneZeroOrUnknownAsTheMastersAnswersAllow(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	const n, most = 5, 3
	for deleted := 0; deleted <= n; deleted++ {
		for absent := 0; deleted+absent <= n; absent++ {
			for silent := 0; deleted+absent+silent <= n; silent++ {
				for _, valid := range []bool{false, true} {
					r := &release{leases: d.Leases, valid: valid}
					v := r.Decide(&quorum.Tally{N: n, Quorum: most, Yes: deleted, No: absent, Uncounted: silent})
					decided := v != quorum.Undecided
					released, err := false, error(nil)
					if decided {
						for lane := range deleted + absent {
							r.ballot.Missing.MarkCounted(lane)
						}
						released, err = d.decided(r, v)
					}
					pending := n - deleted - absent - silent
					var unknown *engine.NoQuorum
					ok := false
					switch {
					case deleted >= most: // a quorum held it
						ok = decided && released && err == nil
					case n-absent < most: // no quorum can have held it
						ok = decided && !released && err == nil
					case pending > 0:
						ok = !decided
					case valid && deleted > 0:
						ok = decided && released && err == nil
					default:
						ok = decided && !released && errors.As(err, &unknown) && unknown.Answered == deleted+absent
					}
					if !ok {
						t.Errorf("deleted %d, absent %d, silent %d, valid %v: %v, %v, decided %v", deleted, absent, silent, valid, released, err, decided)
					}
				}
			}
		}
	}
}
