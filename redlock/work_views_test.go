package redlock

// work_views_test.go: what is shown of work, and what is refused untouched.

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestReadWork_ShowsWhatAQuorumAgreesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	see := func(want WorkView) {
		t.Helper()
		got, err := d.view("k")
		if err != nil {
			t.Fatal(err)
		}
		if (want.Left > 0) != (got.Left > 0) || got.Left > want.Left || got.Forgot > want.Forgot || (want.Forgot > 0) != (got.Forgot > 0) {
			t.Errorf("%v left, forgotten in %v, want at most %v and %v", got.Left, got.Forgot, want.Left, want.Forgot)
		}
		got.Left, got.Forgot, want.Left, want.Forgot = 0, 0, 0, 0
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	see(WorkView{Votes: 3})
	r := WorkRequest{Key: "k", Timeout: 10 * time.Second, Max: 2, Keep: 20 * time.Second, Meta: "invoice run"}
	w := d.find(r, WorkAcquired, 1)
	d.settled(0, 1, 2)
	slack := late + 10*time.Millisecond
	common := WorkView{State: WorkRunning, Attempt: 1, Max: 2, Holder: w.Token, Keep: r.Keep, Meta: r.Meta, Votes: 3}
	running := common
	running.Left, running.Forgot = r.Timeout+slack, r.Timeout+r.Keep+slack
	see(running)
	d.giveUp(w, true)
	d.settled(0, 1, 2)
	failed := common
	failed.Forgot = r.Keep + slack
	see(failed)
	w = d.find(r, WorkAcquired, 2)
	d.giveUp(w, true)
	d.settled(0, 1, 2)
	exhausted := failed
	exhausted.State, exhausted.Attempt, exhausted.Holder = WorkExhausted, 2, w.Token
	see(exhausted)
	for i := range c.servers {
		c.do(i, "DEL", "redlockd:work:k")
	}
	w = d.find(r, WorkAcquired, 1)
	d.finish(w, true)
	d.settled(0, 1, 2)
	done := failed
	done.State, done.Holder = WorkDone, w.Token
	see(done)
	c.do(0, "DEL", "redlockd:work:k")
	done.Votes = 2
	see(done)
	c.do(1, "HSET", "redlockd:work:k", "a", 5)
	_, err := d.view("k")
	noQuorum(t, err, "disagree")
}

func TestWork_LeavesAloneWhatIsNoWork(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	r := WorkRequest{Key: "k", Timeout: long, Max: 2, Keep: long}
	token := d.find(r, WorkAcquired, 1)
	d.settled(0, 1, 2)
	for i := range c.servers {
		c.do(i, "DEL", "redlockd:work:k")
		c.do(i, "HSET", "redlockd:work:k", "name", "somebody's")
	}
	if w, err := d.tryWork(r); !errors.Is(err, ErrWrongType) {
		t.Fatalf("%s, %v, want %v", w.State, err, ErrWrongType)
	} else if !strings.HasPrefix(err.Error(), "redlockd:work:k holds something that redlockd did not write") {
		t.Errorf("%v does not name the key", err)
	}
	d.finish(token, false)
	for i := range c.servers {
		if got := c.do(i, "HLEN", "redlockd:work:k"); got != int64(1) {
			t.Errorf("master %s: %v fields, want it untouched", name(i), got)
		}
		c.do(i, "DEL", "redlockd:work:k")
	}
}

func TestWork_TokensThatItDidNotGiveAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	good := d.find(WorkRequest{Key: "k", Timeout: long, Max: 2, Keep: long}, WorkAcquired, 1)
	secret := string(NewToken())
	for _, token := range []Token{"", "x", Token(secret), Token(secret + ".1"), Token(secret + ".0.2.1000.1"),
		Token(secret + ".3.2.1000.1"), Token(secret + ".1.2.0.1"), Token(secret + ".1.2.1000"),
		Token(secret + ".1.2.99999999999.1"), Token(secret + ".1.2.1000.x"), Token(secret + ".1.2.1000.1.1"), "x" + good.Token} {
		bad := good
		bad.Token = token
		for _, a := range []workEndAnswer{receive(t, d.requestEnd(d.WorkDone, bad)), receive(t, d.requestEnd(d.WorkFail, bad))} {
			if a.ok || !errors.Is(a.err, ErrBadToken) {
				t.Errorf("token %q: %v, %v, want %v", token, a.ok, a.err, ErrBadToken)
			}
		}
		if _, err := d.prolong(bad, long); !errors.Is(err, ErrBadToken) {
			t.Errorf("token %q: %v, want %v", token, err, ErrBadToken)
		}
	}
	other := good
	other.Key = "another"
	d.giveUp(other, false)
	d.finish(good, true)
}

func TestWork_KeepsForTwiceTheTimeoutUnlessSetOtherwise(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(keeps(10 * time.Second))
	for timeout, keep := range map[time.Duration]time.Duration{time.Second: 2 * time.Second, 20 * time.Second: 10 * time.Second} {
		k := Key(timeout.String())
		d.find(WorkRequest{Key: k, Timeout: timeout, Max: math.MaxInt64}, WorkAcquired, 1)
		if v, err := d.view(k); err != nil || v.Keep != keep {
			t.Errorf("timeout %v: kept %v, %v, want %v", timeout, v.Keep, err, keep)
		}
	}
}

// Masters that have lost their memory know of no work, which proves nothing.
func TestReadWork_IsUnknownWhereMostMastersHaveForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.find(WorkRequest{Key: "k", Timeout: 20 * time.Second, Max: 2}, WorkAcquired, 1)
	d.settled(0, 1, 2)
	forget := func(i int) {
		c.servers[i].RestartEmpty()
		d.awaitProcess(i, c.servers[i])
		d.idle()
	}
	forget(0)
	if v, err := d.view("k"); err != nil || v.State != WorkRunning || v.Votes != 2 {
		t.Errorf("with two masters that remember: %+v, %v", v, err)
	}
	if v, err := d.view("another"); err != nil || v.State != "" || v.Votes != 2 {
		t.Errorf("what two masters do not know: %+v, %v", v, err)
	}
	for i, want := range []string{1: "1 of 3", 2: "0 of 3"} {
		if want == "" {
			continue
		}
		forget(i)
		_, err := d.view("k")
		noQuorum(t, err, want)
	}
}

// Who is down has no opinion.
func TestReadWork_ReportsThatMastersDisagreeOnlyIfAQuorumAnswered(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.find(WorkRequest{Key: "k", Timeout: 20 * time.Second, Max: 2}, WorkAcquired, 1)
	d.settled(0, 1, 2)
	for i, want := range []string{"", "1 of 3", "0 of 3"} {
		c.servers[i].Kill()
		d.await(i, "down")
		if want == "" {
			c.do(1, "DEL", "redlockd:work:k")
			_, err := d.view("k")
			noQuorum(t, err, "2 of 3", "disagree")
			continue
		}
		_, err := d.view("k")
		if unknown := noQuorum(t, err, want, "unknown"); strings.Contains(unknown.Note, "disagree") {
			t.Errorf("without a quorum: %v", err)
		}
	}
}
