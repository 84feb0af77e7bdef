package redlock

// work_result_test.go: the result that a worker leaves with the end of its work.

import (
	"testing"
	"time"
)

// finishWith ends an attempt with a result.
func (d *daemon) finishWith(w Work, result string) {
	d.t.Helper()
	answer := make(chan workEndAnswer, 1)
	d.WorkDone(nil, WorkEndRequest{Key: w.Key, Token: w.Token, Result: &result}, func(ok bool, err error) { answer <- workEndAnswer{ok, err} })
	if a := receive(d.t, answer); a.err != nil || !a.ok {
		d.t.Fatalf("done by attempt %d at %q: %v, %v", w.Attempt, w.Key, a.ok, a.err)
	}
}

// leftBy wants the work to be done by an attempt with a result.
func (d *daemon) leftBy(r WorkRequest, attempt int64, result string) {
	d.t.Helper()
	if w := d.find(r, WorkDone, attempt); w.Result == nil || *w.Result != result {
		d.t.Fatalf("done by %d with %v, want %q", w.Attempt, w.Result, result)
	}
}

func TestWorkResult_IsReadThroughEveryDaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	r := WorkRequest{Key: "k", Timeout: long, Max: 3, Keep: long}
	const result = "s3://b/k\r\n\x00\xff"
	w := one.find(r, WorkAcquired, 1)
	waits := r
	waits.Wait = patience
	waiting := two.requestWork(waits)
	one.finishWith(w, result)
	one.finishWith(w, "another") // the first one stays
	if a := receive(t, waiting); a.err != nil || a.work.State != WorkDone || a.work.Result == nil || *a.work.Result != result {
		t.Errorf("the waiter: %+v, %v", a.work, a.err)
	}
	one.leftBy(r, 1, result)
	two.leftBy(r, 1, result)
	if v, err := two.view("k"); err != nil || v.Result == nil || *v.Result != result {
		t.Errorf("the view: %+v, %v", v, err)
	}
	r.Key = "without"
	one.finish(one.find(r, WorkAcquired, 1), true)
	if w := two.find(r, WorkDone, 1); w.Result != nil {
		t.Errorf("a worker left nothing, read is %q", *w.Result)
	}
	if v, err := two.view("without"); err != nil || v.Result != nil {
		t.Errorf("the view: %+v, %v", v, err)
	}
}

// The end of an earlier attempt, which no quorum acknowledged, is left on one master.
func TestWorkResult_IsThatOfTheHighestAttempt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(relayed)
	const record = "redlockd:work:k"
	r := WorkRequest{Key: "k", Timeout: long, Max: 3, Keep: long}
	first := d.find(r, WorkAcquired, 1)
	d.giveUp(first, true)
	second := d.find(r, WorkAcquired, 2)
	d.finishWith(second, "two")
	d.settled(0, 1, 2)
	d.relays[2].Refuse()
	d.relays[2].Cut()
	for i := range 2 {
		c.do(i, "HSET", record, "a", 1, "o", string(first.Token), "r", "one")
		d.leftBy(r, 2, "two")
		c.do(i, "HDEL", record, "r") // nor does it lend its result to one that has none
		c.do(1-i, "HDEL", record, "r")
		if w := d.find(r, WorkDone, 2); w.Result != nil {
			t.Errorf("read is %q", *w.Result)
		}
		c.do(i, "HSET", record, "a", 2, "o", string(second.Token), "r", "two")
		c.do(1-i, "HSET", record, "r", "two")
	}
	// One master has not forgotten the work of before, whose numbers were higher.
	for i := range 2 {
		c.do(i, "HSET", record, "a", 3, "o", "aaaaaaaaaaaaaaaaaaaaaaaaaaa.3.3.5000.100", "r", "before")
		d.leftBy(r, 2, "two")
		c.do(i, "HSET", record, "a", 2, "o", string(second.Token), "r", "two")
	}
}

// The clock is the daemon's and the masters'.
func TestWorkResult_IsForgottenWithTheWork(t *testing.T) {
	t.Parallel()
	clock := newStillClock()
	d := newPunctualDaemonWith(t, clock)
	work := func() Work {
		answer := make(chan Work, 1)
		d.Work(nil, WorkRequest{Key: "k", Timeout: time.Minute, Max: 3, Keep: 20 * time.Second}, func(w Work, err error) {
			if err != nil {
				t.Error(err)
			}
			answer <- w
		})
		return receive(t, answer)
	}
	result, ends := "nothing to do", make(chan bool, 1)
	d.WorkDone(nil, WorkEndRequest{Key: "k", Token: work().Token, Result: &result}, func(ok bool, _ error) { ends <- ok })
	if !receive(t, ends) {
		t.Fatal("the end is refused")
	}
	d.quiet()
	clock.move(20 * time.Second)
	if w := work(); w.State != WorkDone || w.Result == nil || *w.Result != result {
		t.Errorf("within the keep time: %+v", w)
	}
	d.quiet()
	clock.move(beyondLease + rounding + 10*time.Millisecond)
	if w := work(); w.State != WorkAcquired || w.Attempt != 1 || w.Result != nil {
		t.Errorf("after it: %+v", w)
	}
}
