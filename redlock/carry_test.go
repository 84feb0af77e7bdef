package redlock

// carry_test.go: ids go on and work stays known after masters have been added, removed and replaced.

import (
	"fmt"
	"testing"
	"time"
)

// carrying are durable masters of which some are a group.
func carrying(t *testing.T, n int, masters ...int) *cluster {
	t.Helper()
	c := newCluster(t, n, carryTTL, durable...)
	c.maxKeep = time.Minute
	c.bootstrapOf(masters...)
	return c
}

const carryTTL = 200 * time.Millisecond

// awaitList waits until the masters of a list vote for the daemon.
func (d *daemon) awaitList(masters ...int) {
	d.t.Helper()
	d.lists(masters...)
	for _, i := range masters {
		d.await(d.laneOf(i), "voting")
	}
}

// laneOf is where the daemon lists a master.
func (d *daemon) laneOf(master int) int {
	d.t.Helper()
	for lane, m := range d.Masters(0) {
		if m.Name == name(master) {
			return lane
		}
	}
	d.t.Fatalf("the daemon does not list master %s", name(master))
	return 0
}

// changeLists are sequences of lists of masters.
var changeLists = map[string][][]int{
	"two of three replaced": {{0, 1, 2}, {3, 1, 2}, {3, 4, 2}},
	"three become five":     {{0, 1, 2}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}, {5, 1, 2, 3, 4}},
	"five become three":     {{0, 1, 2, 3, 4}, {1, 2, 3, 4}, {2, 3, 4}},
	"all replaced":          {{0, 1, 2}, {3, 1, 2}, {3, 4, 2}, {3, 4, 5}},
	"there and back":        {{0, 1, 2}, {3, 1, 2}, {0, 1, 2}},
}

func TestCarry_IDsGoOnAfterChanges(t *testing.T) {
	t.Parallel()
	for title, lists := range changeLists {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c := carrying(t, 6, lists[0]...)
			d := c.startDaemon(listing(lists[0]...))
			d.awaitList(lists[0]...)
			if last := d.draw("idle", 41) + 40; last != 41 {
				t.Fatalf("the last id is %d, want 41", last)
			}
			for i, list := range lists[1:] {
				c.reconfigure(list...)
				d.awaitList(list...)
				if got := d.draw(Key(fmt.Sprint("new", i)), 1); got != 1 {
					t.Errorf("id %d of a counter that was never used, after change %d, want 1", got, i+1)
				}
			}
			if got := d.draw("idle", 1); got != 42 {
				t.Errorf("id %d of a counter that was idle, want 42", got)
			}
		})
	}
}

func TestCarry_WorkIsKnownAfterChanges(t *testing.T) {
	t.Parallel()
	request := func(key Key) WorkRequest {
		return WorkRequest{Key: key, Timeout: carryTTL, Max: 3, Keep: time.Minute}
	}
	for title, lists := range changeLists {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c := carrying(t, 6, lists[0]...)
			d := c.startDaemon(listing(lists[0]...))
			d.awaitList(lists[0]...)
			d.finishWith(d.find(request("done"), WorkAcquired, 1), "result")
			d.find(request("died"), WorkAcquired, 1)
			d.giveUp(d.find(request("failed"), WorkAcquired, 1), true)
			for i, list := range lists[1:] {
				c.reconfigure(list...)
				d.awaitList(list...)
				d.find(request(Key(fmt.Sprint("new", i))), WorkAcquired, 1)
			}
			d.leftBy(request("done"), 1, "result")
			d.find(request("died"), WorkAcquired, 2)
			d.find(request("failed"), WorkAcquired, 2)
		})
	}
}

// A minority that missed what a quorum of five acknowledged is a quorum of three later on.
func TestCarry_AMinorityThatMissedItIsAQuorumLater(t *testing.T) {
	t.Parallel()
	c := carrying(t, 5, 0, 1, 2, 3, 4)
	one := c.startDaemon(relayed)
	one.awaitList(0, 1, 2, 3, 4)
	one.cutOff(3)
	one.cutOff(4)
	last := one.draw("n", 100) + 99
	request := WorkRequest{Key: "done", Timeout: carryTTL, Max: 3, Keep: time.Minute}
	one.finish(one.find(request, WorkAcquired, 1), true)
	if err := one.Close(patience); err != nil {
		t.Fatal(err)
	}
	c.reconfigure(1, 2, 3, 4)
	c.reconfigure(2, 3, 4)
	two := c.startDaemon(listing(2, 3, 4), relayed)
	two.awaitList(2, 3, 4)
	two.cutOff(0)
	if got := two.draw("n", 1); got <= last {
		t.Errorf("id %d was given after id %d", got, last)
	}
	two.find(request, WorkDone, 1)
}
