package redlock

// work_calls_test.go turns the Locker's calls about work into answers that a
// test can wait for, and watches that every record of it expires.

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
)

// keeps is the trait of a daemon with this longest KEEP.
func keeps(d time.Duration) trait {
	return func(_ *daemon, o *pool.Options) { o.MaxKeep = d }
}

type workAnswer struct {
	work Work
	err  error
}

func (d *daemon) requestWork(r WorkRequest) <-chan workAnswer {
	answer := make(chan workAnswer, 1) // 1: its one answer
	d.Work(nil, r, func(w Work, err error) { answer <- workAnswer{w, err} })
	return answer
}

// tryWork requests an attempt.
func (d *daemon) tryWork(r WorkRequest) (Work, error) {
	d.t.Helper()
	a := receive(d.t, d.requestWork(r))
	return a.work, a.err
}

// find wants this answer.
func (d *daemon) find(r WorkRequest, state WorkState, attempt int64) Work {
	d.t.Helper()
	w, err := d.tryWork(r)
	if err != nil || w.State != state || w.Attempt != attempt {
		d.t.Fatalf("work %q: %s %d, %v, want %s %d", r.Key, w.State, w.Attempt, err, state, attempt)
	}
	switch {
	case state == WorkAcquired && (w.Token == "" || w.Fence <= 0 || w.Validity() <= 0 || w.Validity() >= r.Timeout || w.Last != (attempt == r.Max)):
		d.t.Fatalf("work %q: attempt %d of %d with token %q, fence %d, validity %v, last %v", r.Key, attempt, r.Max, w.Token, w.Fence, w.Validity(), w.Last)
	case state == WorkRunning && w.Retry <= 0:
		d.t.Fatalf("work %q: running, and to be retried in %v", r.Key, w.Retry)
	case state != WorkAcquired && w.Token != "":
		d.t.Fatalf("work %q: %s, with a token", r.Key, state)
	}
	return w
}

type workEndAnswer struct {
	ok  bool
	err error
}

func (d *daemon) requestEnd(end func(*Batch, WorkEndRequest, WorkEndDone), w Work) <-chan workEndAnswer {
	answer := make(chan workEndAnswer, 1)
	end(nil, WorkEndRequest{Key: w.Key, Token: w.Token}, func(ok bool, err error) { answer <- workEndAnswer{ok, err} })
	return answer
}

// finish and giveUp want this answer.
func (d *daemon) finish(w Work, want bool) {
	d.t.Helper()
	if a := receive(d.t, d.requestEnd(d.WorkDone, w)); a.err != nil || a.ok != want {
		d.t.Fatalf("done by attempt %d at %q: %v, %v, want %v", w.Attempt, w.Key, a.ok, a.err, want)
	}
}

func (d *daemon) giveUp(w Work, want bool) {
	d.t.Helper()
	if a := receive(d.t, d.requestEnd(d.WorkFail, w)); a.err != nil || a.ok != want {
		d.t.Fatalf("attempt %d at %q given up: %v, %v, want %v", w.Attempt, w.Key, a.ok, a.err, want)
	}
}

// prolong extends the attempt's lease.
func (d *daemon) prolong(w Work, timeout time.Duration) (Work, error) {
	d.t.Helper()
	answer := make(chan workAnswer, 1)
	d.WorkExtend(nil, WorkEndRequest{Key: w.Key, Token: w.Token, Timeout: timeout}, func(w Work, err error) { answer <- workAnswer{w, err} })
	a := receive(d.t, answer)
	return a.work, a.err
}

// view is what a quorum shows of the work.
func (d *daemon) view(key Key) (WorkView, error) {
	d.t.Helper()
	type viewAnswer struct {
		view WorkView
		err  error
	}
	answer := make(chan viewAnswer, 1)
	d.ReadWork(0, key, func(v WorkView, err error) { answer <- viewAnswer{v, err} })
	a := receive(d.t, answer)
	return a.view, a.err
}

// workKeys are the records on a master, each of which must expire.
func (c *cluster) workKeys(i int) (keys []string) {
	c.t.Helper()
	for _, k := range c.servers[i].Keys() {
		if !strings.HasPrefix(k, "redlockd:work:") {
			continue
		}
		switch left := c.do(i, "PTTL", k).(int64); {
		case left == -1:
			c.t.Errorf("master %s: %s never expires", name(i), k)
		case left >= 0:
			keys = append(keys, k)
		}
	}
	return keys
}

// allExpire looks at every record on every master.
func (c *cluster) allExpire() {
	c.t.Helper()
	for i := range c.servers {
		c.workKeys(i)
	}
}

// forgotten waits until no record is left on any master.
func (c *cluster) forgotten() {
	c.t.Helper()
	eventually(c.t, "every record is forgotten", func() bool {
		for i := range c.servers {
			if len(c.workKeys(i)) > 0 {
				return false
			}
		}
		return true
	})
}

// lapsed waits until no attempt's lease runs any more on any master.
func (c *cluster) lapsed(key Key) {
	c.t.Helper()
	for i := range c.servers {
		eventually(c.t, "the lease is over on master "+name(i), func() bool {
			end, _ := c.do(i, "HGET", "redlockd:work:"+string(key), "e").(string)
			ms, _ := strconv.ParseInt(end, 10, 64)
			now := c.do(i, "TIME").([]any)
			seconds, _ := strconv.ParseInt(now[0].(string), 10, 64)
			us, _ := strconv.ParseInt(now[1].(string), 10, 64)
			return seconds*1000+us/1000 > ms
		})
	}
}

// takenOver wants an attempt that is no longer this worker's.
func takenOver(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrNotHeld) {
		t.Fatalf("answered %v, want %v", err, ErrNotHeld)
	}
}

// A worker that waits for another worker's attempt and leaves no longer polls. If a
// daemon drains, the requests that wait in it are answered, as those that wait for a lock
// are.
func TestWork_AWaitEndsWithItsClientAndWithItsDaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	r := WorkRequest{Key: "w", Timeout: long, Max: 3}
	d.find(r, WorkAcquired, 1)
	r.Wait = time.Minute
	answers := make(chan workAnswer, 2) // both answers
	leave := d.Work(nil, r, func(w Work, err error) { answers <- workAnswer{w, err} })
	leave()
	if a := receive(t, answers); a.err != nil || a.work.State != WorkRunning {
		t.Errorf("the leaver was answered %+v", a)
	}
	eventually(t, "nobody waits", func() bool { return d.Waiters() == 0 })
	d.Work(nil, r, func(w Work, err error) { answers <- workAnswer{w, err} })
	eventually(t, "it waits", func() bool { return d.Waiters() == 1 })
	d.EndWaits()
	if a := receive(t, answers); !errors.Is(a.err, ErrShutdown) {
		t.Errorf("who waited at the end was answered %+v", a)
	}
	if a := receive(t, d.requestWork(r)); !errors.Is(a.err, ErrShutdown) {
		t.Errorf("who would wait after the end was answered %+v", a)
	}
	r.Wait = 0
	d.find(r, WorkRunning, 1)
	if n := d.Waiters(); n != 0 {
		t.Errorf("%d wait after all were answered", n)
	}
}

// Waits for work and for locks are counted together, towards one limit.
func TestWork_WaitsAreCountedAsAllWaitsAre(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(func(d *daemon, _ *pool.Options) { d.maxWaiters = 2 })
	r := WorkRequest{Key: "w", Timeout: long, Max: 3}
	w := d.find(r, WorkAcquired, 1)
	d.take("k", long)
	r.Wait = time.Minute
	one := d.requestWork(r)
	eventually(t, "one waits", func() bool { return d.Waiters() == 1 })
	locks := make(chan error, 2) // both answers
	d.Wait(nil, LockRequest{Key: "k", TTL: long, Wait: time.Minute}, func(_ Grant, err error) { locks <- err })
	eventually(t, "two wait", func() bool { return d.Waiters() == 2 })
	var busy *Busy
	if a := receive(t, d.requestWork(r)); !errors.As(a.err, &busy) || busy.Option != "--max-waiters" || busy.Limit != 2 {
		t.Errorf("the third wait, for work, was answered %+v", a)
	}
	d.Wait(nil, LockRequest{Key: "k", TTL: long, Wait: time.Minute}, func(_ Grant, err error) { locks <- err })
	if err := receive(t, locks); !errors.As(err, &busy) {
		t.Errorf("the third wait, for a lock, was answered %v", err)
	}
	d.giveUp(w, true)
	if a := receive(t, one); a.err != nil || a.work.State != WorkAcquired || a.work.Attempt != 2 {
		t.Errorf("who waited for the work was answered %+v", a)
	}
	if n := d.Waiters(); n != 1 {
		t.Errorf("%d wait, want the one for the lock", n)
	}
	d.EndWaits()
	if err := receive(t, locks); !errors.Is(err, ErrShutdown) {
		t.Errorf("who waited for the lock was answered %v", err)
	}
}
