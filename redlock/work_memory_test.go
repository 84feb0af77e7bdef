package redlock

// work_memory_test.go: masters that come back with an older file know the record of a
// work, and not what they acknowledged behind it: the end, or a later attempt. Such a
// record gives nothing out.

import (
	"testing"
	"time"
)

// remembered is longer than all tests here: what a master forgets by itself is not
// what they are about.
const remembered = 200 * time.Second

// newForgetful has masters with Redis' own way to keep a file: what was written behind
// the last save is lost.
func newForgetful(t *testing.T) (*cluster, *daemon) {
	t.Helper()
	c := newCluster(t, 3, 2*time.Second)
	return c, c.daemon(keeps(remembered))
}

// save writes the file that all masters will come back with.
func (c *cluster) save(d *daemon) {
	c.t.Helper()
	d.settled(0, 1, 2)
	for i := range c.servers {
		c.do(i, "SAVE")
	}
}

// comeBack has masters come back with their files, and waits until they vote on locks.
func (c *cluster) comeBack(d *daemon, masters ...int) {
	c.t.Helper()
	for _, i := range masters {
		c.servers[i].Restart()
		if len(c.workKeys(i)) == 0 {
			c.t.Fatalf("master %s came back without records, so nothing is tested", name(i))
		}
	}
	for _, i := range masters {
		d.awaitProcess(i, c.servers[i])
		d.await(i, "voting")
	}
}

// givesNothing wants no attempt to be given, and nothing to be shown of the work that may
// be over.
func (d *daemon) givesNothing(r WorkRequest) {
	d.t.Helper()
	w, err := d.tryWork(r)
	if err == nil && w.State == WorkAcquired {
		d.t.Fatalf("attempt %d of %d was given by masters that have forgotten what they acknowledged", w.Attempt, r.Max)
	}
	noQuorum(d.t, err, "may have forgotten")
	if v, err := d.view(r.Key); err == nil && v.State != WorkDone {
		d.t.Fatalf("masters that have forgotten what they acknowledged show the work as %+v", v)
	}
}

// ending is what becomes of a work before and behind the save.
type ending struct {
	key            Key
	limit          int64
	before, behind func(d *daemon, r WorkRequest, first Work)
}

// endings are a worker that says it is done, and one that gives up and is followed.
func endings(t *testing.T) []ending {
	return []ending{
		{"done", 9, func(d *daemon, _ WorkRequest, first Work) {
			if _, err := d.prolong(first, 2*time.Second); err != nil {
				t.Fatal(err)
			}
		}, func(d *daemon, _ WorkRequest, first Work) { d.finish(first, true) }},
		{"again", 2, func(d *daemon, _ WorkRequest, first Work) { d.giveUp(first, true) },
			func(d *daemon, r WorkRequest, _ Work) { d.find(r, WorkAcquired, 2) }},
	}
}

func (e *ending) request() WorkRequest {
	return WorkRequest{Key: e.key, Timeout: 2 * time.Second, Max: e.limit, Keep: remembered}
}

// playEndings leaves the masters with a file that lacks what they acknowledged last.
func (c *cluster) playEndings(d *daemon) []ending {
	c.t.Helper()
	all, attempts := endings(c.t), map[Key]Work{}
	for _, e := range all {
		attempts[e.key] = d.find(e.request(), WorkAcquired, 1)
		e.before(d, e.request(), attempts[e.key])
	}
	c.save(d)
	for _, e := range all {
		e.behind(d, e.request(), attempts[e.key])
	}
	d.settled(0, 1, 2)
	return all
}

func TestWork_IsNotGivenByMastersThatCameBackWithAnOlderFile(t *testing.T) {
	t.Parallel()
	c, d := newForgetful(t)
	all := c.playEndings(d)
	c.comeBack(d, 0, 1, 2)
	for _, e := range all {
		d.givesNothing(e.request())
	}
}

// The third master alone remembers, and is no quorum.
func TestWork_IsNotGivenByMastersThatCameBackWithAnOlderFileOneAtATime(t *testing.T) {
	t.Parallel()
	c, d := newForgetful(t)
	all := c.playEndings(d)
	c.comeBack(d, 0)
	c.comeBack(d, 1)
	for _, e := range all {
		d.givesNothing(e.request())
	}
}

// A token proves that its attempt was granted, and not that nothing came behind it.
func TestWork_IsNotGivenBecauseALateWorkerProvesItsAttemptToMastersThatForgot(t *testing.T) {
	t.Parallel()
	c, d := newForgetful(t)
	r := WorkRequest{Key: "k", Timeout: brief, Max: 3, Keep: remembered}
	first := d.find(r, WorkAcquired, 1)
	c.lapsed("k")
	c.save(d)
	r.Timeout = 2 * time.Second
	d.finish(d.find(r, WorkAcquired, 2), true)
	d.settled(0, 1, 2)
	c.comeBack(d, 0, 1, 2)
	if a := receive(t, d.requestEnd(d.WorkFail, first)); a.ok {
		t.Error("an attempt that was taken over was given up")
	}
	d.givesNothing(r)
	if _, err := d.prolong(first, time.Second); err == nil {
		t.Error("an attempt that was taken over was prolonged")
	}
	d.givesNothing(r)
}

// A worker whose attempt was given up does not get it back from masters that forgot
// that, although it keeps the attempt alive on them until they vote.
func TestWorkExtend_IsNotGrantedByMastersThatCameBackWithAnOlderFile(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 4*time.Second)
	d := c.daemon(keeps(remembered))
	r := WorkRequest{Key: "k", Timeout: 4 * time.Second, Max: 3, Keep: remembered}
	first := d.find(r, WorkAcquired, 1)
	c.save(d)
	d.giveUp(first, true)
	d.settled(0, 1, 2)
	for i := range c.servers {
		c.servers[i].Restart()
	}
	vote := false
	eventually(t, "all masters vote", func() bool {
		before := vote
		if _, err := d.prolong(first, 4*time.Second); err == nil {
			t.Fatal("an attempt was prolonged after it had been given up")
		}
		vote = true
		for i, s := range c.servers {
			state, _ := d.state(i)
			vote = vote && state == "voting" && d.knows(i, s)
		}
		return before // the last one was behind the vote
	})
}

// A record that a master has written since it came back is reliable, however new
// its memory is.
func TestWork_IsGivenByAMasterThatHasSeenTheAttemptSinceItCameBack(t *testing.T) {
	t.Parallel()
	c, d := newForgetful(t)
	c.servers[0].RestartEmpty()
	d.awaitProcess(0, c.servers[0])
	d.await(0, "voting")
	r := WorkRequest{Key: "k", Timeout: 2 * time.Second, Max: 2, Keep: remembered}
	first := d.find(r, WorkAcquired, 1)
	d.settled(0, 1, 2)
	d.giveUp(first, true)
	d.settled(0, 1, 2)
	c.servers[1].Kill()
	d.await(1, "down")
	d.find(r, WorkAcquired, 2)
}

// A durable master keeps its incarnation over a restart, and what it wrote in it.
func TestWork_IsGivenByDurableMastersThatWereRestarted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 2*time.Second, durable...)
	d := c.daemon(keeps(remembered))
	r := WorkRequest{Key: "k", Timeout: 2 * time.Second, Max: 3, Keep: remembered}
	d.giveUp(d.find(r, WorkAcquired, 1), true)
	d.settled(0, 1, 2)
	c.comeBack(d, 0, 1, 2)
	if v, err := d.view("k"); err != nil || v.State != WorkRunning || v.Attempt != 1 {
		t.Errorf("after the restart: %+v, %v", v, err)
	}
	for i := range c.servers {
		record := c.do(i, "HMGET", "redlockd:work:k", "u", "l").([]any)
		if id := c.identity(i)[1]; record[0] != "" || record[1] != id {
			t.Errorf("master %s: the record is of incarnation %v (unproved %q), its memory is %s", name(i), record[1], record[0], id)
		}
	}
	d.finish(d.find(r, WorkAcquired, 2), true)
	d.find(r, WorkDone, 2)
}
