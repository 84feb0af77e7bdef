package lease

import (
	"fmt"
	"testing"
	"time"

	"redlockd/redlock/engine"
)

func TestNotes_OfLapsedLeasesAreForgotten(t *testing.T) {
	var n notes
	for i := range 4 * minSweep {
		n.add(engine.LeaseID{DB: 0, Key: engine.Key(fmt.Sprint(i)), Token: "token"}, storedNote{"text", time.Duration(i)}, time.Duration(i))
	}
	if left := n.count.Load(); left > 2*minSweep {
		t.Errorf("%d notes of lapsed leases are kept", left)
	}
	if text := n.take(engine.LeaseID{DB: 0, Key: engine.Key(fmt.Sprint(4*minSweep - 1)), Token: "token"}); text != "text" {
		t.Errorf("the last note is %q", text)
	}
}
