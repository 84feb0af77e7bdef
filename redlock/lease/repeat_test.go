package lease

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// A client of plain SET NX takes nil for the lock of another client, and a copy of a ballot that was
// not answered in time would look like one.
func TestRepeat_ARefusalAfterItIsUnknownToAClientWithAValue(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	for _, unanswered := range []time.Duration{0, 1} {
		for _, valued := range []bool{false, true} {
			c := &acquireCall{leases: d.Leases, unanswered: unanswered, request: LockRequest{Key: "k", Token: "value", Mode: Valued}}
			c.first.call, c.first.mode = c, &plainMode{valued: valued}
			c.first.ballot.Prepare(d.engine, d.engine.Pool.Group(0), &c.first)
			var unknown *engine.NoQuorum
			if err := c.first.mode.refused(&c.first, quorum.Refused); errors.As(err, &unknown) != (unanswered != 0 && valued) {
				t.Errorf("unanswered %v, valued %v: %v", unanswered, valued, err)
			}
		}
	}
}

// movedClock is ahead of the pool's clock by what a test moves it, and keeps what was to be called.
type movedClock struct {
	pool.Clock
	by    time.Duration
	after []func()
}

func (c *movedClock) Now() time.Duration { return c.Clock.Now() + c.by }

func (c *movedClock) AfterFunc(_ time.Duration, f func()) pool.Timer {
	c.after = append(c.after, f)
	return nil
}

// The masters were too slow for the first try, for longer than split votes are repeated.
func TestRepeat_TheNextTryHasItsOwnTimeForSplitVotes(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	clock, answers, c := d.tooSlow(LockRequest{Key: "k", TTL: time.Minute})
	clock.by = 2 * d.engine.MasterTimeout
	if d.unanswered(c).fail(quorum.Unknown); len(clock.after) != 1 {
		t.Fatalf("%d repeats", len(clock.after))
	}
	clock.after[0]()
	if err := <-answers; err != nil {
		t.Fatal(err)
	}
	if d.unanswered(c).fail(quorum.Split); len(clock.after) != 2 || len(answers) > 0 {
		t.Errorf("%d calls later, %d answers: a split vote of the second try is not repeated", len(clock.after), len(answers))
	}
}

// A master that executes the first try after the release, on a connection that ended, must get
// the release after that.
func TestRepeat_TheReleaseIsForMastersOfAnEarlierTryToo(t *testing.T) {
	t.Parallel()
	for _, why := range []quorum.Result{quorum.Split, quorum.Unknown} {
		d := newPureDaemon(t)
		clock, answers, c := d.tooSlow(LockRequest{Key: "k", TTL: time.Minute, Token: "a client's value", Mode: Valued})
		d.engine.Pool.Embedded().At(0).Server().Set("k", "of another client") // the second try makes no copy there
		d.unanswered(c).fail(why)
		clock.after[0]()
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
		known, _ := d.records.find(engine.LeaseID{Key: "k", Token: "a client's value"})
		if known.copies != 1<<5-1 {
			t.Errorf("%v: masters %05b get the release later, want all", why, known.copies)
		}
	}
}

// tooSlow is a call, a clock that is moved by hand, and the call's answers.
func (d *pureDaemon) tooSlow(r LockRequest) (*movedClock, chan error, *acquireCall) {
	clock := &movedClock{Clock: d.engine.Clock}
	d.engine.Clock, d.engine.Recent = clock, clock.Now
	answers := make(chan error, 2) // 2: so that a second answer would be seen
	r.Mode = cmp.Or(r.Mode, exclusive)
	d.engine.EnterAlways()
	return clock, answers, &acquireCall{
		leases: d.Leases, group: d.engine.Pool.Group(0), request: r, tries: 1,
		began: clock.Now(), done: func(_ Grant, err error) { answers <- err },
	}
}

// unanswered is a ballot of the call that no master has answered in time.
func (d *pureDaemon) unanswered(c *acquireCall) *lockBallot {
	a := &lockBallot{call: c, mode: &plainMode{}, key: "k", ballot: engine.Ballot{Engine: d.engine, Tally: quorum.Tally{N: 5, Quorum: 3}}}
	for lane := range 5 {
		a.ballot.Missing.MarkMissing(lane, d.engine.Pool.Absence(&pool.Answer{Sent: true}))
	}
	return a
}
