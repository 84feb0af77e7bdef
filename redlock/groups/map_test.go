package groups

// map_test.go: the map of slots over moves, and what becomes of requests.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/slots"
)

// configuration is one of group g1 or g2.
func configuration(epoch, version int64, own, leaving, to string) *pool.Configuration {
	return &pool.Configuration{Epoch: epoch, MapVersion: version, Slots: own, Leaving: leaving, To: to, LeftAt: version}
}

func newMap(t *testing.T, first, second, third string) *Map {
	t.Helper()
	m, err := NewMap([]slots.Owner{{Name: "g1", Slots: ranges(t, first)}, {Name: "g2", Slots: ranges(t, second)}, {Name: "g3", Slots: ranges(t, third)}}, time.Minute, pool.SystemClock())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// text shows who has what: group:slots, in brackets what is frozen.
func (m *Map) text() string {
	var parts []string
	for _, s := range m.Served() {
		part := s.Group + ":" + s.Range.String()
		if s.Frozen {
			part = "[" + part + ">" + s.To + "]"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestMap_FollowsMovesInWhateverOrderItLearnsThem(t *testing.T) {
	t.Parallel()
	type step struct {
		group int
		c     *pool.Configuration
		want  string
	}
	cut, switched := configuration(2, 1, "11-8191", "0-10", "g2"), configuration(5, 2, "0-10,8192-16383", "", "")
	for name, steps := range map[string][]step{
		"one after the other": {
			{0, cut, "[g1:0-10>g2] g1:11-8191 g2:8192-16383"},
			{1, switched, "g2:0-10 g1:11-8191 g2:8192-16383"},
			{0, configuration(3, 1, "11-8191", "0-10", "g2"), "g2:0-10 g1:11-8191 g2:8192-16383"}, // its masters changed
			{0, configuration(2, 0, "0-8191", "", ""), "g2:0-10 g1:11-8191 g2:8192-16383"},        // late
			{1, configuration(6, 3, "8192-16383", "0-10", "g1"), "[g2:0-10>g1] g1:11-8191 g2:8192-16383"},
			{0, configuration(4, 4, "0-8191", "", ""), "g1:0-8191 g2:8192-16383"},
		},
		"the target first": {
			{1, switched, "g2:0-10 g1:11-8191 g2:8192-16383"},
			{0, cut, "g2:0-10 g1:11-8191 g2:8192-16383"},
		},
		"over a third group": {
			{0, cut, "[g1:0-10>g2] g1:11-8191 g2:8192-16383"},
			{2, configuration(9, 4, "0-10", "", ""), "g3:0-10 g1:11-8191 g2:8192-16383"},
			{1, configuration(6, 3, "8192-16383", "0-10", "g3"), "g3:0-10 g1:11-8191 g2:8192-16383"},
		},
		"a group that is gone without a trace": {
			{0, configuration(7, 9, "100-8191", "", ""), "[g1:0-99>] g1:100-8191 g2:8192-16383"},
			{1, configuration(7, 8, "0-50,8192-16383", "", ""), "g2:0-50 [g1:51-99>] g1:100-8191 g2:8192-16383"},
		},
		"other slots after a cut that is over": { // it keeps its version
			{0, cut, "[g1:0-10>g2] g1:11-8191 g2:8192-16383"},
			{1, switched, "g2:0-10 g1:11-8191 g2:8192-16383"},
			{0, &pool.Configuration{Epoch: 3, MapVersion: 3, Slots: "11-8192", Leaving: "0-10", To: "g2", LeftAt: 1}, "g2:0-10 g1:11-8192 g2:8193-16383"},
		},
		"all slots": {
			{1, configuration(2, 1, "none", "8192-16383", "g1"), "g1:0-8191 [g2:8192-16383>g1]"},
			{0, configuration(2, 2, "", "", ""), "g1:0-16383"},
		},
		"what cannot be read": {
			{0, configuration(2, 3, "later-versions-have-names", "", ""), "[g1:0-8191>] g2:8192-16383"},
		},
		"two of one version": {
			{0, configuration(2, 1, "11-8191", "", ""), "[g1:0-10>] g1:11-8191 g2:8192-16383"},
			{1, configuration(2, 1, "11-20,8192-16383", "", ""), "[g1:0-20>] g1:21-8191 g2:8192-16383"},
		},
	} {
		m := newMap(t, "0-8191", "8192-16383", "none")
		for i, s := range steps {
			if m.follow(s.group, s.c); m.text() != s.want {
				t.Errorf("%s, step %d: %s, want %s", name, i, m.text(), s.want)
			}
		}
	}
}

func TestMap_KnowsSinceWhenAGroupHasASlotWithoutABreak(t *testing.T) {
	t.Parallel()
	m := newMap(t, "0-8191", "8192-16383", "none")
	g1, g2 := m.Ownership(0), m.Ownership(1)
	key := func(slot int) redlock.Key {
		for i := 0; ; i++ {
			if k := fmt.Sprint("key-", i); slots.Of(k) == slot {
				return redlock.Key(k)
			}
		}
	}
	moves, stays := key(7), key(700)
	since := func(o redlock.Ownership, k redlock.Key, want uint32) {
		t.Helper()
		if got := o.Since(k); got != want {
			t.Errorf("since %d, want %d", got, want)
		}
	}
	since(g1, moves, 1)
	since(g2, moves, 0)
	m.follow(0, configuration(1, 0, "0-8191", "", "")) // what the file says
	since(g1, moves, 1)
	m.follow(0, configuration(2, 1, "11-8191", "0-10", "g2"))
	since(g1, moves, 0)
	since(g1, stays, 1)
	m.follow(1, configuration(2, 2, "0-10,8192-16383", "", ""))
	since(g2, moves, g2.Version())
	if g2.Version() != 3 {
		t.Errorf("version %d", g2.Version())
	}
	m.follow(0, configuration(9, 8, "11-8191", "", "")) // changes were missed: its slots may have been elsewhere
	since(g1, stays, 4)
	since(g2, moves, 3)
}

func TestMap_NamesAGroupThatTheFileLacks(t *testing.T) {
	t.Parallel()
	m := newMap(t, "0-16383", "none", "none")
	m.follow(0, configuration(2, 1, "none", "0-16383", "g9"))
	if err := m.frozen("key"); err == nil || !strings.Contains(err.Error(), "from group g1 to g9, for which the file of this daemon has no [[group]] table; nothing was done, try again in ") {
		t.Errorf("%v", err)
	}
	m.follow(0, configuration(3, 2, "", "", "")) // it has taken them back
	if err := m.frozen("key"); err != nil {
		t.Error(err)
	}
}

func TestMap_ShowsWhatWasRequestedAndHowLongAFreezeLasts(t *testing.T) {
	t.Parallel()
	m := newMap(t, "0-8191", "8192-16383", "none")
	for range 5 {
		m.of("key-1")
	}
	total := int64(0)
	for _, s := range m.Served() {
		total += s.Operations
	}
	m.follow(0, configuration(2, 1, "11-8191", "0-10", "g2"))
	all := m.Served()
	if total != 5 || all[0].Rest <= 0 || all[0].Rest > time.Minute || all[1].Rest != 0 || all[1].Version != 1 || all[2].Version != 0 {
		t.Errorf("%d operations, %+v", total, all)
	}
	homes := m.Groups() // a frozen range stays at home
	slices.SortFunc(homes, func(a, b slots.Ranges) int { return a[0].First - b[0].First })
	if got := fmt.Sprint(homes); got != "[0-8191 8192-16383]" {
		t.Errorf("slots of the homes: %s", got)
	}
}

// Whatever is learned in whatever order: no slot is served by two groups, and only by one that has it.
func TestMap_ASlotIsServedByTheGroupOfTheHighestVersion(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		type change struct {
			group int
			c     *pool.Configuration
		}
		owned := []slots.Ranges{ranges(t, "0-8191"), ranges(t, "8192-16383"), nil}
		epochs := []int64{1, 1, 1}
		var history []change
		version := int64(0)
		next := func(group int, leaving slots.Ranges, to string) {
			version++
			epochs[group]++
			text := ""
			if len(leaving) > 0 {
				text = leaving.String()
			}
			history = append(history, change{group, configuration(epochs[group], version, owned[group].String(), text, to)})
		}
		for range 6 {
			from, to := r.IntN(3), r.IntN(3)
			first := r.IntN(slots.Count - 100)
			moved := owned[from].And(slots.Ranges{{First: first, Last: min(first+r.IntN(4000), slots.Count-1)}})
			if from == to || len(moved) == 0 {
				continue
			}
			owned[from] = owned[from].Minus(moved)
			next(from, moved, fmt.Sprint("g", to+1))
			owned[to] = owned[to].Plus(moved)
			next(to, nil, "")
		}
		m := newMap(t, "0-8191", "8192-16383", "none")
		learned := map[int]int64{}
		r.Shuffle(len(history), func(i, j int) { history[i], history[j] = history[j], history[i] })
		for _, h := range history {
			m.follow(h.group, h.c)
			learned[h.group] = max(learned[h.group], h.c.MapVersion)
			if got := m.now.Load().versions; got[h.group] != learned[h.group] {
				t.Fatalf("seed %d: versions %v", seed, got)
			}
		}
		for slot, p := range m.now.Load().slots {
			if p.frozen || !owned[p.group].Has(slot) {
				t.Fatalf("seed %d: slot %d is at %+v of %v", seed, slot, p, owned)
			}
		}
	}
}

// isMoving wants the answer that the slot is on its way.
func isMoving(t *testing.T, what string, err error) {
	t.Helper()
	e, ok := errors.AsType[*redlock.Moving](err)
	if !ok || e.From != "g1" || e.To != "g2" || e.Moved || e.Rest <= 0 {
		t.Errorf("%s: %v", what, err)
	}
}

// cut freezes the slots of the first group, and end gives them to the second one.
func (s *stand) cut() { s.plan.follow(0, configuration(2, 1, "none", "0-8191", "g2")) }
func (s *stand) end() { s.plan.follow(1, configuration(2, 2, "0-16383", "", "")) }

func TestRouter_GrantsNothingInAFrozenSlot(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key, other := s.key(0, 0), s.key(1, 0)
	g := s.take(key)
	works := make(chan redlock.Work, 1)
	s.Work(nil, redlock.WorkRequest{Key: key, Timeout: time.Minute, Max: 9}, func(w redlock.Work, err error) { works <- w })
	work := receive(t, works)
	s.cut()
	errs := make(chan error, 1)
	locked := func(_ redlock.Grant, err error) { errs <- err }
	worked := func(_ redlock.Work, err error) { errs <- err }
	ended := func(_ bool, err error) { errs <- err }
	end := redlock.WorkEndRequest{Key: key, Token: work.Token, Timeout: time.Minute}
	for what, request := range map[string]func(){
		"a lock": func() { s.Lock(nil, redlock.LockRequest{Key: key, TTL: time.Minute}, locked) },
		"a lock of two": func() {
			s.Lock(nil, redlock.LockRequest{Key: other, More: []redlock.Key{key}, TTL: time.Minute}, locked)
		},
		"a wait of no time": func() { s.Wait(nil, redlock.LockRequest{Key: key, TTL: time.Minute}, locked) },
		"a short wait":      func() { s.Wait(nil, redlock.LockRequest{Key: key, TTL: time.Minute, Wait: time.Millisecond}, locked) },
		"an extension":      func() { s.Extend(nil, redlock.ExtendRequest{Key: key, Token: g.Token, TTL: time.Minute}, locked) },
		"one of two": func() {
			s.Extend(nil, redlock.ExtendRequest{Key: other, More: []redlock.Key{key}, Token: g.Token, TTL: time.Minute}, locked)
		},
		"an id": func() {
			s.NextID(nil, redlock.IDRequest{Name: key, Count: 1}, func(_ int64, err error) { errs <- err })
		},
		"a deletion":        func() { s.DeleteCounter(0, key, 1, func(_ []redlock.CounterFate, err error) { errs <- err }) },
		"work":              func() { s.Work(nil, redlock.WorkRequest{Key: key, Timeout: time.Minute, Max: 1}, worked) },
		"work that is done": func() { s.WorkDone(nil, end, ended) },
		"work that failed":  func() { s.WorkFail(nil, end, ended) },
		"work that goes on": func() { s.WorkExtend(nil, end, worked) },
		"another value": func() {
			s.Write(nil, redlock.WriteRequest{Key: key, Effect: redlock.WriteReplaces, Value: "v", TTL: time.Minute}, ended)
		},
		"another end": func() {
			s.Extend(nil, redlock.ExtendRequest{Key: key, Token: "t", TTL: time.Minute, Exact: true}, func(_ redlock.Grant, err error) { errs <- err })
		},
		"a wait until it ends": func() {
			s.AwaitFree(redlock.AwaitRequest{Key: key, Timeout: time.Millisecond}, func(_ bool, err error) { errs <- err })
		},
	} {
		request()
		isMoving(t, what, receive(t, errs))
	}
	states := make(chan redlock.LockState, 1)
	s.ReadLock(0, key, func(v redlock.LockView, err error) { states <- v.State })
	if state := receive(t, states); state != redlock.LockHeld {
		t.Errorf("the lock is %v while its slot moves", state)
	}
	s.release(g)
	// That this group has no lock says nothing: the next one may have it by now.
	for what, request := range map[string]func(){
		"a release of what is not held here": func() { s.Unlock(nil, redlock.UnlockRequest{Key: key, Token: "of-another-group"}, ended) },
		"a deletion of what is not here":     func() { s.Write(nil, redlock.WriteRequest{Key: key, Effect: redlock.WriteDeletes}, ended) },
	} {
		request()
		isMoving(t, what, receive(t, errs))
	}
	s.release(s.take(other))
	if n := s.Waiters(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

func TestRouter_WaitsThroughAMove(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key, other := s.key(0, 0), s.key(1, 0)
	holder := s.take(key) // in the group that the key leaves, for longer than the test
	answers := make(chan answer, 9)
	wait := func(q redlock.LockRequest) (leave func()) {
		q.TTL, q.Wait = time.Minute, time.Hour
		return s.Wait(nil, q, func(g redlock.Grant, err error) { answers <- answer{g, err} })
	}
	free, works := make(chan error, 1), make(chan redlock.Work, 1)
	waiters := func(n int) {
		t.Helper()
		for s.Waiters() != n {
			time.Sleep(time.Millisecond)
		}
	}
	wait(redlock.LockRequest{Key: key, Token: "the-first-of-them"}) // it waits in the line of the group
	waiters(1)
	s.cut()
	waiters(1)
	for s.parked.count() != 1 {
		time.Sleep(time.Millisecond)
	}
	wait(redlock.LockRequest{Key: other, More: []redlock.Key{key}}) // comes in the freeze
	s.AwaitFree(redlock.AwaitRequest{Key: key, Timeout: time.Hour}, func(_ bool, err error) { free <- err })
	s.Work(nil, redlock.WorkRequest{Key: key, Timeout: time.Minute, Max: 1, Wait: time.Hour}, func(w redlock.Work, err error) { works <- w })
	leave := wait(redlock.LockRequest{Key: key})
	waiters(5)
	if list, all := s.Waiting(0, func(k redlock.Key) bool { return k == key }, 2); all != 3 || len(list) != 2 || list[0].Left <= 0 {
		t.Errorf("%d of %d wait: %+v", len(list), all, list)
	}
	leave()
	if a := receive(t, answers); !errors.Is(a.err, redlock.ErrLeft) {
		t.Errorf("after its client has left: %v", a.err)
	}
	select {
	case a := <-answers:
		t.Fatalf("granted in the freeze: %+v", a)
	default:
	}
	s.end()
	if w := receive(t, works); w.State != redlock.WorkAcquired {
		t.Errorf("work is %s", w.State)
	}
	for range 2 {
		a := receive(t, answers)
		if a.err != nil || a.grant.Validity() <= 0 {
			t.Fatalf("%+v, %v", a.grant, a.err)
		}
		s.release(a.grant) // in the group that has it now
	}
	if err := receive(t, free); err != nil {
		t.Error(err)
	}
	if was, _ := s.groups[0].Locker, holder; was.Waiters() != 0 || s.parked.count() != 0 {
		t.Errorf("%d wait where the key was, %d are parked", was.Waiters(), s.parked.count())
	}
}

func TestRouter_AParkedWaitEndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.cut()
	key := s.key(0, 0)
	errs := make(chan error, 2)
	for range 2 {
		s.Wait(nil, redlock.LockRequest{Key: key, TTL: time.Minute, Wait: time.Hour}, func(_ redlock.Grant, err error) { errs <- err })
		s.EndWaits()
		if err := receive(t, errs); !errors.Is(err, redlock.ErrShutdown) {
			t.Errorf("%v", err)
		}
	}
}

// A request that began before the cut is counted after it: the next group may hold by now what this
// one does not.
func TestRouter_NotHeldIsUnknownOnceTheSlotHasLeft(t *testing.T) {
	t.Parallel()
	errs := make(chan error, 1)
	locked := func(_ redlock.Grant, err error) { errs <- err }
	ended := func(_ bool, err error) { errs <- err }
	for what, request := range map[string]func(s *stand, b *redlock.Batch, key redlock.Key){
		"an extension": func(s *stand, b *redlock.Batch, key redlock.Key) {
			s.Extend(b, redlock.ExtendRequest{Key: key, Token: "of-another-group", TTL: time.Minute}, locked)
		},
		"an extension of two": func(s *stand, b *redlock.Batch, key redlock.Key) {
			s.Extend(b, redlock.ExtendRequest{Key: s.key(1, 0), More: []redlock.Key{key}, Token: "of-another-group", TTL: time.Minute}, locked)
		},
		"a release": func(s *stand, b *redlock.Batch, key redlock.Key) {
			s.Unlock(b, redlock.UnlockRequest{Key: key, Token: "of-another-group"}, ended)
		},
		"work that goes on": func(s *stand, b *redlock.Batch, key redlock.Key) {
			s.WorkExtend(b, s.endedWork(key), func(_ redlock.Work, err error) { errs <- err })
		},
		"work that is done": func(s *stand, b *redlock.Batch, key redlock.Key) { s.WorkDone(b, s.endedWork(key), ended) },
	} {
		s := newStand(t)
		key, b := s.key(0, 0), &redlock.Batch{}
		request(s, b, key)
		s.cut()
		b.Send()
		isMoving(t, what, receive(t, errs))
	}
}

// endedWork is a request for an attempt that has failed.
func (s *stand) endedWork(key redlock.Key) redlock.WorkEndRequest {
	s.t.Helper()
	works, failed := make(chan redlock.Work, 1), make(chan error, 1)
	s.Work(nil, redlock.WorkRequest{Key: key, Timeout: time.Minute, Max: 9}, func(w redlock.Work, err error) { works <- w })
	end := redlock.WorkEndRequest{Key: key, Token: receive(s.t, works).Token, Timeout: time.Minute}
	s.WorkFail(nil, end, func(_ bool, err error) { failed <- err })
	if err := receive(s.t, failed); err != nil {
		s.t.Fatal(err)
	}
	return end
}

// What a group has left of slots that it does not have is not listed.
func TestRouter_ListsWhatTheGroupsHaveNow(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key := s.key(0, 0)
	s.take(key)
	ids := make(chan error, 1)
	s.NextID(nil, redlock.IDRequest{Name: key, Count: 1}, func(_ int64, err error) { ids <- err })
	if err := receive(t, ids); err != nil {
		t.Fatal(err)
	}
	listed := func() (n int) {
		names, pages := make(chan int, 1), make(chan redlock.LockPage, 1)
		s.ListCounters(0, func(all []redlock.Key, err error) { names <- len(all) })
		n = receive(t, names)
		locks := map[redlock.Key]bool{}
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			s.ListLocks(redlock.Listing{Cursor: cursor, Count: 100, Wanted: func(redlock.Key) bool { return true }}, func(p redlock.LockPage, err error) { pages <- p })
			page := receive(t, pages)
			for _, one := range page.Locks {
				locks[one.Key] = true
			}
			cursor = page.Cursor
		}
		return n + len(locks)
	}
	if n := listed(); n != 2 {
		t.Errorf("%d are listed", n)
	}
	s.cut()
	if n := listed(); n != 2 { // the lock is held, and the counter is there
		t.Errorf("%d are listed while the slots move", n)
	}
	s.end()
	if n := listed(); n != 0 {
		t.Errorf("%d are listed after the move", n)
	}
}

// The command that moves slots may have ended before its end.
func TestMap_ShowsAMoveThatIsNotFinishedAfterItsFreeze(t *testing.T) {
	t.Parallel()
	m, err := NewMap([]slots.Owner{{Name: "g1", Slots: ranges(t, "0-16383")}, {Name: "g2"}}, 0, pool.SystemClock())
	if err != nil {
		t.Fatal(err)
	}
	m.follow(0, configuration(2, 1, "none", "0-16383", "g2"))
	if all := m.Served(); len(all) != 1 || !all[0].Frozen || all[0].Rest != 0 {
		t.Errorf("%+v", all)
	}
	if err := m.frozen("key"); err == nil || !strings.HasSuffix(err.Error(), "try again in 1000 ms; if that lasts, an operator must finish the move: redlockd slots shows how") {
		t.Errorf("%v", err)
	}
	m.follow(1, configuration(2, 2, "", "", ""))
	if err := m.frozen("key"); err != nil {
		t.Error(err)
	}
}
