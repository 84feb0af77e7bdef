package groups

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/engine"
	"redlockd/redlock/slots"
)

// stand is two groups of masters inside this process.
type stand struct {
	*Router
	t     *testing.T
	pools []*pool.Pool
	plan  *Map
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{t: t}
	var all []Group
	owners := []slots.Owner{{Name: "g1", Slots: ranges(t, "0-8191")}, {Name: "g2", Slots: ranges(t, "8192-16383")}}
	var err error
	if s.plan, err = NewMap(owners, time.Minute, pool.SystemClock()); err != nil {
		t.Fatal(err)
	}
	for i, o := range owners {
		// The master timeout is wide, so that a busy machine fails nothing.
		p, err := pool.New(pool.Options{Embedded: 3, MasterTimeout: time.Minute, Late: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		locker, err := redlock.New(p, redlock.Options{VolatileIDs: true, Ownership: s.plan.Ownership(i)})
		if err != nil {
			t.Fatal(err)
		}
		s.pools = append(s.pools, p)
		all = append(all, Group{Name: o.Name, Locker: locker})
	}
	s.Router = New(all, s.plan)
	return s
}

func ranges(t *testing.T, text string) slots.Ranges {
	t.Helper()
	parsed, err := slots.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// key is the n-th key of a group.
func (s *stand) key(group, n int) redlock.Key {
	for i := 0; ; i++ {
		key := redlock.Key(fmt.Sprint("key-", i))
		if s.indexOf(key) != group {
			continue
		}
		if n--; n < 0 {
			return key
		}
	}
}

type answer struct {
	grant redlock.Grant
	err   error
}

// receive waits for an answer; the timeout is for a test that hangs.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatal("no answer")
		panic("unreachable")
	}
}

func (s *stand) lock(keys ...redlock.Key) (redlock.Grant, error) {
	s.t.Helper()
	answers := make(chan answer, 1)
	s.Lock(nil, redlock.LockRequest{Key: keys[0], More: keys[1:], TTL: time.Minute}, func(g redlock.Grant, err error) { answers <- answer{g, err} })
	a := receive(s.t, answers)
	return a.grant, a.err
}

func (s *stand) take(keys ...redlock.Key) redlock.Grant {
	s.t.Helper()
	g, err := s.lock(keys...)
	if err != nil || g.Validity() <= 0 || g.Fence <= 0 || !g.Fresh {
		s.t.Fatalf("lock %q: %+v, %v", keys, g, err)
	}
	return g
}

func (s *stand) release(g redlock.Grant) {
	s.t.Helper()
	for _, key := range g.Keys() {
		was := make(chan bool, 1)
		s.Unlock(nil, redlock.UnlockRequest{Key: key, Token: g.Token}, func(released bool, err error) { was <- released && err == nil })
		if !receive(s.t, was) {
			s.t.Fatalf("%q was not held by its token", key)
		}
	}
}

func TestRouter_EachNameIsServedByItsGroup(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for group := range 2 {
		key := s.key(group, 0)
		g := s.take(key)
		states := make(chan redlock.LockState, 1)
		for i, one := range s.groups {
			one.Locker.ReadLock(0, key, func(v redlock.LockView, err error) { states <- v.State })
			if held := receive(t, states) == redlock.LockHeld; held != (i == group) {
				t.Errorf("group %d holds a key of group %d: %v", i, group, held)
			}
		}
		s.release(g)
		first := make(chan int64, 1)
		s.NextID(nil, redlock.IDRequest{Name: key, Count: 3}, func(id int64, err error) { first <- id })
		if id := receive(t, first); id != 1 {
			t.Errorf("the first id of %q is %d", key, id)
		}
		works := make(chan redlock.Work, 1)
		s.Work(nil, redlock.WorkRequest{Key: key, Timeout: time.Minute, Max: 1}, func(w redlock.Work, err error) { works <- w })
		if w := receive(t, works); w.State != redlock.WorkAcquired {
			t.Errorf("work %q is %s", key, w.State)
		}
	}
	names := make(chan []redlock.Key, 1)
	s.ListCounters(0, func(all []redlock.Key, err error) { names <- all })
	want := []redlock.Key{s.key(0, 0), s.key(1, 0)}
	slices.Sort(want)
	if got := receive(t, names); !slices.Equal(got, want) {
		t.Errorf("counters %q, want %q", got, want)
	}
	if c := s.Counters(); c.Acquired != 2 || c.Released != 2 || c.IDs != 6 || c.WorkStarted != 2 {
		t.Errorf("%+v", c)
	}
	reports := s.Reports(0)
	if len(reports) != 6 || reports[0].Group != "g1" || reports[5].Group != "g2" {
		t.Errorf("%+v", reports)
	}
	if none, ok := errors.AsType[*pool.NoMaster](s.DrainMaster("nobody")); !ok || len(none.Names) != 6 {
		t.Errorf("%v", none)
	}
}

func TestRouter_AListingWalksOverAllGroups(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	want := map[redlock.Key]bool{}
	for group := range 2 {
		for n := range 40 {
			want[s.key(group, n)] = true
			s.take(s.key(group, n))
		}
	}
	type page struct {
		redlock.LockPage
		err error
	}
	steps := 0
	for cursor := uint64(0); steps == 0 || cursor != 0; steps++ {
		pages := make(chan page, 1)
		s.ListLocks(redlock.Listing{Cursor: cursor, Count: 10, Wanted: func(redlock.Key) bool { return true }}, func(p redlock.LockPage, err error) { pages <- page{p, err} })
		p := receive(t, pages)
		if p.err != nil || p.Cursor>>63 != 0 {
			t.Fatalf("cursor %d: %d, %v", cursor, p.Cursor, p.err)
		}
		for _, one := range p.Locks {
			delete(want, one.Key)
		}
		cursor = p.Cursor
	}
	if len(want) > 0 || steps < 4 {
		t.Errorf("%d steps missed %v", steps, want)
	}
	s.ListLocks(redlock.Listing{Cursor: 2 << redlock.CursorBits}, func(_ redlock.LockPage, err error) {
		if !errors.Is(err, redlock.ErrBadCursor) {
			t.Errorf("a cursor of a third group: %v", err)
		}
	})
}

func TestRouter_EventsComeFromAllGroupsOneAtATime(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var at sync.Mutex
	events := make(chan redlock.Event, 100)
	end := s.Listen(0, func(e redlock.Event) {
		if !at.TryLock() {
			t.Error("two events at a time")
		}
		defer at.Unlock()
		events <- e
	})
	defer end()
	g := s.take(s.key(0, 0), s.key(1, 0))
	for range 2 {
		if e := receive(t, events); e.Kind != redlock.EventAcquired || e.Fence != g.Fence {
			t.Errorf("%+v, the fence of the lock is %d", e, g.Fence)
		}
	}
}

// raise raises the registers of a group so many µs above its clock.
func (s *stand) raise(group int, by int64) {
	s.t.Helper()
	answered := make(chan pool.Seal, 3)
	var b redlock.Batch
	b.Add(s.pools[group].Group(0), &engine.Message{Plan: pool.Props{Sealed: true, SealOnly: true, RaiseBy: by}, OnAnswer: func(a pool.Answer) { answered <- a.Seal }})
	b.Send()
	for range 3 {
		if seal := receive(s.t, answered); !seal.Good {
			s.t.Fatalf("%+v", seal)
		}
	}
}

// takeAhead takes a key of each group with a fence that is ahead of the clock of the group that was
// not raised: a fence behind it would be below the next one anyway. A slow machine needs another try.
func (s *stand) takeAhead(ahead int, mine, other redlock.Key) redlock.Grant {
	s.t.Helper()
	for range 100 {
		s.raise(ahead, 300_000)
		both := s.take(mine, other)
		if int64(both.Fence) > s.pools[1-ahead].Group(0).Time() {
			return both
		}
		s.release(both)
	}
	s.t.Fatal("no fence was ahead of the clock: the test proves nothing")
	panic("unreachable")
}

// Without the further seal, a grant in the group with the lower fence would have a lower one than
// the lock before it.
func TestSeveral_TheFenceIsAboveAndBelowThoseOfEveryGroup(t *testing.T) {
	t.Parallel()
	for ahead := range 2 {
		s := newStand(t)
		mine, other := s.key(ahead, 0), s.key(1-ahead, 0)
		before := []redlock.Grant{s.take(mine), s.take(other)}
		s.release(before[0])
		s.release(before[1])
		both := s.takeAhead(ahead, mine, other)
		for _, g := range before {
			if g.Fence >= both.Fence {
				t.Errorf("fence %d of %q is not below %d", g.Fence, g.Key, both.Fence)
			}
		}
		s.release(both)
		for _, key := range []redlock.Key{other, mine} {
			g := s.take(key)
			if g.Fence <= both.Fence {
				t.Errorf("fence %d of %q is not above %d", g.Fence, key, both.Fence)
			}
			s.release(g)
		}
	}
}

func TestSeveral_FencesThatAreTooFarApartAreRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.raise(1, 60_000_000)
	_, err := s.lock(s.key(0, 0), s.key(1, 0))
	if err == nil || errors.Is(err, redlock.ErrHeld) {
		t.Fatalf("%v", err)
	}
	s.eventuallyFree(s.key(0, 0), s.key(1, 0))
}

// eventuallyFree takes the keys once what was given back is gone.
func (s *stand) eventuallyFree(keys ...redlock.Key) {
	s.t.Helper()
	for _, key := range keys {
		answers := make(chan answer, 1)
		s.Wait(nil, redlock.LockRequest{Key: key, TTL: time.Minute, Wait: time.Minute}, func(g redlock.Grant, err error) { answers <- answer{g, err} })
		a := receive(s.t, answers)
		if a.err != nil {
			s.t.Fatalf("%q is not free: %v", key, a.err)
		}
		s.release(a.grant)
	}
}

func TestSeveral_ARefusalGivesAllBack(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for held := range 2 {
		other := s.take(s.key(held, 0))
		if _, err := s.lock(s.key(1-held, 1), s.key(held, 0), s.key(held, 1)); !errors.Is(err, redlock.ErrHeld) {
			t.Fatalf("%v", err)
		}
		s.eventuallyFree(s.key(1-held, 1), s.key(held, 1))
		s.release(other)
	}
}

func TestSeveral_AWaitHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for held := range 2 {
		mine, other := s.key(1-held, 0), s.key(held, 0)
		holder := s.take(other)
		answers := make(chan answer, 1)
		s.Wait(nil, redlock.LockRequest{Key: mine, More: []redlock.Key{other}, TTL: time.Minute, Wait: time.Minute}, func(g redlock.Grant, err error) { answers <- answer{g, err} })
		for s.Waiters() == 0 {
			time.Sleep(time.Millisecond)
		}
		s.eventuallyFree(mine)
		s.release(holder)
		a := receive(t, answers)
		if a.err != nil || a.grant.Key != mine || len(a.grant.More) != 1 || a.grant.Validity() <= 0 {
			t.Fatalf("%+v, %v", a.grant, a.err)
		}
		s.release(a.grant)
	}
}

func TestSeveral_AWaitEndsWithItsTimeAndWithItsClient(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	holder := s.take(s.key(1, 0))
	request := redlock.LockRequest{Key: s.key(0, 0), More: []redlock.Key{s.key(1, 0)}, TTL: time.Minute, Wait: 20 * time.Millisecond}
	errs := make(chan error, 2)
	s.Wait(nil, request, func(_ redlock.Grant, err error) { errs <- err })
	if err := receive(t, errs); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("after its time: %v", err)
	}
	request.Wait = time.Hour
	leave := s.Wait(nil, request, func(_ redlock.Grant, err error) { errs <- err })
	for s.Waiters() == 0 {
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := receive(t, errs); !errors.Is(err, redlock.ErrLeft) {
		t.Errorf("after its client has left: %v", err)
	}
	s.release(holder)
	s.eventuallyFree(s.key(0, 0), s.key(1, 0))
}

func TestSeveral_IsGivenBackAsAWhole(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.GiveBack(s.take(s.key(0, 0), s.key(1, 0)))
	s.eventuallyFree(s.key(0, 0), s.key(1, 0))
}

func TestSeveral_AllAreExtendedOrNone(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	g := s.take(s.key(0, 0), s.key(1, 0))
	batch := new(redlock.Batch)
	answers := make(chan answer, 1)
	done := func(g redlock.Grant, err error) { answers <- answer{g, err} }
	s.Extend(batch, redlock.ExtendRequest{Key: g.Key, More: g.More, Token: g.Token, TTL: time.Minute}, done)
	batch.Send()
	if a := receive(t, answers); a.err != nil || a.grant.Until() < g.Until() || len(a.grant.More) != 1 {
		t.Errorf("%+v, %v", a.grant, a.err)
	}
	s.Extend(nil, redlock.ExtendRequest{Key: g.Key, More: []redlock.Key{s.key(1, 1)}, Token: g.Token, TTL: time.Minute}, done)
	if a := receive(t, answers); !errors.Is(a.err, redlock.ErrNotHeld) {
		t.Errorf("with a key that is not held: %v", a.err)
	}
}

func TestSeveral_WhatNeedsOneGroupIsRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	keys := []redlock.Key{s.key(0, 0), s.key(1, 0)}
	errs := make(chan error, 10)
	for _, q := range []redlock.LockRequest{
		{Mode: redlock.Readers}, {Fair: true, Wait: time.Second}, {Hold: &redlock.HoldTerms{}, Token: "the-token"}, {Mode: redlock.PermitsOf(3)}, {Token: "the-token", Mode: &redlock.Swap{Tokens: []redlock.Token{"the-token", "another"}}},
	} {
		q.Key, q.More, q.TTL = keys[0], keys[1:], time.Minute
		s.Wait(nil, q, func(_ redlock.Grant, err error) { errs <- err })
	}
	s.Extend(nil, redlock.ExtendRequest{Key: keys[0], More: keys[1:], Token: "the-token", TTL: time.Minute, Exact: true}, func(_ redlock.Grant, err error) { errs <- err })
	for range 6 {
		if err := receive(t, errs); !errors.Is(err, ErrSeveral) && !errors.Is(err, errOneGroup) && !errors.Is(err, errHeldToken) {
			t.Errorf("%v", err)
		}
	}
	tagged := s.take("{x}a", "{x}b")
	s.release(tagged)
}

// Two clients that take the same keys in opposite orders never hold one each for long.
func TestSeveral_OppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	keys := []redlock.Key{s.key(0, 0), s.key(1, 0)}
	var clients sync.WaitGroup
	var inside sync.Mutex
	for i := range 4 {
		clients.Go(func() {
			for range 10 {
				mine := []redlock.Key{keys[i%2], keys[1-i%2]}
				answers := make(chan answer, 1)
				s.Wait(nil, redlock.LockRequest{Key: mine[0], More: mine[1:], TTL: time.Minute, Wait: time.Minute}, func(g redlock.Grant, err error) { answers <- answer{g, err} })
				a := <-answers
				if a.err != nil {
					t.Errorf("%v", a.err)
					return
				}
				if !inside.TryLock() {
					t.Error("two holders")
					return
				}
				inside.Unlock()
				s.release(a.grant)
			}
		})
	}
	clients.Wait()
}

// paused is a clock whose timers the test fires.
type paused struct {
	pool.Clock
	timers chan func()
}

func (p paused) AfterFunc(_ time.Duration, f func()) pool.Timer {
	p.timers <- f
	return nil
}

// A waiter of FAIR is ahead, and its daemon does not take the key: that must not cost the masters a
// request after the other.
func TestSeveral_PausesBehindAQueueWhoseKeyIsFree(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	clock := paused{s.clock, make(chan func(), 8)}
	s.clock = clock
	near, far := s.key(0, 0), s.key(1, 0)
	masters := s.pools[1].Embedded()
	for lane := range s.pools[1].N() {
		for kind, score := range map[string]float64{"q": 1, "qw": 1, "qx": 1e15} {
			if _, err := masters.At(lane).Server().ZAdd("redlockd:"+kind+":"+string(far), score, "other/1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	answers := make(chan answer, 1)
	s.Wait(nil, redlock.LockRequest{Key: near, More: []redlock.Key{far}, TTL: time.Minute, Wait: time.Minute}, func(g redlock.Grant, err error) { answers <- answer{g, err} })
	for round := range int64(3) {
		again := receive(t, clock.timers)
		if n := s.Counters().Refused; n != round+1 {
			t.Fatalf("%d requests were refused before pause %d", n, round+1)
		}
		if round == 2 {
			for lane := range s.pools[1].N() {
				for _, kind := range []string{"q", "qw", "qx"} {
					masters.At(lane).Server().Del("redlockd:" + kind + ":" + string(far))
				}
			}
		}
		again()
	}
	if a := receive(t, answers); a.err != nil {
		t.Error(a.err)
	}
}

// A quorum that is lost in any of the groups may come back during a wait.
func TestSeveral_AWaitOutlastsALostQuorum(t *testing.T) {
	t.Parallel()
	for lost := range 2 {
		s := newStand(t)
		clock := paused{s.clock, make(chan func(), 8)}
		s.clock = clock
		near, far := s.key(0, 0), s.key(1, 0)
		quorum := func(text string) {
			for lane := range 2 {
				s.pools[lost].Embedded().At(lane).SetError(text)
			}
		}
		quorum("LOADING for as long as it takes")
		request := redlock.LockRequest{Key: near, More: []redlock.Key{far}, TTL: time.Minute}
		answers := make(chan answer, 1)
		done := func(g redlock.Grant, err error) { answers <- answer{g, err} }
		var unknown *redlock.NoQuorum
		s.Lock(nil, request, done)
		if a := receive(t, answers); !errors.As(a.err, &unknown) {
			t.Errorf("without a wait: %v", a.err)
		}
		request.Wait = time.Hour
		s.Wait(nil, request, done)
		if lost == 1 { // the wait in the first group is its own
			again := receive(t, clock.timers)
			s.eventuallyFree(near)
			again()
		}
		quorum("")
		for {
			select {
			case again := <-clock.timers:
				again()
				continue
			case a := <-answers:
				if a.err != nil {
					t.Errorf("group %d without a quorum: %v", lost, a.err)
				}
			case <-time.After(time.Minute):
				t.Error("no answer")
			}
			break
		}
	}
}

// A daemon that has not seen the switch of a move takes the first group for the last one that had the slot:
// the other one may hold its keys by now.
func TestRouter_ThatAKeyIsFreeIsUndecidedOnceItHasLeftTheGroup(t *testing.T) {
	s := newStand(t)
	key, other := s.key(0, 0), s.key(0, 1)
	held := s.take(other)
	slot := fmt.Sprint(slots.Of(string(key)))
	look := func() (errs []error) {
		t.Helper()
		answers := make(chan error, 1)
		s.View(nil, 0, key, func(_ redlock.View, err error) { answers <- err })
		errs = append(errs, receive(t, answers))
		s.ReadLock(0, key, func(_ redlock.LockView, err error) { answers <- err })
		errs = append(errs, receive(t, answers))
		s.ReadWork(0, key, func(_ redlock.WorkView, err error) { answers <- err })
		errs = append(errs, receive(t, answers))
		s.Force(redlock.ForceRequest{Key: key}, func(_ bool, err error) { answers <- err })
		errs = append(errs, receive(t, answers))
		s.Describe(redlock.Lease{Key: key, Token: held.Token}, "", func(_ bool, err error) { answers <- err })
		return append(errs, receive(t, answers))
	}
	for i, err := range look() {
		if err != nil {
			t.Errorf("view %d of a free key: %v", i, err)
		}
	}
	s.plan.follow(0, configuration(2, 1, ranges(t, "0-8191").Minus(ranges(t, slot)).String(), slot, "g2"))
	for i, err := range look() {
		if _, moving := errors.AsType[*redlock.Moving](err); !moving {
			t.Errorf("view %d of a key that may be held elsewhere: %v", i, err)
		}
	}
	views := make(chan redlock.View, 1)
	s.View(nil, 0, other, func(v redlock.View, _ error) { views <- v })
	if v := receive(t, views); v.Value != held.Token {
		t.Errorf("a key that stays is shown as %+v", v)
	}
}
