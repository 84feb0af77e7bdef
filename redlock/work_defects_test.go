package redlock

// work_defects_test.go replays what is known to go wrong with attempt counters
// that are read, incremented and written back, and with flags that nobody owns.

import (
	"sync"
	"testing"
	"time"
)

// brief is a lease that ends while a test looks on.
const brief = 1500 * time.Millisecond

// Defect: two checkers see an attempt time out, and both start the next one.
func TestWork_OfAnAttemptThatTimedOutIsTakenOverByOneAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	const rounds = 5
	request := func(round int) WorkRequest {
		return WorkRequest{Key: key(round), Timeout: brief, Max: 5, Keep: long}
	}
	for round := range rounds {
		one.find(request(round), WorkAcquired, 1)
	}
	for round := range rounds {
		r := request(round)
		c.lapsed(r.Key)
		r.Timeout = long
		if runs, _ := contend(t, r, 8, one, two); len(runs) > 1 || len(runs) == 1 && runs[0].Attempt != 2 {
			t.Fatalf("work %q: the attempts %v were started at once, want number 2 alone", r.Key, runs)
		} else if len(runs) == 0 {
			one.find(r, WorkAcquired, 2) // nobody had a quorum, and nothing is used up
		}
		c.allExpire()
	}
}

// contend has workers ask all at once, and returns the attempts that were given
// and the other answers.
func contend(t *testing.T, r WorkRequest, workers int, daemons ...*daemon) (runs []Work, others []workAnswer) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range workers {
		group.Go(func() {
			<-start
			a := <-daemons[i%len(daemons)].requestWork(r)
			mu.Lock()
			defer mu.Unlock()
			if a.err == nil && a.work.State == WorkAcquired {
				runs = append(runs, a.work)
				return
			}
			others = append(others, a)
		})
	}
	close(start)
	group.Wait()
	return runs, others
}

// Defect: DONE was read as a number, and the work ran again as attempt NaN.
// Defect: the first who saw DONE deleted it, and a late starter did it again.
func TestWork_ThatIsDoneIsDoneForAllCallersUntilItIsForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	r := WorkRequest{Key: "k", Timeout: long, Max: 5, Keep: long}
	one.finish(one.find(r, WorkAcquired, 1), true)
	for range 20 {
		for _, d := range []*daemon{one, two, c.daemon()} {
			d.find(r, WorkDone, 1)
		}
	}
	if runs, _ := contend(t, r, 16, one, two); len(runs) > 0 {
		t.Fatalf("work that is done was started again: %v", runs)
	}
	c.allExpire()
	soon := WorkRequest{Key: "soon", Timeout: long, Max: 1, Keep: brief}
	two.finish(two.find(soon, WorkAcquired, 1), true)
	eventually(t, "it is forgotten", func() bool {
		w, err := one.tryWork(soon)
		return err == nil && w.State == WorkAcquired && w.Attempt == 1
	})
}

// Defect: a worker that was taken over declared the work done, or deleted the
// attempt of its successor.
func TestWork_IsNotEndedByAWorkerThatWasTakenOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	r := WorkRequest{Key: "k", Timeout: brief, Max: 3, Keep: long}
	stale := one.find(r, WorkAcquired, 1)
	c.lapsed("k")
	r.Timeout = long
	current := two.find(r, WorkAcquired, 2)
	if current.Fence <= stale.Fence {
		t.Errorf("attempt 2 has fence %d, attempt 1 had %d", current.Fence, stale.Fence)
	}
	for _, d := range []*daemon{one, two} {
		d.finish(stale, false)
		d.giveUp(stale, false)
		_, err := d.prolong(stale, long)
		takenOver(t, err)
		d.WorkGiveBack(stale)
		d.find(r, WorkRunning, 2)
	}
	c.allExpire()
	two.finish(current, true)
	one.finish(stale, false)
	one.giveUp(stale, false)
	two.giveUp(current, false)
	one.finish(current, true) // said again, through another daemon
	one.find(r, WorkDone, 2)
}

// Masters that forgot who took over believe the one that was taken over, and so do those
// that never heard of it: they are no quorum.
func TestWork_IsNotEndedByAWorkerWhoseSuccessorWasForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	one, two := c.daemon(), c.daemon(relayed)
	stale := one.find(WorkRequest{Key: "k", Timeout: brief, Max: 3, Keep: long}, WorkAcquired, 1)
	c.lapsed("k")
	for _, i := range []int{3, 4} {
		two.relays[i].Refuse()
		two.relays[i].Cut()
		two.await(i, "down")
	}
	two.find(WorkRequest{Key: "k", Timeout: long, Max: 3, Keep: long}, WorkAcquired, 2)
	for _, i := range []int{0, 1} {
		c.do(i, "FLUSHALL")
		one.await(i, "quarantined")
	}
	for range 2 { // said again, it meets what it has written down itself
		a := receive(t, one.requestEnd(one.WorkDone, stale))
		if a.ok {
			t.Fatal("a worker ended the work although it had been taken over")
		}
		noQuorum(t, a.err, "5 of 5", "2 of those that answered may have forgotten")
	}
}

// The same across oblivion: numbers begin again, and the old worker's is higher.
func TestWork_IsNotEndedByAWorkerOfAnEarlierTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	r := WorkRequest{Key: "k", Timeout: brief, Max: 3, Keep: brief}
	first := d.find(r, WorkAcquired, 1)
	d.giveUp(first, true)
	stale := d.find(r, WorkAcquired, 2)
	c.forgotten()
	r.Timeout, r.Keep = long, long
	current := d.find(r, WorkAcquired, 1)
	d.finish(stale, false)
	d.giveUp(stale, false)
	_, err := d.prolong(stale, long)
	takenOver(t, err)
	d.find(r, WorkRunning, 1)
	d.finish(current, true)
	d.find(r, WorkDone, 1)
}

// Defect: nothing expired; all workers dead meant a key for ever, and a timeout
// that is no whole number of seconds meant that its expiry was refused.
func TestWork_LeavesNothingForEver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	step := func(what string, left int) {
		t.Helper()
		for i := range c.servers {
			if keys := c.workKeys(i); len(keys) != left {
				t.Errorf("%s: master %s keeps %q, want %d records", what, name(i), keys, left)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	r := WorkRequest{Key: "k", Timeout: 5234 * time.Millisecond, Max: 4, Keep: 4321 * time.Millisecond}
	w := d.find(r, WorkAcquired, 1)
	d.settled(0, 1, 2)
	step("acquired", 1)
	if _, err := d.prolong(w, 6777*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	d.settled(0, 1, 2)
	step("extended", 1)
	d.find(r, WorkRunning, 1)
	step("refused", 1)
	d.giveUp(w, true)
	d.settled(0, 1, 2)
	step("given up", 1)
	w = d.find(r, WorkAcquired, 2)
	d.settled(0, 1, 2)
	step("taken over", 1)
	d.WorkGiveBack(w)
	d.settled(0, 1, 2)
	step("given back", 1)
	w = d.find(r, WorkAcquired, 2)
	d.finish(w, true)
	d.settled(0, 1, 2)
	step("done", 1)
	d.find(r, WorkDone, 2)
	step("asked after done", 1)
	c.forgotten()
	d.giveUp(w, false)
	step("ended after oblivion", 0)
}

// Defect: the counter stayed behind when all attempts had failed, and the next
// piece of work of that name began without any.
func TestWork_ThatIsExhaustedIsRememberedAndThenBeginsAnew(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	for _, r := range []WorkRequest{
		{Key: "remembered", Timeout: brief, Max: 3, Keep: long},
		{Key: "forgotten", Timeout: brief, Max: 3, Keep: brief},
	} {
		for attempt := range r.Max {
			w := one.find(r, WorkAcquired, attempt+1)
			if r.Key == "forgotten" {
				one.giveUp(w, true)
				continue
			}
			c.lapsed(r.Key)
		}
	}
	for _, d := range []*daemon{one, two} {
		d.find(WorkRequest{Key: "remembered", Timeout: brief, Max: 3}, WorkExhausted, 3)
	}
	c.allExpire()
	eventually(t, "it begins anew", func() bool {
		w, err := two.tryWork(WorkRequest{Key: "forgotten", Timeout: long, Max: 3, Keep: brief})
		if err == nil && w.State == WorkAcquired && w.Attempt > 1 {
			two.giveUp(w, true) // a master that heard of the end late had not forgotten it yet
		}
		return err == nil && w.State == WorkAcquired && w.Attempt == 1
	})
}
