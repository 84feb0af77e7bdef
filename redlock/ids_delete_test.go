package redlock

// ids_delete_test.go: a counter is deleted by the operator's confirmation, on masters that are
// there, and what stays on others repeats no id.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/ids"
)

func wantFates(t *testing.T, got []CounterFate, want string) {
	t.Helper()
	var words []string
	for _, f := range got {
		words = append(words, f.Master+" "+f.Fate)
	}
	if strings.Join(words, ", ") != want {
		t.Errorf("fates %q, want %q", words, want)
	}
}

func TestDeleteCounter_NeedsTheValueThatTheMastersHave(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon().volatileIDs(), c.daemon().volatileIDs()
	one.draw("n", 41)
	for _, confirm := range []int64{0, 40, 42} {
		var wrong *NotConfirmed
		if _, err := one.deleteCounter("n", confirm); !errors.As(err, &wrong) || wrong.Value != 41 || !strings.Contains(err.Error(), "CONFIRM 41") {
			t.Fatalf("CONFIRM %d: %v", confirm, err)
		}
	}
	var wrong *NotConfirmed
	if _, err := one.deleteCounter("other", 0); !errors.As(err, &wrong) || !wrong.Absent {
		t.Fatalf("a counter that is not there: %v", err)
	}
	if got := one.draw("n", 1); got != 42 {
		t.Fatalf("id %d after refused deletions, want 42", got)
	}
	fates, err := one.deleteCounter("n", 42)
	if err != nil {
		t.Fatal(err)
	}
	wantFates(t, fates, "a deleted, b deleted, c deleted")
	if names := one.counters(0); len(names) != 0 {
		t.Errorf("still listed: %q", names)
	}
	last := int64(0)
	for _, d := range []*daemon{one, two, one, two} { // two may remember nothing or much: the order is what counts
		got := d.draw("n", 1)
		if last == 0 && got != 1 || got <= last {
			t.Fatalf("id %d after id %d", got, last)
		}
		last = got
	}
}

// Rule 4 of ids/delete.go, and the copy of a master that was down.
func TestDeleteCounter_ACopyThatAMasterKeptRepeatsNoID(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon(relayed).volatileIDs()
	two := c.daemon().volatileIDs()
	last := one.draw("n", 100)
	onC := func() bool {
		got, _ := c.do(2, "GET", "redlockd:id:n").(string)
		return strings.HasPrefix(got, "100@")
	}
	eventually(t, "c has the ids, too", onC)
	one.cutOff(2)
	fates, err := one.deleteCounter("n", last+99)
	if err != nil {
		t.Fatal(err)
	}
	wantFates(t, fates, "a deleted, b deleted, c unanswered")
	if !onC() {
		t.Fatal("c keeps no copy: the schedule is broken")
	}
	if last = one.draw("n", 1); last != 1 {
		t.Fatalf("id %d, want 1", last)
	}
	// The copy returns while the others leave in turn: ids jump above it and never fall.
	one.reconnect(2, "voting")
	for i := range 3 {
		one.cutOff(i)
		for _, d := range []*daemon{one, two, one} {
			got := d.draw("n", 1)
			if got <= last {
				t.Fatalf("without %s: id %d after id %d", name(i), got, last)
			}
			last = got
		}
		one.reconnect(i, "voting")
	}
	if last <= 100 {
		t.Errorf("the last id is %d: the copy of c never counted", last)
	}
}

// Rule 3 of ids/delete.go: by then the text may be that of a later counter.
func TestDeleteCounter_OnAMasterThatStoodStillDeletesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(relayed, blind, patient).volatileIDs()
	d.draw("n", 5)
	d.idle()
	for range 10 { // on a busy machine the others may be too late as well
		executed := c.calls("evalsha")
		d.relays[2].Pause(faulty.ToClient)
		outcome := d.deleting("n", 5)
		eventually(t, "all have shown the counter", func() bool { return c.calls("evalsha") >= executed+3 })
		d.relays[2].Pause(faulty.ToMaster)
		d.relays[2].Resume(faulty.ToClient)
		time.Sleep(ids.DeleteTime + 200*time.Millisecond)
		d.relays[2].Resume(faulty.ToMaster)
		fates, err := outcome()
		if got, _ := c.do(2, "GET", "redlockd:id:n").(string); !strings.HasPrefix(got, "5@") {
			t.Fatalf("c has %q: it deleted the counter too late; %v, %v", got, fates, err)
		}
		if err == nil {
			return
		}
	}
	t.Error("no deletion succeeded")
}

func TestDeleteCounter_OnTooFewMastersIsReported(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(relayed).volatileIDs()
	d.draw("n", 5)
	d.idle()
	d.cutOff(0)
	d.cutOff(1)
	_, err := d.deleteCounter("n", 5)
	noQuorum(t, err, "1 of 3", "nothing was deleted")
	if got, _ := c.do(2, "GET", "redlockd:id:n").(string); !strings.HasPrefix(got, "5@") {
		t.Errorf("c has %q afterwards", got)
	}
}

// What no quorum vouches for is not deleted: the value to confirm is not known.
func TestDeleteCounter_WhoseTruthIsLostNeedsDIDRESEEDFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, shortLived)
	d := c.daemon().volatileIDs()
	d.draw("n", 7)
	for i := range 2 {
		c.servers[i].FlushAll()
		d.await(i, "quarantined")
	}
	d.await(0, "voting")
	d.await(1, "voting")
	var lost *LostState
	if _, err := d.deleteCounter("n", 7); !errors.As(err, &lost) || lost.Trusted != 1 {
		t.Fatalf("deleted by the word of one master: %v", err)
	}
	if err := d.reseed("n", 7); err != nil {
		t.Fatal(err)
	}
	fates, err := d.deleteCounter("n", 7)
	if err != nil {
		t.Fatal(err)
	}
	wantFates(t, fates, "a deleted, b deleted, c deleted")
	// A counter that is not there may be a forgotten one on these masters.
	if got, err := d.ids("n", 1); !errors.As(err, &lost) {
		t.Errorf("id %d, %v, want LOSTSTATE", got, err)
	}
}

// A deletion beside a daemon that draws: no id above the confirmed one is repeated, and
// from the answer on the order holds.
func TestDeleteCounter_BesideIDsThatAreDrawn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon().volatileIDs(), c.daemon().volatileIDs()
	for round := range 3 {
		n := Key(fmt.Sprint("n", round))
		confirmed := one.draw(n, 10) + 9
		outcome := one.deleting(n, confirmed)
		above := map[int64]bool{}
		for range 40 {
			got := two.draw(n, 1)
			if got > confirmed && above[got] {
				t.Fatalf("id %d twice, above the confirmed %d", got, confirmed)
			}
			above[got] = true
		}
		if _, err := outcome(); err != nil {
			var inUse *InUse
			var wrong *NotConfirmed
			if !errors.As(err, &inUse) && !errors.As(err, &wrong) {
				t.Fatal(err)
			}
		}
		last := int64(0)
		for _, d := range []*daemon{one, two, one} {
			got := d.draw(n, 1)
			if got <= last || got > confirmed && above[got] {
				t.Fatalf("id %d after id %d", got, last)
			}
			last = got
		}
	}
}
