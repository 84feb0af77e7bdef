package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/redlock"
)

// fakeReader has locks on which all masters agree.
type fakeReader struct {
	mu      sync.Mutex
	held    []redlock.Key
	waiting []redlock.Waiting
	walks   int // steps
	single  map[redlock.Key]int
	heard   func(redlock.Event)
	failure error
}

func lookingAt(keys ...redlock.Key) *fakeReader {
	return &fakeReader{held: keys, single: map[redlock.Key]int{}}
}

func heldBy(token redlock.Token, fence redlock.Fence) redlock.LockView {
	return redlock.LockView{
		State: redlock.LockHeld, Count: 1, Left: time.Minute, Holders: []redlock.Holder{{Token: token, Left: time.Minute, Confirmed: true, Fence: fence}},
	}
}

func (f *fakeReader) ReadLock(_ int, key redlock.Key, done func(redlock.LockView, error)) {
	f.mu.Lock()
	f.single[key]++
	held := slices.Contains(f.held, key)
	f.mu.Unlock()
	if !held {
		done(redlock.LockView{}, nil)
		return
	}
	done(heldBy("token-"+redlock.Token(key), 1_700_000_000_000_000), nil)
}

// ListLocks answers ten keys a step, whatever Count says.
func (f *fakeReader) ListLocks(r redlock.Listing, done func(redlock.LockPage, error)) {
	f.mu.Lock()
	f.walks++
	from := min(int(r.Cursor), len(f.held))
	to := min(from+10, len(f.held))
	keys, failure := slices.Clone(f.held[from:to]), f.failure
	p := redlock.LockPage{}
	if to < len(f.held) {
		p.Cursor = uint64(to)
	}
	f.mu.Unlock()
	for _, key := range keys {
		if r.Wanted(key) {
			p.Locks = append(p.Locks, redlock.ListedLock{Key: key, View: heldBy("token-"+redlock.Token(key), 0)})
		}
	}
	done(p, failure)
}

func (f *fakeReader) Waiting(_ int, wanted func(redlock.Key) bool, _ int) (list []redlock.Waiting, all int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.waiting {
		if slices.ContainsFunc(w.Keys, wanted) {
			list = append(list, w)
		}
	}
	return list, len(list)
}

func (f *fakeReader) Listen(_ int, heard func(redlock.Event)) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = heard
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.heard = nil
	}
}

func (f *fakeReader) steps() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.walks
}

func (f *fakeReader) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// withPage are figures with a page about the looks.
func withPage(o Options, looks LockReader) Options {
	o.Sources.Reader = looks
	return o
}

// next waits for a look that was begun after now, under a bubble's clock.
func next(o *poller) *snapshot {
	time.Sleep(2 * pollInterval)
	synctest.Wait()
	return o.snapshot()
}

func everything(redlock.Key) bool { return true }

func keysOf(entries []*cachedLock) (keys []string) {
	for _, e := range entries {
		keys = append(keys, string(e.key))
	}
	return keys
}

func TestPoller_PollsOnceForAllViewersAndEndsWithTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := lookingAt("a", "b", "c")
		all := newPollers(withPage(figures(), looks).Sources, figures().Logger)
		defer all.close()
		first := all.addViewer(0)
		next(first)
		alone := looks.steps()
		next(first)
		alone = looks.steps() - alone
		for range 9 {
			if all.addViewer(0) != first {
				t.Fatal("another viewer of the same database has another lookout")
			}
		}
		before := looks.steps()
		next(first)
		if together := looks.steps() - before; together != alone {
			t.Errorf("%d steps for ten viewers, %d for one", together, alone)
		}
		for range 10 {
			all.removeViewer(first)
		}
		time.Sleep(idlePolling + 2*pollInterval)
		before = looks.steps()
		time.Sleep(time.Hour)
		if after := looks.steps(); after != before || looks.heard != nil {
			t.Errorf("nobody looks, and there were %d steps; events are heard: %t", after-before, looks.heard != nil)
		}
		if again := all.addViewer(0); again == first {
			t.Error("who comes later sees what was")
		}
	})
}

func TestPoller_ReadsFencesOfKeysOnScreenAndDropsReleasedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := lookingAt("a", "b")
		all := newPollers(withPage(figures(), looks).Sources, figures().Logger)
		defer all.close()
		o := all.addViewer(0)
		s := next(o)
		v, entries := o.view(s, query{order: "key"}, everything)
		if len(v.Locks.Rows) != 2 || v.Locks.Rows[0].Fence != "" || v.Locks.Rows[0].Exactly {
			t.Errorf("before anybody looked: %+v", v.Locks.Rows)
		}
		o.addKeys(entries[:1])
		s = next(o)
		v, _ = o.view(s, query{order: "key"}, everything)
		if v.Locks.Rows[0].Fence != "1700000000000000" || !v.Locks.Rows[0].Exactly || v.Locks.Rows[1].Fence != "" {
			t.Errorf("with a on a screen: %+v", v.Locks.Rows)
		}
		looks.change(func() { looks.held = looks.held[:1] })
		s = next(o)
		if v, entries = o.view(s, query{order: "key"}, everything); len(entries) != 1 || v.Locks.Total != 1 {
			t.Errorf("b was released, and there are %q", keysOf(entries))
		}
	})
}

func TestPoller_ReportsWhyTheListMayBeIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := lookingAt("a")
		looks.failure = errors.New("too few masters")
		all := newPollers(withPage(figures(), looks).Sources, figures().Logger)
		defer all.close()
		o := all.addViewer(0)
		if v, _ := o.view(next(o), query{order: "key"}, everything); v.Locks.Trouble != "too few masters" || v.Locks.Complete {
			t.Errorf("%+v", v.Locks)
		}
	})
}

// The cost of a poll is bounded, however many locks there are.
func TestPoller_BoundsTheWalkOfOnePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []redlock.Key
		for i := range 40 * walkSteps {
			keys = append(keys, redlock.Key(fmt.Sprintf("k%04d", i)))
		}
		looks := lookingAt(keys...) // twenty looks
		all := newPollers(withPage(figures(), looks).Sources, figures().Logger)
		defer all.close()
		o := all.addViewer(0)
		<-o.first
		if v, _ := o.view(o.snapshot(), query{order: "key"}, everything); v.Locks.Total != 10*walkSteps || v.Locks.Complete {
			t.Errorf("the first look found %d, complete: %t", v.Locks.Total, v.Locks.Complete)
		}
		time.Sleep(10 * pollInterval)
		synctest.Wait()
		if v, _ := o.view(o.snapshot(), query{order: "key"}, everything); v.Locks.Total != len(keys) || !v.Locks.Complete || len(v.Locks.Rows) != pageSize {
			t.Errorf("in the end there are %d, complete: %t, on a page %d", v.Locks.Total, v.Locks.Complete, len(v.Locks.Rows))
		}
	})
}

func TestPoller_FindsALockByItsWholeNameHoweverFarTheWalkIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []redlock.Key
		for i := range 100 * walkSteps {
			keys = append(keys, redlock.Key(fmt.Sprintf("k%04d", i)))
		}
		all := newPollers(withPage(figures(), lookingAt(append(keys, "the last")...)).Sources, figures().Logger)
		defer all.close()
		o := all.addViewer(0)
		<-o.first
		o.addKey("the last")
		o.addKey("redlockd:seal")
		s := next(o)
		if _, entries := o.view(s, query{search: "the last", order: "key"}, everything); len(entries) != 1 {
			t.Errorf("it finds %q", keysOf(entries))
		}
		if n := o.sources.Reader.(*fakeReader).single["redlockd:seal"]; n != 0 {
			t.Error("it looked at a key that is no lock's")
		}
	})
}

// A bug of the page ends a poll, not the daemon.
func TestPoller_RecoversAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := &broken{fakeReader: lookingAt("a")}
		all := newPollers(withPage(figures(), looks).Sources, figures().Logger)
		defer all.close()
		o := all.addViewer(0)
		time.Sleep(3 * pollInterval)
		looks.well.Store(true)
		if s := next(o); s == nil || o.cache.get("a") == nil {
			t.Error("it does not look any more")
		}
	})
}

type broken struct {
	*fakeReader
	well atomic.Bool
}

func (b *broken) Waiting(db int, wanted func(redlock.Key) bool, most int) ([]redlock.Waiting, int) {
	if !b.well.Load() {
		panic("broken")
	}
	return b.fakeReader.Waiting(db, wanted, most)
}

func TestView_ShowsOnlyWhatTheViewerMaySee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := lookingAt("mine:1", "theirs")
		looks.waiting = []redlock.Waiting{
			{Keys: []redlock.Key{"theirs"}, Since: time.Minute},
			{Keys: []redlock.Key{"mine:1", "theirs"}, Since: time.Minute, Requester: redlock.Requester{ID: 7, Addr: "10.0.0.9:1"}},
		}
		all := newPollers(withPage(figures(), looks).Sources, figures().Logger)
		defer all.close()
		o := all.addViewer(0)
		s := next(o)
		mine := func(key redlock.Key) bool { return strings.HasPrefix(string(key), "mine:") }
		v, entries := o.view(s, query{order: "key"}, mine)
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "theirs") || v.Waiters.All != 1 || len(entries) != 1 || v.Locks.Total != 1 {
			t.Errorf("%s", text)
		}
		if rows := eventViews([]redlock.Event{{Kind: redlock.EventAcquired, Key: "theirs"}, {Kind: redlock.EventForced, Key: "mine:1"}}, mine); len(rows) != 1 || rows[0].Word != "forced" {
			t.Errorf("events: %+v", rows)
		}
	})
}
