package redlock

// drain_test.go: no operation misses a master that is being drained: locks of all modes, FAIR,
// ids and work on real masters, one of which receives nothing.

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// drain stops a daemon from sending to a master.
func (d *daemon) drain(i int) {
	d.t.Helper()
	if err := d.DrainMaster(name(i)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) undrain(i int) {
	d.t.Helper()
	if err := d.UndrainMaster(name(i)); err != nil {
		d.t.Fatal(err)
	}
}

func TestDrain_WhatTheMasterHoldsIsExtendedRepairedElsewhereAndReleased(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	d := c.daemon()
	held := d.take("k", long/3)
	c.do(3, "DEL", "k")
	c.do(4, "DEL", "k")
	d.drain(2)
	before := c.ends(2, "k")
	if _, err := d.extend("k", held.Token, long); err != nil {
		t.Fatal(err)
	}
	d.idle()
	if after := c.ends(2, "k"); after <= before {
		t.Errorf("the drained master's copy ends at %d, as before the extension", after)
	}
	eventually(t, "the copy is made again where it was lost", func() bool {
		return !slices.Contains(c.copies("k"), "")
	})
	c.do(2, "DEL", "k") // it would be repaired here, too, if the master were not being drained
	if _, err := d.extend("k", held.Token, long); err != nil {
		t.Fatal(err)
	}
	d.idle()
	if all := c.copies("k"); all[2] != "" || all[3] == "" {
		t.Errorf("copies %q: want none made on the drained master", all)
	}
	other := d.take("another", long)
	if all := c.copies("another"); all[2] != "" || slices.Contains(slices.Delete(all, 2, 3), "") {
		t.Errorf("copies %q: want all but that of the drained master", all)
	}
	d.undrain(2)
	d.refuse("another", long) // the returning master's yes makes no quorum
	d.free("another", other.Token)
	d.free("k", held.Token)
	if !c.empty(0, 1, 2, 3, 4) {
		t.Error("something is left on the masters")
	}
}

func TestDrain_NothingMissesTheMasterWhileItIsStoppedAndStartedAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, 5*time.Second, durable...)
	d, other := c.daemon(), c.daemon()
	before := d.take("before", time.Second)
	first := d.draw("n", 1)
	d.idle()
	dump := c.do(2, "DUMP", "redlockd:id:n")
	d.drain(2)
	other.drain(2)
	d.await(2, "draining")
	eventually(t, "no lock rests on the master any more", func() bool { state, _ := d.state(2); return state == "drained" })
	if was, err := d.unlock("before", before.Token); was || err != nil {
		t.Errorf("a lease longer than the drain: %v, %v", was, err)
	}
	d.draw("n", 1)
	d.idle()
	if c.do(2, "DUMP", "redlockd:id:n") != dump {
		t.Error("the drained master was asked for ids")
	}
	c.servers[2].Kill()
	for range 20 { // each of them is decided by the other four
		g := d.take("k", 5*time.Second)
		other.refuse("k", 5*time.Second)
		d.free("k", g.Token)
	}
	second := other.draw("n", 3)
	c.servers[2].Restart()
	eventually(t, "the master is there again", func() bool { state, _ := d.state(2); return state == "drained" })
	third := d.draw("n", 1)
	d.undrain(2)
	other.undrain(2)
	d.await(2, "voting")
	if fourth := other.draw("n", 1); first >= second || second+2 >= third || third >= fourth {
		t.Errorf("ids %d, %d, %d, %d", first, second, third, fourth)
	}
}

func TestDrain_KeepsModesFairnessAndWorkAsTheyAre(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	held := one.take("k", long)
	first, _ := one.stands("k", LockRequest{}) // it stands on the master that will be drained, too
	one.drain(2)
	two.drain(2)
	second, _ := two.stands("k", LockRequest{})
	eventually(t, "both stand on master b", func() bool { return c.queued(1, "k") == 2 }) // a ticket may need another try
	one.idle()
	two.idle()
	if m := c.queued(2, "k"); m != 1 {
		t.Errorf("%d stand on master c, want only the first", m)
	}
	one.free("k", held.Token)
	g := got(t, first)
	if len(second) > 0 {
		t.Error("two waiters were served together")
	}
	one.free("k", g.Token)
	g = got(t, second)
	two.free("k", g.Token)
	c.noQueues("k")

	readers := []lockAnswer{receive(t, one.request(LockRequest{Key: "r", TTL: long, Mode: Readers})), receive(t, two.request(LockRequest{Key: "r", TTL: long, Mode: Readers}))}
	if readers[0].err != nil || readers[1].err != nil {
		t.Fatal(readers)
	}
	isHeld(t, one.refuse("r", long))
	permit := func(d *daemon) error {
		return receive(t, d.request(LockRequest{Key: "p", TTL: long, Mode: PermitsOf(2)})).err
	}
	if err := errors.Join(permit(one), permit(two)); err != nil {
		t.Error(err)
	}
	isHeld(t, permit(one))

	w := WorkRequest{Key: "w", Timeout: long / 2, Max: 2}
	attempt := one.find(w, WorkAcquired, 1)
	two.find(w, WorkRunning, 1)
	one.giveUp(attempt, true)
	attempt = two.find(w, WorkAcquired, 2)
	one.undrain(2)
	two.undrain(2)
	two.finish(attempt, true)
	one.find(w, WorkDone, 2)
}

func TestDrain_AQuorumThatFailsBesideItIsReportedAsNoQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.drain(2)
	c.servers[1].Kill()
	d.await(1, "down")
	_, err := d.lock("k", long)
	noQuorum(t, err, "b=", "c="+c.servers[2].Addr()+" draining")
	d.undrain(2)
	d.free("k", d.take("k", long).Token)
}
