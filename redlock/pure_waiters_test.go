package redlock

// pure_waiters_test.go: waiting on masters inside this process.

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// waited is one wait's answer.
type waited struct {
	name  string
	grant Grant
	err   error
}

// waitFor starts a wait; its answer goes to out.
func (d *pureDaemon) waitFor(name string, r LockRequest, out chan<- waited) (leave func()) {
	d.t.Helper()
	if r.TTL == 0 {
		r.TTL = time.Minute
	}
	if r.Wait == 0 {
		r.Wait = time.Minute
	}
	return d.Wait(nil, r, func(g Grant, err error) { out <- waited{name, g, err} })
}

func (d *pureDaemon) wantGrant(w waited) Grant {
	d.t.Helper()
	if w.err != nil {
		d.t.Fatalf("%s: %v", w.name, w.err)
	}
	return w.grant
}

// A hand-over is one flush: the release and the next one's question.
func TestWait_AHandOverIsOneFlushOnEachMaster(t *testing.T) {
	d := newPureDaemon(t, Options{})
	held := d.take(LockRequest{Key: "k"})
	out := make(chan waited, 101) // every answer
	for range 101 {
		d.waitFor("", LockRequest{Key: "k"}, out)
	}
	unlock := func() {
		d.Unlock(nil, UnlockRequest{Key: "k", Token: held.Token}, func(bool, error) {})
		held = d.wantGrant(<-out)
	}
	unlock() // the first waiter had asked and was refused: from here on they only follow
	before := d.Counters()
	commands := d.engine.Pool.Counters().Commands
	for range 100 {
		unlock()
	}
	d.quiet()
	if refused := d.Counters().Refused - before.Refused; refused != 0 {
		t.Errorf("%d refusals in 100 hand-overs", refused)
	}
	// A release and an acquire on each of five masters, and nothing for those who wait.
	if sent := d.engine.Pool.Counters().Commands - commands; sent > 100*2*5+20 {
		t.Errorf("%d commands for 100 hand-overs with up to 100 waiting, want %d", sent, 100*2*5)
	}
}

func TestWait_ALeaverIsForgottenAndItsGrantGivenBack(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	held := d.take(LockRequest{Key: "k"})
	out := make(chan waited, 4) // all answers
	leave := d.waitFor("leaver", LockRequest{Key: "k"}, out)
	d.waitFor("stays", LockRequest{Key: "k"}, out)
	leave()
	if w := <-out; !errors.Is(w.err, ErrLeft) || w.name != "leaver" {
		t.Errorf("%s: %v, want ErrLeft", w.name, w.err)
	}
	leave() // a second time changes nothing
	d.unlock(UnlockRequest{Key: "k", Token: held.Token})
	w := <-out
	if d.wantGrant(w); w.name != "stays" {
		t.Errorf("granted to %s", w.name)
	}

	// Leaving while the question is under way: whatever was granted comes back.
	for range 20 {
		leave := d.waitFor("passes", LockRequest{Key: "free"}, out)
		leave()
		if w := <-out; w.err == nil {
			d.unlock(UnlockRequest{Key: "free", Token: w.grant.Token})
		}
	}
	d.quiet()
	if n := d.holders(0, "free", "passes"); n != 0 {
		t.Errorf("%d copies left", n)
	}
	d.take(LockRequest{Key: "free"})
}

func TestWait_NoticesAKeyThatWentAwayOnTheMastersAlone(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	d.onMasters(func(lane int) {
		m := d.engine.Pool.Embedded().At(lane)
		_ = m.Server().Set("k", "somebody else's")
		m.SetTTL("k", 300*time.Millisecond)
	})
	out := make(chan waited, 1) // its answer
	d.waitFor("waits", LockRequest{Key: "k"}, out)
	d.wantGrant(<-out)
}

func TestWait_ARepeatOfTheHoldersTokenDoesNotQueue(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	d.take(LockRequest{Key: "k", Token: "the holder's"})
	out := make(chan waited, 2) // both answers
	d.waitFor("other", LockRequest{Key: "k"}, out)
	d.waitFor("repeat", LockRequest{Key: "k", Token: "the holder's"}, out)
	if w := <-out; w.name != "repeat" || w.err != nil {
		t.Errorf("%s: %v", w.name, w.err)
	}
}

func TestWait_LimitsAndTheEndOfTheDaemonAreAnswered(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{MaxWaiters: 3, MaxWaitersPerKey: 2})
	d.take(LockRequest{Key: "k"})
	d.take(LockRequest{Key: "l"})
	out := make(chan waited, 8) // all answers
	for _, key := range []Key{"k", "k", "l"} {
		d.waitFor("stays", LockRequest{Key: key}, out)
	}
	for key, option := range map[Key]string{"l": "--max-waiters", "k": "--max-waiters"} {
		d.waitFor("refused", LockRequest{Key: key}, out)
		var busy *Busy
		if w := <-out; !errors.As(w.err, &busy) || busy.Option != option {
			t.Errorf("%s: %v", key, w.err)
		}
	}
	d.EndWaits()
	for range 3 {
		if w := <-out; !errors.Is(w.err, ErrShutdown) {
			t.Errorf("%v, want ErrShutdown", w.err)
		}
	}
	d.waitFor("late", LockRequest{Key: "k"}, out)
	if w := <-out; !errors.Is(w.err, ErrShutdown) {
		t.Errorf("%v, want ErrShutdown", w.err)
	}

	d = newPureDaemon(t, Options{MaxWaitersPerKey: 1})
	d.take(LockRequest{Key: "k"})
	d.waitFor("stays", LockRequest{Key: "k"}, out)
	d.waitFor("refused", LockRequest{Key: "k"}, out)
	var busy *Busy
	if w := <-out; !errors.As(w.err, &busy) || busy.Option != "--max-waiters-per-key" {
		t.Errorf("%v", w.err)
	}
	d.EndWaits()
	<-out
}

// pureOwner is a connection that holds what it was given.
type pureOwner struct{ held []Lease }

func (o *pureOwner) Holds(runs func(Lease) bool) (running []Lease) {
	for _, one := range o.held {
		if runs(one) {
			running = append(running, one)
		}
	}
	return running
}

func TestWait_ThatClosesACycleIsRefusedWithTheKeys(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	a, b, c := &pureOwner{}, &pureOwner{}, &pureOwner{}
	for key, owner := range map[Key]*pureOwner{"a": a, "b": b, "c": c} {
		g := d.take(LockRequest{Key: key})
		owner.held = append(owner.held, Lease{DB: 0, Key: key, Token: g.Token})
	}
	out := make(chan waited, 8) // all answers
	refused := func(n int64) func() bool { return func() bool { return d.Counters().Refused >= n } }
	d.waitFor("a→b", LockRequest{Key: "b", Owner: a}, out)
	eventually(t, "a waits", refused(1))
	d.waitFor("b→c", LockRequest{Key: "c", Owner: b}, out)
	eventually(t, "b waits", refused(2))
	d.waitFor("c→a", LockRequest{Key: "a", Owner: c}, out)
	w := <-out
	var cycle *Deadlock
	if !errors.As(w.err, &cycle) || w.name != "c→a" || len(cycle.Keys) != 3 || cycle.Keys[0] != "a" {
		t.Fatalf("%s: %v", w.name, w.err)
	}
	keys := slices.Sorted(slices.Values(cycle.Keys))
	if !slices.Equal(keys, []Key{"a", "b", "c"}) {
		t.Errorf("the cycle is %q", cycle.Keys)
	}
	// Without the lease there is no cycle.
	d.unlock(UnlockRequest{Key: "c", Token: c.held[0].Token})
	if w := <-out; w.name != "b→c" || w.err != nil {
		t.Errorf("%s: %v", w.name, w.err)
	}
	d.waitFor("c→a", LockRequest{Key: "a", Owner: c}, out)
	d.EndWaits()
	for range 2 {
		if w := <-out; !errors.Is(w.err, ErrShutdown) {
			t.Errorf("%s: %v", w.name, w.err)
		}
	}
}

// nil means no. A waiter that only queued while the masters could not decide is not
// refused.
func TestWait_ThatCouldNotBeDecidedIsNoRefusal(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	d.take(LockRequest{Key: "k"})
	d.onMasters(func(lane int) { d.engine.Pool.Embedded().At(lane).SetError("LOADING for as long as it takes") })
	out := make(chan waited, 3) // all answers
	for _, name := range []string{"head", "second", "third"} {
		d.waitFor(name, LockRequest{Key: "k", Wait: 300 * time.Millisecond}, out)
	}
	for range 3 {
		var unknown *NoQuorum
		w := <-out
		if !errors.As(w.err, &unknown) {
			t.Errorf("%s: %v, want NoQuorum", w.name, w.err)
		} else if unknown.Answered+len(unknown.Missing) != 5 {
			t.Errorf("%s: %v: %d of 5 masters are named", w.name, w.err, len(unknown.Missing))
		}
	}
}

// A waiter that could not even take its place in a queue learns how many masters
// answered.
func TestFair_WithoutAQuorumCountsTheMastersThatAnswered(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	d.onMasters(func(lane int) {
		if lane > 1 {
			d.engine.Pool.Embedded().At(lane).SetError("LOADING for as long as it takes")
		}
	})
	out := make(chan waited, 1) // its one answer
	d.waitFor("one", LockRequest{Key: "k", Fair: true, Wait: 3 * time.Second}, out)
	var unknown *NoQuorum
	if w := <-out; !errors.As(w.err, &unknown) || unknown.Answered != 2 {
		t.Errorf("%v, want NoQuorum with 2 that answered", w.err)
	}
}

// A reader that follows a writer in the queue waits for the readers that this writer
// waits for; so does a reader that requests the write lock.
func TestWait_BehindAWaiterInACycleIsInIt(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	a, c := &pureOwner{}, &pureOwner{}
	hold := func(o *pureOwner, r LockRequest) Token {
		g := d.take(r)
		o.held = append(o.held, Lease{DB: 0, Key: r.Key, Token: g.Token})
		return g.Token
	}
	d.take(LockRequest{Key: "k", Mode: Readers}) // somebody else reads, too
	reads := hold(a, LockRequest{Key: "k", Mode: Readers})
	hold(c, LockRequest{Key: "j"})
	out := make(chan waited, 8) // all answers
	refused := func(n int64) func() bool { return func() bool { return d.Counters().Refused >= n } }
	d.waitFor("writer", LockRequest{Key: "k"}, out)
	eventually(t, "the writer waits for the reader", refused(1))
	d.waitFor("upgrade", LockRequest{Key: "k", Token: reads, Owner: a}, out)
	var cycle *Deadlock
	if w := <-out; !errors.As(w.err, &cycle) || w.name != "upgrade" || !slices.Equal(cycle.Keys, []Key{"k"}) {
		t.Fatalf("%s: %v", w.name, w.err)
	}
	before := d.Counters().Refused
	d.waitFor("a→j", LockRequest{Key: "j", Owner: a}, out)
	eventually(t, "the reader waits for j", refused(before+1))
	d.waitFor("c→k", LockRequest{Key: "k", Mode: Readers, Owner: c}, out)
	if w := <-out; !errors.As(w.err, &cycle) || w.name != "c→k" || !slices.Equal(cycle.Keys, []Key{"k", "j"}) {
		t.Fatalf("%s: %v", w.name, w.err)
	}
	d.EndWaits()
	for range 2 {
		if w := <-out; !errors.Is(w.err, ErrShutdown) {
			t.Errorf("%s: %v", w.name, w.err)
		}
	}
}

// A reader without FAIR is behind a writer with a ticket. A token may hold the key already, and then
// it is not.
func TestWait_BehindATicketInACycleIsInIt(t *testing.T) {
	t.Parallel()
	reads := LockRequest{Key: "k", Mode: Readers}
	named := LockRequest{Key: "k", Mode: Readers, Token: "a token of its own"}
	for _, test := range []struct {
		r       LockRequest
		isLast  bool // to begin
		refused int64
		closes  bool
	}{{reads, true, 1, true}, {reads, false, 1, true}, {named, true, 2, false}, {named, false, 2, false}} {
		d := newPureDaemon(t, Options{})
		a, c := &pureOwner{}, &pureOwner{}
		g := d.take(reads)
		a.held = []Lease{{Key: "k", Token: g.Token}}
		g = d.take(LockRequest{Key: "j"})
		c.held = []Lease{{Key: "j", Token: g.Token}}
		out := make(chan waited, 8) // all answers
		expected := int64(0)
		begins := func(name string, r LockRequest, refusals int64) {
			expected += refusals
			d.waitFor(name, r, out)
			eventually(t, name+" has been refused", func() bool { return d.Counters().Refused >= expected })
			d.quiet() // it waits, and does not look for cycles once more beside the next one
		}
		begins("writer", LockRequest{Key: "k", Fair: true}, 1)
		test.r.Owner = c
		last := "a→j"
		if test.isLast {
			last = "c→k"
			begins("a→j", LockRequest{Key: "j", Owner: a}, 1)
			begins("c→k", test.r, test.refused)
		} else {
			begins("c→k", test.r, test.refused)
			begins("a→j", LockRequest{Key: "j", Owner: a}, 1)
		}
		if test.closes {
			var cycle *Deadlock
			if w := <-out; !errors.As(w.err, &cycle) || w.name != last || len(cycle.Keys) != 2 {
				t.Fatalf("%s: %v", w.name, w.err)
			}
		}
		d.quiet()
		d.EndWaits()
		for wait := 3; wait > 0 && !(test.closes && wait == 1); wait-- {
			if w := <-out; !errors.Is(w.err, ErrShutdown) {
				t.Errorf("%+v, %s: %v", test, w.name, w.err)
			}
		}
	}
}

// The clock stands still, so no poll leads to the answer.
func TestWait_ForDataThatIsNoLockEndsWithoutAPoll(t *testing.T) {
	t.Parallel()
	d := newPunctualDaemonWith(t, newStillClock())
	d.onMasters(func(lane int) {
		if _, err := d.engine.Pool.Embedded().At(lane).Server().Push("k", "data"); err != nil {
			t.Error(err)
		}
	})
	out := make(chan error, 2) // 2: so that a second answer would be seen
	d.Wait(nil, LockRequest{Key: "k", TTL: time.Minute, Wait: time.Hour}, func(_ Grant, err error) { out <- err })
	if err := receive(t, out); !errors.Is(err, ErrWrongType) {
		t.Errorf("%v, want ErrWrongType", err)
	}
	d.quiet()
	if d.Waiters() != 0 || len(out) > 0 {
		t.Errorf("%d wait, %d more answers", d.Waiters(), len(out))
	}
}
