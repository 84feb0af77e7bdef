package wait

// work_test.go: waiting for work behind an attempt that ends elsewhere. No poll of a wait
// queue ever fires in these daemons, so what ends a wait has woken it.

import (
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/redlocktest"
	"redlockd/redlock/work"
)

// unpolled is the trait of a daemon whose wait queues never poll.
func unpolled(_ *redlocktest.Daemon, o *pool.Options) { o.Clock = pollless{pool.SystemClock()} }

type pollless struct{ pool.Clock }

func (p pollless) AfterFunc(d time.Duration, f func()) pool.Timer {
	t := &polllessTimer{clock: p.Clock, f: f}
	t.Reset(d)
	return t
}

// polllessTimer does not fire after the time of a poll of watched keys.
type polllessTimer struct {
	clock pool.Clock
	f     func()
	timer pool.Timer // nil before it is first set to another time
}

func (t *polllessTimer) Stop() bool { return t.timer == nil || t.timer.Stop() }

func (t *polllessTimer) Reset(d time.Duration) bool {
	isPoll := pollWatched/2 <= d && d <= 3*pollWatched/2
	switch {
	case isPoll:
		return t.Stop()
	case t.timer == nil:
		t.timer = t.clock.AfterFunc(d, t.f)
		return false
	}
	return t.timer.Reset(d)
}

type workAnswer struct {
	work work.Work
	err  error
}

func (d *daemon) requestWork(r work.Request) <-chan workAnswer {
	answer := make(chan workAnswer, 1) // 1: its one answer
	d.Work(nil, r, func(w work.Work, err error) { answer <- workAnswer{w, err} })
	return answer
}

// find wants an attempt.
func (d *daemon) find(r work.Request) work.Work {
	d.T.Helper()
	a := redlocktest.Receive(d.T, d.requestWork(r))
	if a.err != nil || a.work.State != work.Acquired || a.work.Attempt != 1 {
		d.T.Fatalf("work %q: %s %d, %v, want attempt 1", r.Key, a.work.State, a.work.Attempt, a.err)
	}
	return a.work
}

type workEndAnswer struct {
	ok  bool
	err error
}

// end ends an attempt that runs, with WorkDone or WorkFail.
func (d *daemon) end(end func(*engine.Batch, work.EndRequest, work.EndDone), w work.Work) {
	d.T.Helper()
	answer := make(chan workEndAnswer, 1)
	end(nil, work.EndRequest{Key: w.Key, Token: w.Token}, func(ok bool, err error) { answer <- workEndAnswer{ok, err} })
	if a := redlocktest.Receive(d.T, answer); a.err != nil || !a.ok {
		d.T.Fatalf("the end of attempt %d at %q: %v, %v, want true", w.Attempt, w.Key, a.ok, a.err)
	}
}

// waitingFor starts a wait for work that another attempt has, and returns when its queue has
// confirmed that under the watch of all masters.
func (d *daemon) waitingFor(r work.Request) <-chan workAnswer {
	d.T.Helper()
	before := d.Waiters()
	answer := d.requestWork(r)
	redlocktest.Eventually(d.T, "the masters are watched, and the attempt runs", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		ln := d.workQueue(r.Key)
		return ln != nil && ln.length > before && ln.watch.confirmed && ln.watch.tracked == d.engine.Pool.N() && ln.contender == nil
	})
	d.Idle()
	return answer
}

// workQueue is the wait queue of a work; nil if none waits. The mutex of Queues guards it.
func (d *daemon) workQueue(key engine.Key) *waitQueue {
	return d.queues[queueID{keys: "redlockd:work:" + string(key), work: true}]
}

func TestWork_AWaitIsWokenByAnotherDaemonWithoutAPoll(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one, two := newDaemon(c), newDaemon(c, unpolled)
	for _, end := range []struct {
		how  string
		end  func(work.Work)
		next int64 // the attempt after it

		commands int64 // on each master: the end, and each number that the waiter tries
	}{
		{"failed", func(w work.Work) { one.end(one.WorkFail, w) }, 2, 3},
		{"given back", func(w work.Work) { one.WorkGiveBack(w) }, 1, 2},
	} {
		r := work.Request{Key: engine.Key(end.how), Timeout: long, Max: 9, Keep: long}
		first := one.find(r)
		one.Idle() // the attempt is on every master before the watch begins
		r.Wait = long
		answer := two.waitingFor(r)
		commands := c.Calls(t, "evalsha")
		end.end(first)
		a := redlocktest.Receive(t, answer)
		if a.err != nil || a.work.State != work.Acquired || a.work.Attempt != end.next {
			t.Fatalf("%s: %s %d, %v, want attempt %d", end.how, a.work.State, a.work.Attempt, a.err, end.next)
		}
		redlocktest.Settled(t, one.engine, 0, 1, 2)
		two.Idle()
		if n := c.Calls(t, "evalsha") - commands; n != 3*end.commands {
			t.Errorf("%s: %d commands, want %d on each of 3 masters", end.how, n, end.commands)
		}
	}
}

// All that wait have the answer when the work is done, each from its own request.
func TestWork_ThatIsDoneAnswersAllThatWait(t *testing.T) {
	t.Parallel()
	const waiting = 20
	c := redlocktest.NewCluster(t, 3, long)
	one, two := newDaemon(c), newDaemon(c, unpolled)
	r := work.Request{Key: "k", Timeout: long, Max: 9, Keep: long}
	first := one.find(r)
	one.Idle()
	r.Wait = long
	var answers []<-chan workAnswer
	for range waiting {
		answers = append(answers, two.waitingFor(r))
	}
	commands := c.Calls(t, "evalsha")
	one.end(one.WorkDone, first)
	for _, answer := range answers {
		if a := redlocktest.Receive(t, answer); a.err != nil || a.work.State != work.Done || a.work.Attempt != 1 {
			t.Errorf("after it was done: %s %d, %v, want done 1", a.work.State, a.work.Attempt, a.err)
		}
	}
	one.Idle()
	two.Idle()
	if n := c.Calls(t, "evalsha") - commands; n != 3*(1+waiting) {
		t.Errorf("%d commands, want the end and one request of each that waits on each of 3 masters", n)
	}
	if n := two.Waiters(); n != 0 {
		t.Errorf("%d wait after all were answered", n)
	}
}

// The end through the waiter's own daemon and the waiter's request leave together.
func TestWork_AnEndThroughItsDaemonWakesAWaitAtOnce(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	d := newDaemon(c, unpolled)
	r := work.Request{Key: "k", Timeout: long, Max: 9, Keep: long}
	first := d.find(r)
	r.Wait = long
	answer := d.waitingFor(r)
	var b engine.Batch
	ended := make(chan workEndAnswer, 1)
	d.WorkFail(&b, work.EndRequest{Key: first.Key, Token: first.Token}, func(ok bool, err error) { ended <- workEndAnswer{ok, err} })
	d.mu.Lock()
	contends := d.workQueue("k").contender != nil
	d.mu.Unlock()
	if !contends {
		t.Error("the waiter contends only later")
	}
	b.Send()
	if a := redlocktest.Receive(t, ended); !a.ok || a.err != nil {
		t.Errorf("given up: %v, %v", a.ok, a.err)
	}
	if a := redlocktest.Receive(t, answer); a.err != nil || a.work.State != work.Acquired || a.work.Attempt != 2 {
		t.Errorf("after that: %s %d, %v, want attempt 2", a.work.State, a.work.Attempt, a.err)
	}
}

// A client that leaves ends its wait, and the next one is woken in its place.
func TestWork_AWaitWhoseClientLeavesIsNotInTheWay(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one, two := newDaemon(c), newDaemon(c, unpolled)
	r := work.Request{Key: "k", Timeout: long, Max: 9, Keep: long}
	first := one.find(r)
	r.Wait = long
	left := make(chan workAnswer, 1)
	leave := two.Work(nil, r, func(w work.Work, err error) { left <- workAnswer{w, err} })
	redlocktest.Eventually(t, "it waits", func() bool { return two.Waiters() == 1 })
	answer := two.waitingFor(r)
	leave()
	if a := redlocktest.Receive(t, left); a.err != nil || a.work.State != work.Running {
		t.Errorf("the leaver was answered %s, %v", a.work.State, a.err)
	}
	one.end(one.WorkFail, first)
	if a := redlocktest.Receive(t, answer); a.err != nil || a.work.State != work.Acquired || a.work.Attempt != 2 {
		t.Errorf("the next one: %s %d, %v, want attempt 2", a.work.State, a.work.Attempt, a.err)
	}
}

// The attempt ends after it has refused the request and before the masters are watched: they
// announce nothing of it, and its record remains.
func TestWork_AnEndBeforeTheWatchIsNotMissed(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one, two := newDaemon(c), newDaemon(c, unpolled)
	r := work.Request{Key: "k", Timeout: long, Max: 9, Keep: long}
	first := one.find(r)
	r.Wait = long
	ended := func(db int, record engine.Key, wait, runs time.Duration, contend work.Contend, done func(error)) func() {
		one.end(one.WorkFail, first)
		one.Idle()
		return two.AwaitWork(db, record, wait, runs, contend, done)
	}
	answer := make(chan workAnswer, 1)
	work.New(two.engine, ended, two.Freed).Work(nil, r, func(w work.Work, err error) { answer <- workAnswer{w, err} })
	if a := redlocktest.Receive(t, answer); a.err != nil || a.work.State != work.Acquired || a.work.Attempt != 2 {
		t.Errorf("%s %d, %v, want attempt 2", a.work.State, a.work.Attempt, a.err)
	}
}
