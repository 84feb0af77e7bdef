package redlock

// listlocks_embedded_test.go: the walk over more locks than one reply of a master may list.

import (
	"fmt"
	"testing"
	"time"
)

// The pool closes the connection of a master whose reply has more than 4,096 elements.
func TestListLocks_WalksManyLocksOfEmbeddedMasters(t *testing.T) {
	t.Parallel()
	const locks = 5000
	d := embeddedOf(t, 3)
	for i := range d.engine.Pool.N() {
		m := d.engine.Pool.Embedded().At(i)
		for n := range locks {
			key := fmt.Sprint("held-", n)
			if err := m.Server().Set(key, "the-token-of-this-lock"); err != nil {
				t.Fatal(err)
			}
			m.SetTTL(key, time.Hour)
		}
	}
	d.take("before", time.Minute) // its lanes are connected
	dials := d.engine.Pool.Counters().Dials
	told := walkOver(t, []*daemon{d}, Listing{Count: 1000, Prefix: "held-"}, nil)
	if len(told) != locks {
		t.Errorf("%d locks were told, want all %d", len(told), locks)
	}
	if again := d.engine.Pool.Counters().Dials - dials; again != 0 {
		t.Errorf("%d connections were opened again, want none closed", again)
	}
	d.take("after", time.Minute)
}
