package redlock

import (
	"errors"
	"testing"
)

// deleted: the copy is gone now; absent: it certainly was not there; silent: no proof.
func TestRelease_ReturnsOneZeroOrUnknownAsTheMastersAnswersAllow(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	const n, quorum = 5, 3
	for deleted := 0; deleted <= n; deleted++ {
		for absent := 0; deleted+absent <= n; absent++ {
			for silent := 0; deleted+absent+silent <= n; silent++ {
				for _, valid := range []bool{false, true} {
					r := &release{
						locker: d.Locker, group: d.engine.Pool.Group(0), valid: valid,
						deleted: deleted, absent: absent, uncounted: silent,
					}
					for lane := range deleted + absent {
						r.missing.MarkCounted(lane)
					}
					released, err, decided := r.decideLocked()
					pending := n - deleted - absent - silent
					var unknown *NoQuorum
					ok := false
					switch {
					case deleted >= quorum: // a quorum held it
						ok = decided && released && err == nil
					case n-absent < quorum: // no quorum can have held it
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
