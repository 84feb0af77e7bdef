package redlock

// work_budget_test.go: an attempt is used up by a run and by nothing else, and
// never are there more runs than attempts.

import (
	"testing"
	"time"

	"redlockd/pool/faulty"
)

func TestWork_OfOneAttemptIsTheLastOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	r := WorkRequest{Key: "k", Timeout: long, Max: 1, Keep: long}
	w := d.find(r, WorkAcquired, 1)
	d.find(r, WorkRunning, 1)
	d.giveUp(w, true)
	d.find(r, WorkExhausted, 1)
}

func TestWork_ThatIsGivenUpStartsAgainAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	r := WorkRequest{Key: "k", Timeout: long, Max: 10, Keep: long}
	for attempt := range r.Max {
		w := one.find(r, WorkAcquired, attempt+1)
		two.find(r, WorkRunning, attempt+1)
		two.giveUp(w, true)
	}
	one.find(r, WorkExhausted, 10)
}

func TestWork_ThatIsGivenBackUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	r := WorkRequest{Key: "k", Timeout: long, Max: 2, Keep: long}
	for range 3 {
		d.WorkGiveBack(d.find(r, WorkAcquired, 1))
		d.settled(0, 1, 2)
	}
	c.forgotten()
	d.giveUp(d.find(r, WorkAcquired, 1), true)
	for range 3 {
		d.WorkGiveBack(d.find(r, WorkAcquired, 2))
		d.settled(0, 1, 2)
	}
	d.finish(d.find(r, WorkAcquired, 2), true)
}

// A ballot that reaches one master of three leaves nothing there, and not a
// higher number either.
func TestWork_BallotsWithoutAQuorumUseUpNoAttempt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(relayed), c.daemon()
	r := WorkRequest{Key: "k", Timeout: long, Max: 2, Keep: long}
	for attempt := range r.Max {
		one.cutOff(1)
		one.cutOff(2)
		for range 3 {
			_, err := one.tryWork(r)
			noQuorum(t, err, "1 of 3", "b=", "c=")
		}
		one.settled(0)
		left, _ := c.do(0, "HGET", "redlockd:work:k", "a").(string)
		if want := []string{"", "1"}[attempt]; left != want {
			t.Fatalf("master a shows attempt %q after the ballots failed, want %q", left, want)
		}
		two.giveUp(two.find(r, WorkAcquired, attempt+1), true)
		one.reconnect(1, "voting")
		one.reconnect(2, "voting")
	}
	one.find(r, WorkExhausted, 2)
}

// Daemons each reach another master first. None has a quorum, and what they see
// of each other is no attempt that runs.
func TestWork_ContendersThatSplitTheMastersUseUpNoAttempt(t *testing.T) {
	t.Parallel()
	for name, contenders := range map[string]int{"a master each": 3, "a master each, and one is dead": 2} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, long)
			var daemons []*daemon
			for i := range contenders {
				d := c.daemon(relayed)
				for j, r := range d.relays {
					if j != i {
						r.Delay(40*time.Millisecond, faulty.ToMaster)
					}
				}
				daemons = append(daemons, d)
			}
			if contenders == 2 {
				c.servers[2].Kill()
				daemons[0].await(2, "down")
				daemons[1].await(2, "down")
			}
			for round := range 3 {
				r := WorkRequest{Key: key(round), Timeout: long, Max: 1 + int64(round), Keep: long}
				w := onlyRun(t, r, contenders, daemons...)
				daemons[0].finish(w, true)
			}
		})
	}
}

// onlyRun lets workers contend for the first attempt, and requires that at most one of
// them gets it. If none does, no answer claims for long that it runs, and the next
// request gets it.
func onlyRun(t *testing.T, r WorkRequest, workers int, daemons ...*daemon) Work {
	t.Helper()
	runs, others := contend(t, r, workers, daemons...)
	if len(runs) == 0 {
		for _, a := range others {
			if a.err == nil && a.work.Retry > 2*late {
				t.Fatalf("work %q: nobody is at it, and a worker was told %s for %v", r.Key, a.work.State, a.work.Retry)
			}
		}
		eventually(t, "what the contenders took is given back", func() bool {
			w, err := daemons[0].tryWork(r)
			if err == nil && w.State == WorkAcquired {
				runs = append(runs, w)
			}
			return len(runs) > 0
		})
	}
	if len(runs) != 1 || runs[0].Attempt != 1 {
		t.Fatalf("work %q: attempts %+v of %d were started, want number 1 alone", r.Key, runs, r.Max)
	}
	return runs[0]
}

// The same without help: all ask at once, and one of them gets the first attempt.
func TestWork_RequestedByManyAtOnceStartsOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	for round := range 20 {
		r := WorkRequest{Key: key(round), Timeout: long, Max: 1 + int64(round%3), Keep: long}
		onlyRun(t, r, 16, one, two)
	}
}

func TestWork_ExtendedInTimeIsNotTakenOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	r := WorkRequest{Key: "k", Timeout: 20 * time.Second, Max: 2, Keep: long}
	w := one.find(r, WorkAcquired, 1)
	longer, err := two.prolong(w, long)
	if err != nil || longer.Validity() < long/2 || longer.Validity() > long || longer.Attempt != 1 {
		t.Fatalf("extended: attempt %d for %v, %v", longer.Attempt, longer.Validity(), err)
	}
	if again := two.find(r, WorkRunning, 1); again.Retry < long/2 {
		t.Errorf("running, and to be retried in %v; the lease was extended to %v", again.Retry, long)
	}
	if _, err := two.prolong(w, 10*time.Second); err != nil { // never shortens
		t.Fatal(err)
	}
	if again := one.find(r, WorkRunning, 1); again.Retry < long/2 {
		t.Errorf("running, and to be retried in %v; an extension shortened the lease", again.Retry)
	}
	one.giveUp(w, true)
	_, err = one.prolong(w, long)
	takenOver(t, err)
	c.allExpire()
}

// The end of work that all masters but one know must not be outvoted by that one
// and one that forgot: an attempt's lease and what is remembered after it.
func TestWork_ThatIsOverIsNotStartedAgainByAMasterThatForgot(t *testing.T) {
	t.Parallel()
	const lease, keep = 3500 * time.Millisecond, 3500 * time.Millisecond
	c := newCluster(t, 3, lease)
	one, two := c.daemon(relayed, keeps(keep)), c.daemon(relayed, keeps(keep)) // two begins with b
	one.cutOff(2)
	works := []WorkRequest{
		{Key: "done", Timeout: lease, Max: 9, Keep: keep},
		{Key: "exhausted", Timeout: lease, Max: 1, Keep: keep},
	}
	for _, r := range works {
		if w := one.find(r, WorkAcquired, 1); r.Key == "done" {
			one.finish(w, true)
		}
	}
	c.servers[1].RestartEmpty() // only a has the records, and c, which never received any
	two.awaitProcess(1, c.servers[1])
	one.Close(0)
	one.engine.Pool.Close()
	for i := range c.servers {
		two.await(i, "voting")
	}
	two.cutOff(0)
	for _, r := range works {
		r.Timeout = lease / 2
		eventually(t, "b and c are old enough", func() bool {
			w, err := two.tryWork(r)
			if err == nil && w.State == WorkAcquired {
				if c.do(0, "EXISTS", "redlockd:work:"+string(r.Key)) == int64(1) {
					t.Fatalf("work %q was started again, by a master that forgot it and one that never heard of it, while a knows of it", r.Key)
				}
				return true
			}
			if err != nil {
				noQuorum(t, err)
			}
			return false
		})
	}
}

func TestWork_WaitEndsWithTheRunningAttempt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	r := WorkRequest{Key: "k", Timeout: long, Max: 3, Keep: long, Wait: long}
	first := one.find(r, WorkAcquired, 1)

	waiting := two.requestWork(r)
	impatient := r
	impatient.Wait = 2 * time.Second
	two.find(impatient, WorkRunning, 1)
	select {
	case a := <-waiting:
		t.Fatalf("waiting for an attempt that runs was answered %s, %v", a.work.State, a.err)
	default:
	}
	one.giveUp(first, true)
	a := receive(t, waiting)
	if a.err != nil || a.work.State != WorkAcquired || a.work.Attempt != 2 {
		t.Fatalf("after the attempt was given up: %s %d, %v, want attempt 2", a.work.State, a.work.Attempt, a.err)
	}
	waiting = one.requestWork(r)
	two.finish(a.work, true)
	if a := receive(t, waiting); a.err != nil || a.work.State != WorkDone || a.work.Attempt != 2 {
		t.Fatalf("after it was done: %s %d, %v, want done 2", a.work.State, a.work.Attempt, a.err)
	}
}

func TestWork_WaitStartsTheNextAttemptWhenTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	r := WorkRequest{Key: "k", Timeout: brief, Max: 2, Keep: long}
	one.find(r, WorkAcquired, 1)
	r.Wait = long
	two.find(r, WorkAcquired, 2)
	two.find(r, WorkExhausted, 2)
}
