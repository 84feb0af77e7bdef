package lease

import (
	"errors"
	"testing"
	"time"

	"redlockd/redlock/engine"
)

// A client of plain SET NX takes nil for the lock of another client, and a copy of a ballot that was
// not answered in time would look like one.
func TestRepeat_ARefusalAfterItIsUnknownToAClientWithAValue(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	for _, unanswered := range []time.Duration{0, 1} {
		for _, valued := range []bool{false, true} {
			c := &acquireCall{leases: d.Leases, unanswered: unanswered, request: LockRequest{Key: "k", Token: "value", Valued: valued}}
			c.first.call = c
			c.first.ballot.Prepare(d.engine, d.engine.Pool.Group(0), &c.first)
			var unknown *engine.NoQuorum
			if err := c.refusalError(&c.first, engine.ErrHeld); errors.As(err, &unknown) != (unanswered != 0 && valued) {
				t.Errorf("unanswered %v, valued %v: %v", unanswered, valued, err)
			}
		}
	}
}
