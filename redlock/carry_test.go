package redlock

// carry_test.go: ids go on and work stays known after masters have been added, removed and replaced.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/setup"
)

// carrying are durable masters of which some are a group.
func carrying(t *testing.T, n int, masters ...int) *cluster {
	t.Helper()
	c := newCluster(t, n, carryTTL, durable...)
	c.maxKeep = time.Minute
	c.bootstrapOf(masters...)
	return c
}

// carried is such a group, and a daemon for which all of it votes.
func carried(t *testing.T, n int, masters ...int) (*cluster, *daemon) {
	t.Helper()
	c := carrying(t, n, masters...)
	d := c.startDaemon(listing(masters...))
	d.awaitList(masters...)
	return c, d
}

// missedByTwo is a group of five masters, and a daemon that does not reach the last two.
func missedByTwo(t *testing.T) (*cluster, *daemon) {
	t.Helper()
	c := carrying(t, 5, 0, 1, 2, 3, 4)
	d := c.startDaemon(relayed)
	d.awaitList(0, 1, 2, 3, 4)
	d.cutOff(3)
	d.cutOff(4)
	return c, d
}

const carryTTL = time.Second

// awaitList waits until the masters of a list vote for the daemon, which has noticed what they know.
func (d *daemon) awaitList(masters ...int) {
	d.t.Helper()
	d.lists(masters...)
	for range 2 {
		for _, i := range masters {
			d.await(d.laneOf(i), "voting")
		}
		noticed := make(chan error, 1)
		d.ReadCounter(0, "none", func(_ Counter, err error) { noticed <- err })
		_ = receive(d.t, noticed) // a master whose identity has changed is admitted again
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
			c, d := carried(t, 6, lists[0]...)
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
			c, d := carried(t, 6, lists[0]...)
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

// Rule: carry. A minority that missed what a quorum of five acknowledged is a quorum of three later on.
func TestCarry_AMinorityThatMissedItIsAQuorumLater(t *testing.T) {
	t.Parallel()
	c, one := missedByTwo(t)
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

// The same, if the changes are also of a limit.
func TestCarry_AMinorityThatMissedItIsAQuorumOfOtherLimits(t *testing.T) {
	t.Parallel()
	c, one := missedByTwo(t)
	last := one.draw("n", 100) + 99
	if err := one.Close(patience); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]int{{1, 2, 3, 4}, {2, 3, 4}} {
		c.maxTTL += 100 * time.Millisecond
		c.reconfigure(list...)
	}
	two := c.startDaemon(listing(2, 3, 4), relayed)
	two.awaitList(2, 3, 4)
	two.cutOff(0)
	if got := two.draw("n", 1); got != last+1 {
		t.Errorf("id %d was given after id %d", got, last)
	}
}

// Rule: carry-unsure. Only a remembers the counter, and is away; b has forgotten it, and c never had it.
func TestCarry_NobodyVouchesForIDsThatNoQuorumRemembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, carryTTL, durable...)
	c.maxKeep = carryTTL // b knows of work before long
	c.bootstrapOf(0, 1, 2)
	one := c.startDaemon(listing(0, 1, 2), relayed)
	one.awaitList(0, 1, 2)
	one.cutOff(2)
	last := one.draw("n", 100) + 99
	c.do(1, "FLUSHDB")
	two := c.startDaemon(listing(0, 1, 2))
	two.awaitList(0, 1, 2)
	c.servers[0].Kill()
	c.reconfigure(3, 1, 2)
	two.awaitList(3, 1, 2)
	first, err := two.ids("n", 1)
	if err == nil {
		t.Fatalf("id %d was given after id %d, and no quorum remembers either", first, last)
	}
	lostState(t, err, 1)
	if err := two.reseed("n", last); err != nil {
		t.Fatal(err)
	}
	if got := two.draw("n", 1); got != last+1 {
		t.Errorf("id %d, want %d", got, last+1)
	}
}

// Rule: carry-lowers. Ids are drawn between what a change reads of the counter and what it writes.
func TestCarry_IDsThatAreDrawnMeanwhileAreNotRepeated(t *testing.T) {
	t.Parallel()
	c, d := carried(t, 4, 0, 1, 2)
	last := d.draw("n", 1)
	o := c.optionsFor(3, 1, 2)
	var first sync.Once
	hooked(&o, func(_ string, commands []pool.Command, exchange func([]pool.Command) []pool.Reply) []pool.Reply {
		if slices.Contains(commands[0].Args, "redlockd:id:n") && commands[0].Args[0] == "EVAL" {
			first.Do(func() {
				last = d.draw("n", 10) + 9
				d.settled(0, 1, 2)
			})
		}
		return exchange(commands)
	})
	if err := setup.Reconfigure(t.Context(), o, setup.ChangeTerms{}, t.Output()); err != nil {
		t.Fatal(err)
	}
	two := c.startDaemon(listing(3, 1, 2))
	two.awaitList(3, 1, 2)
	if got := two.draw("n", 1); got != last+1 {
		t.Errorf("id %d was given after id %d", got, last)
	}
}

// A command is killed after each of its writes, and run again.
func TestCarry_ACommandThatIsKilledIsRunAgain(t *testing.T) {
	t.Parallel()
	c, d := carried(t, 5, 0, 1, 2)
	d.draw("idle", 41)
	for i, list := range [][]int{{3, 1, 2}, {3, 4, 2}} {
		for kill := 1; ; kill++ {
			ctx, end := context.WithCancel(t.Context())
			o, n := c.optionsFor(list...), 0
			aroundScripts(&o, "redlockd:seal", func(_ string, send func()) {
				if n++; n > kill {
					end()
					return
				}
				send()
			})
			err := setup.Reconfigure(ctx, o, setup.ChangeTerms{}, t.Output())
			end()
			if n <= kill && err == nil {
				break
			}
		}
		d.awaitList(list...)
		if got := d.draw(Key(fmt.Sprint("new", i)), 1); got != 1 {
			t.Errorf("id %d of a new counter, want 1", got)
		}
	}
	if got := d.draw("idle", 1); got != 42 {
		t.Errorf("id %d of a counter that was idle, want 42", got)
	}
}

// A counter that masters which are away may remember is not given up.
func TestCarry_AChangeThatWouldForgetIDsIsRefused(t *testing.T) {
	t.Parallel()
	c, d := carried(t, 4, 0, 1, 2)
	d.draw("n", 100)
	d.settled(0, 1, 2)
	c.do(1, "FLUSHDB")
	d.await(1, "quarantined")
	d.await(1, "voting")
	c.servers[0].Kill()
	err := setup.Reconfigure(t.Context(), c.optionsFor(3, 1, 2), setup.ChangeTerms{}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "counter 'n' (database 0) is remembered by 1 trusted masters of group default, 2 needed, and the highest value found is 100; nothing was changed. Bring back masters that are away, or set it with DIDRESEED") {
		t.Fatal(err)
	}
	c.servers[0].Restart()
	c.reconfigure(3, 1, 2)
	d.awaitList(3, 1, 2)
	if got := d.draw("n", 1); got != 101 {
		t.Errorf("id %d, want 101", got)
	}
}

// What was lost is shown until a quorum remembers it again.
func TestCarry_WhatIsLostIsShown(t *testing.T) {
	t.Parallel()
	c, d := carried(t, 4, 0, 1, 2)
	shows := func(work, counters int) {
		t.Helper()
		reports := d.Reports(0)
		gotWork, in := pool.WorkVoters(reports)
		gotCounters, possible := pool.CounterVoters(reports)
		if gotWork != work || gotCounters != counters || !possible || (in > 0) != (work < 2) || in > time.Minute+c.age() {
			t.Errorf("%d masters vote on new work, a quorum in %v, and %d on new counters (possible: %v); want %d and %d", gotWork, in, gotCounters, possible, work, counters)
		}
	}
	shows(3, 3)
	c.do(2, "FLUSHDB")
	d.await(2, "quarantined")
	d.awaitList(0, 1, 2)
	shows(2, 2)
	c.reconfigure(3, 1, 2) // it gives c what the others remember, and d
	d.awaitList(3, 1, 2)
	shows(3, 3)
	for i := 1; i < 3; i++ {
		c.do(i, "FLUSHDB")
		d.await(d.laneOf(i), "quarantined")
	}
	d.awaitList(3, 1, 2)
	shows(1, 1)
	ctx, end := context.WithCancel(t.Context())
	out := &endingOutput{says: "work, database 0: 1 of 3 masters may vote on new work: waiting ", end: end}
	if err := setup.AwaitVotes(ctx, c.optionsFor(3, 1, 2), out); err == nil || ctx.Err() == nil {
		t.Error(err, out.String())
	}
}

// endingOutput is the output of a command that is ended when it has written something.
type endingOutput struct {
	strings.Builder
	says string
	end  func()
}

func (e *endingOutput) Write(p []byte) (int, error) {
	if strings.Contains(string(p), e.says) {
		e.end()
	}
	return e.Builder.Write(p)
}
