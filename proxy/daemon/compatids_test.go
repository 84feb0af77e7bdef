package daemon

// compatids_test.go: what --compat-test deletes.

import (
	"testing"

	"redlockd/pool/faulty"
)

// A suite that empties its Redis between two tests expects ids to begin anew.
func TestCompatTest_FLUSHDBDeletesIDs(t *testing.T) {
	t.Parallel()
	c := dial(t, serveHere(t, addresses(faulty.StartGroup(t, 3)), "--bootstrap", "--compat-test", "--ids-durability=off", "--key-prefix", "locks:"))
	c.ready(t)
	for range 2 {
		c.types(t, "DNEXTID orders", ":1", "DNEXTID orders", ":2", "SET k v NX PX 50000", "+OK", "FLUSHDB", "+OK", "GET k", "$-1")
	}
}
