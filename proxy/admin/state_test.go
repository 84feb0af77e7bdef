package admin

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/commands"
	"redlockd/commands/diagnosis"
	"redlockd/pool"
	"redlockd/redlock"
)

// fakeReader has locks on which all masters agree.
type fakeReader struct {
	mu      sync.Mutex
	held    []redlock.Key
	waiting []redlock.Waiting
	steps   []redlock.Listing
	read    map[redlock.Key]int
	note    *redlock.Note
	heard   func(redlock.Event)
	failure error
}

func lookingAt(keys ...redlock.Key) *fakeReader {
	return &fakeReader{held: keys, read: map[redlock.Key]int{}}
}

func (f *fakeReader) view(key redlock.Key, fence redlock.Fence) redlock.LockView {
	return redlock.LockView{State: redlock.LockHeld, Count: 1, Left: time.Minute, Holders: []redlock.Holder{
		{Token: "token-" + redlock.Token(key), Left: time.Minute, Confirmed: true, Fence: fence, Note: f.note},
	}}
}

func (f *fakeReader) ReadLock(_ int, key redlock.Key, done func(redlock.LockView, error)) {
	f.mu.Lock()
	f.read[key]++
	held, failure := slices.Contains(f.held, key), f.failure
	f.mu.Unlock()
	if held {
		done(f.view(key, 1_700_000_000_000_000), failure)
		return
	}
	done(redlock.LockView{}, failure)
}

// ListLocks answers Count keys a step.
func (f *fakeReader) ListLocks(r redlock.Listing, done func(redlock.LockPage, error)) {
	f.mu.Lock()
	f.steps = append(f.steps, r)
	from := min(int(r.Cursor), len(f.held))
	to := min(from+r.Count, len(f.held))
	keys, failure := slices.Clone(f.held[from:to]), f.failure
	p := redlock.LockPage{}
	if to < len(f.held) {
		p.Cursor = uint64(to)
	}
	f.mu.Unlock()
	for _, key := range keys {
		if r.Wanted(key) {
			p.Locks = append(p.Locks, redlock.ListedLock{Key: key, View: f.view(key, 0)})
		}
	}
	done(p, failure)
}

func (f *fakeReader) Track(int, redlock.Key, redlock.Seen, func(bool)) func() {
	panic("the page tracks no keys")
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

func (f *fakeReader) Force(redlock.ForceRequest, func(bool, error)) { panic("nothing is forced here") }

func (f *fakeReader) Revoke(int, redlock.Key, string, func(int, error)) {
	panic("nothing is revoked here")
}
func (f *fakeReader) HeldBy() map[int64]int { panic("no connections are listed here") }

func (f *fakeReader) Describe(redlock.Lease, string, func(bool, error)) {
	panic("nothing is described here")
}

func (f *fakeReader) listening() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard != nil
}

// withPage are figures with a page about a reader's locks.
func withPage(o Options, reader locks) Options {
	o.Sources.Locks = fakes{reader}
	return o
}

// stateView is what the tests read of the state.
type stateView struct {
	Headline diagnosis.Headline `json:"headline"`
	Waiting  int                `json:"waiting"`
	Waiters  []struct {
		Keys   []string `json:"keys"`
		Client string   `json:"client"`
	} `json:"waiters"`
	Events []struct {
		Key string `json:"key"`
	} `json:"events"`
	LastEvent int64 `json:"last_event"`
	Dropped   int64 `json:"dropped_events"`
}

// readJSON requests a path as a user.
func readJSON[T any](t *testing.T, s *Server, path, login string) (value T) {
	t.Helper()
	w := askServer(s, "10.0.0.1:1", path, login)
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestState_ShowsOnlyWhatTheUserMaySee(t *testing.T) {
	reader := &forcible{fakeReader: lookingAt("mine:1", "theirs")}
	s := newServer(withPage(apiOptions(t, reader), reader))
	defer s.watches.end(nil)
	long := redlock.Waiting{Keys: []redlock.Key{"theirs"}, Since: time.Hour}
	both := redlock.Waiting{Keys: []redlock.Key{"theirs", "mine:1"}, Since: time.Minute, Requester: redlock.Requester{Name: "web", Addr: "10.0.0.9:1"}}
	reader.waiting = []redlock.Waiting{long, both}
	askServer(s, "10.0.0.1:1", "/state", "part:pa")
	reader.heard(redlock.Event{Kind: redlock.EventAcquired, Key: "theirs"})
	reader.heard(redlock.Event{Kind: redlock.EventReleased, Key: "mine:1"})
	v := readJSON[stateView](t, s, "/state", "part:pa")
	if v.Waiting != 1 || len(v.Waiters) != 1 || !slices.Equal(v.Waiters[0].Keys, []string{"mine:1"}) || v.Waiters[0].Client != "web 10.0.0.9:1" {
		t.Errorf("waiters %+v", v.Waiters)
	}
	if len(v.Events) != 1 || v.Events[0].Key != "mine:1" {
		t.Errorf("events %+v", v.Events)
	}
	lines := strings.Join(v.Headline.Lines, "\n")
	if !strings.Contains(lines, "Key mine:1 has been held") || strings.Contains(lines, "theirs") {
		t.Errorf("the headline is %s", lines)
	}
	if all := readJSON[stateView](t, s, "/state", "operator:op"); all.Waiting != 2 || len(all.Events) != 2 {
		t.Errorf("the operator sees %+v", all)
	}
}

// staleDaemon is a group with a daemon that has not followed a change.
type staleDaemon struct{ fakes }

func (s staleDaemon) Reports(db int) []redlock.MasterReport {
	all := s.fakes.Reports(db)
	all[0].Epoch, all[0].Configuration, all[0].Daemons = 2, "current", []pool.Daemon{{Name: "web/1", Epoch: 1}}
	return all
}

func TestState_NamesWhatTheMastersDoNotShow(t *testing.T) {
	o := figures()
	o.Sources.Locks = staleDaemon{fakes{lookingAt()}}
	before := o.Sources.Snapshot
	o.Sources.Snapshot = func() commands.Snapshot {
		snapshot := before()
		snapshot.UnfinishedSlots = 8192
		return snapshot
	}
	s := newServer(o)
	defer s.watches.end(nil)
	lines := strings.Join(readJSON[stateView](t, s, "/state", "").Headline.Lines, "\n")
	for _, want := range []string{"Daemons that grant nothing, because their configuration is not that of the masters: 1 (", "Nothing is granted in 8192 slots: "} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is missing in %s", want, lines)
		}
	}
}

func TestState_SendsEveryEventOnce(t *testing.T) {
	reader := lookingAt()
	s := newServer(withPage(figures(), reader))
	defer s.watches.end(nil)
	first := readJSON[stateView](t, s, "/state", "")
	for range 3 {
		reader.heard(redlock.Event{Kind: redlock.EventAcquired, Key: "k"})
	}
	since := "/state?since=" + itoa(first.LastEvent)
	next := readJSON[stateView](t, s, since, "")
	if len(next.Events) != 3 || next.LastEvent != first.LastEvent+3 || next.Dropped != 0 {
		t.Errorf("%+v", next)
	}
	if again := readJSON[stateView](t, s, "/state?since="+itoa(next.LastEvent), ""); len(again.Events) != 0 || again.Dropped != 0 {
		t.Errorf("nothing is new, and there is %+v", again)
	}
	for range maxEvents {
		reader.heard(redlock.Event{Kind: redlock.EventAcquired, Key: "k"})
	}
	if late := readJSON[stateView](t, s, since, ""); len(late.Events) != maxEvents || late.Dropped != 3 {
		t.Errorf("%d events, %d dropped, want the last %d and 3", len(late.Events), late.Dropped, maxEvents)
	}
	if fresh := readJSON[stateView](t, s, "/state", ""); len(fresh.Events) != maxEvents {
		t.Errorf("a page that has just opened gets %d events", len(fresh.Events))
	}
}

func itoa(n int64) string { text, _ := json.Marshal(n); return string(text) }

// Listeners cost every lock something: they exist only while pages poll.
func TestWatches_EndWithTheLastPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := lookingAt()
		s := newServer(withPage(figures(), reader))
		for range 5 {
			askServer(s, "127.0.0.1:1", "/state", "")
			time.Sleep(idleAfter / 2)
			if !reader.listening() {
				t.Fatal("the events ended while a page polls")
			}
		}
		time.Sleep(idleAfter)
		if reader.listening() {
			t.Error("the events go on without a page")
		}
		askServer(s, "127.0.0.1:1", "/state", "")
		if !reader.listening() {
			t.Error("another page gets no events")
		}
		s.watches.end(nil)
		if reader.listening() {
			t.Error("the events go on after the end")
		}
		if w := askServer(s, "127.0.0.1:1", "/state", ""); w.Code != 503 {
			t.Errorf("a poll after the end: %d", w.Code)
		}
	})
}

func TestState_BoundsTheRequestsUnderWay(t *testing.T) {
	s := newServer(withPage(figures(), lookingAt()))
	defer s.watches.end(nil)
	for range maxRequests {
		s.requestSlots <- struct{}{}
	}
	answered := make(chan *httptest.ResponseRecorder)
	go func() { answered <- askServer(s, "127.0.0.1:1", "/state", "") }()
	select {
	case w := <-answered:
		t.Fatalf("one more is served: %d", w.Code)
	default:
	}
	<-s.requestSlots
	if w := <-answered; w.Code != 200 {
		t.Errorf("status %d", w.Code)
	}
}

// listView is what the tests read of a step over the locks.
type listView struct {
	Rows []struct {
		Key     string      `json:"key"`
		Fence   string      `json:"fence"`
		Holders [][2]string `json:"holders"`
	} `json:"rows"`
	Next string `json:"next"`
}

func (v *listView) keys() (keys []string) {
	for _, row := range v.Rows {
		keys = append(keys, row.Key)
	}
	return keys
}

func stepper(t *testing.T, reader *forcible) *Server {
	t.Helper()
	return newServer(withPage(apiOptions(t, reader), reader))
}

func TestLocks_AStepIsTheWalkOfDLOCKS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := "mine:" + strings.Repeat("customers/", 10) + "[5]"
		reader := &forcible{fakeReader: lookingAt("mine:1", "mine:2", "theirs", "mine:3", "mine:[4]", redlock.Key(long))}
		reader.note = &redlock.Note{Meta: "nightly run", Name: "worker-7", Client: "10.0.0.9:1"}
		s := stepper(t, reader)
		for _, c := range []struct {
			path, next string
			keys       []string
		}{
			{"/locks?count=2", "2", []string{"mine:1", "mine:2"}},
			{"/locks?count=2&cursor=2", "4", []string{"mine:3"}},
			{"/locks?count=9&cursor=4", "0", []string{"mine:[4]", long}},
			{"/locks?match=mine:%3F", "0", []string{"mine:1", "mine:2", "mine:3"}},
			{"/locks?match=2", "0", []string{"mine:2"}},
			{"/locks?match=[4]", "0", []string{"mine:[4]"}},
			{"/locks?match=" + long[5:], "0", []string{long}},
			{"/locks?match=sreports" + long[10:], "0", nil},          // the pattern has the end alone
			{"/locks?count=1&match=mine:3", "1", []string{"mine:3"}}, // at once, by its whole name
			{"/locks?count=1&match=theirs", "1", nil},
		} {
			v := readJSON[listView](t, s, c.path, "part:pa")
			if !slices.Equal(v.keys(), c.keys) || v.Next != c.next {
				t.Errorf("%s: %v, next %s, want %v, %s", c.path, v.keys(), v.Next, c.keys, c.next)
			}
			for _, row := range v.Rows {
				if row.Fence != "1700000000000000" || len(row.Holders) != 1 || row.Holders[0] != [2]string{"nightly run", "worker-7 10.0.0.9:1"} {
					t.Errorf("row %+v", row)
				}
			}
		}
		for path, want := range map[string]int{"/locks?cursor=x": 400, "/locks?count=9999": 400, "/locks?match=[*": 400, "/locks?db=7": 400, "/locks?db=x": 400} {
			if w := askServer(s, "10.0.0.1:1", path, "part:pa"); w.Code != want {
				t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
			}
		}
		if reader.read["theirs"] > 0 {
			t.Error("a key of others was read")
		}
		reader.failure = errors.New("too few masters")
		if w := askServer(s, "10.0.0.1:1", "/locks", "part:pa"); w.Code != 400 || !strings.Contains(w.Body.String(), "too few masters") {
			t.Errorf("a failure: %d %s", w.Code, w.Body)
		}
		time.Sleep(maxRest) // of the last step
	})
}

// The steps of all pages together leave the masters most of their time.
func TestLocks_AStepRestsBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{fakeReader: lookingAt("a"), took: 5 * time.Millisecond}
		o := apiOptions(t, slow)
		o.Sources.Locks = fakes{slow}
		s, began := newServer(o), time.Now()
		var pages sync.WaitGroup
		for range 3 {
			pages.Go(func() { askServer(s, "10.0.0.1:1", "/locks", "operator:op") })
		}
		pages.Wait()
		if took, want := time.Since(began), 3*slow.took+2*restFactor*slow.took; took != want {
			t.Errorf("three steps at once took %v, want %v", took, want)
		}
		if len(slow.steps) != 3 {
			t.Errorf("%d steps", len(slow.steps))
		}
		time.Sleep(maxRest)
	})
}

// slowReader takes its time for a step.
type slowReader struct {
	*fakeReader
	took time.Duration
}

func (r *slowReader) ListLocks(l redlock.Listing, done func(redlock.LockPage, error)) {
	time.Sleep(r.took)
	r.fakeReader.ListLocks(l, done)
}

// groupReader walks as a router does: the keys that begin with b belong to the second group.
type groupReader struct{ *fakeReader }

func (r groupReader) ListLocks(l redlock.Listing, done func(redlock.LockPage, error)) {
	group := l.Cursor >> redlock.CursorBits
	page := redlock.LockPage{Cursor: (1 - group) << redlock.CursorBits}
	for _, key := range r.held {
		if groupOf(key) == []string{"g1", "g2"}[group] && l.Wanted(key) {
			page.Locks = append(page.Locks, redlock.ListedLock{Key: key, View: r.view(key, 0)})
		}
	}
	done(page, nil)
}

func groupOf(key redlock.Key) string {
	if strings.HasPrefix(string(key), "b") {
		return "g2"
	}
	return "g1"
}

func TestPage_ShowsTheGroupThatWasChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := groupReader{lookingAt("a:1", "b:1", "b:2")}
		reader.waiting = []redlock.Waiting{{Keys: []redlock.Key{"a:1"}}, {Keys: []redlock.Key{"b:1"}}}
		o := withPage(apiOptions(t, reader), reader)
		o.Sources.Groups, o.Sources.GroupOf = []Group{{"g1", fakeLanes{}}, {"g2", fakeLanes{}}}, groupOf
		s := newServer(o)
		readJSON[stateView](t, s, "/state", "operator:op") // begins to listen
		for _, key := range []redlock.Key{"a:1", "b:1"} {
			reader.heard(redlock.Event{Kind: redlock.EventReleased, Key: key})
		}
		for _, c := range []struct {
			group, cursor, next string
			keys                []string
			waiting             int
		}{
			{"", "", "", []string{"a:1", "b:1"}, 2}, // b:1 is waited for
			{"g1", "", "0", []string{"a:1"}, 1},
			{"g2", "", "0", []string{"b:1", "b:2"}, 1},
			{"g2", "0", "0", []string{"b:1", "b:2"}, 1},
		} {
			list := readJSON[listView](t, s, "/locks?group="+c.group+"&cursor="+c.cursor, "operator:op")
			if c.group == "" {
				c.next = strconv.FormatUint(1<<redlock.CursorBits, 10)
			}
			if !slices.Equal(list.keys(), c.keys) || list.Next != c.next {
				t.Errorf("group %q: %v, next %s, want %v, %s", c.group, list.keys(), list.Next, c.keys, c.next)
			}
			state := readJSON[stateView](t, s, "/state?group="+c.group, "operator:op")
			if state.Waiting != c.waiting || len(state.Events) != c.waiting || c.waiting == 1 && groupOf(redlock.Key(state.Events[0].Key)) != c.group {
				t.Errorf("group %q: state %+v", c.group, state)
			}
		}
		if found := readJSON[listView](t, s, "/locks?group=g1&match=b:1", "operator:op"); len(found.Rows) > 0 {
			t.Errorf("a lock of the other group: %+v", found)
		}
		for _, path := range []string{"/state?group=g3", "/locks?group=g3"} {
			if w := askServer(s, "10.0.0.1:1", path, "operator:op"); w.Code != 400 || !strings.Contains(w.Body.String(), `"g3" is no group of this daemon`) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		time.Sleep(maxRest)
		s.watches.end(nil)
	})
}
