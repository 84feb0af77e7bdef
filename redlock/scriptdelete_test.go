package redlock

// scriptdelete_test.go: DEL of a lock while another client tries to acquire it.

import (
	"slices"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

func TestWrite_DeletesOnlyWhatAQuorumHolds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	c.do(0, "SET", "k", "somebody who is asking", "PX", 60000)
	for _, i := range []int{1, 2} {
		c.do(i, "SET", "k", "the holder's value", "PX", 60000)
	}
	if was, err := d.write(WriteRequest{Key: "k"}); !was || err != nil {
		t.Errorf("deleted: %v, %v", was, err)
	}
	d.idle()
	if got := c.copies("k"); !slices.Equal(got, []string{"somebody who is asking", "", ""}) {
		t.Errorf("left are %q", got)
	}
	if was, err := d.write(WriteRequest{Key: "k"}); was || err != nil {
		t.Errorf("deleted what no quorum holds: %v, %v", was, err)
	}
}

// An empty value cannot be told from "whatever is there" when it is compared.
func TestWrite_DeletesALockWhoseValueIsEmpty(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	for _, i := range []int{0, 1, 2} {
		c.do(i, "SET", "k", "", "PX", 60000)
	}
	if was, err := d.write(WriteRequest{Key: "k"}); !was || err != nil {
		t.Errorf("deleted: %v, %v", was, err)
	}
	d.idle()
	if !c.empty(0, 1, 2) {
		t.Error("it is still there")
	}
}

// The copy on the master that was away stays, and another client may have the lock by then.
func TestWrite_ADeletedLockIsOverForTheReleaseToo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 10*time.Minute)
	d, other := c.daemon(relayed), c.daemon()
	d.takeAs("k", "token-of-mine", 4*time.Minute)
	d.settled(0, 1, 2)
	d.relays[2].Pause(faulty.ToMaster)
	if was, err := d.write(WriteRequest{Key: "k"}); !was || err != nil {
		t.Fatalf("deleted: %v, %v", was, err)
	}
	if _, err := other.lock("k", time.Minute); err != nil {
		t.Fatal(err)
	}
	d.relays[2].Cut()
	d.relays[2].Resume(faulty.ToMaster)
	d.settled(2)
	c.staleCopyProvesNothing(d, "k", "token-of-mine")
}
