package wait

import (
	"slices"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// spanning is a connection with leases of several groups of masters.
type spanning []engine.LeaseID

func (s spanning) Holds(func(engine.LeaseID) bool) []engine.LeaseID { return s }

// An edge on the masters of another group would show no wait, and the answer would wait for
// its deletion.
func TestEdges_AreOfLeasesOfTheSameGroup(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	g := d.take("k", time.Minute)
	here, elsewhere := engine.LeaseID{Key: "k", Token: g.Token}, engine.LeaseID{Key: "another group's", Token: "another token"}
	r := &Request{LockRequest: lease.LockRequest{Key: "l"}, Owner: spanning{elsewhere, here}}
	if held := (&waiterEdges{leases: d.Leases, request: r}).holds(); !slices.Equal(held, []engine.LeaseID{here}) {
		t.Errorf("edges for %v, want for %v alone", held, here)
	}
}
