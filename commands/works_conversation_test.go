// The fake masters of tests about ids and work.

package commands_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

// workConversation is a conversation with ids and work in it.
type workConversation struct {
	*conversation
	ids   *fakeIDs
	works *fakeWorks
}

func newWorkConversation(t *testing.T) *workConversation {
	c := &workConversation{conversation: newConversation(t), ids: &fakeIDs{}, works: &fakeWorks{}}
	c.table = newTable(commands.Deps{
		Locks: c.locks, IDs: c.ids, Works: c.works,
		MaxTTL: time.Minute, MaxKeep: 5 * time.Minute, MaxWait: 2 * time.Minute,
	})
	return c
}

// refuses expects each call to be answered with the mistake and the syntax.
func (c *workConversation) refuses(syntax string, calls [][2]string) {
	c.t.Helper()
	for _, call := range calls {
		if got, want := c.say(call[0]), "-ERR "+call[1]+"; syntax: "+syntax; got != want {
			c.t.Errorf("> %.80s\n got %s\nwant %s", call[0], got, want)
		}
	}
}

// outcomes are errors of package redlock and how a client reads them.
func outcomes() map[string]error {
	exhausted := &redlock.Exhausted{Counter: "orders", Value: 9}
	durable := &redlock.NotDurable{Durable: 1, Needed: 2, Total: 3, Volatile: []string{"a has appendonly no"}}
	lost := &redlock.LostState{Counter: "orders", Trusted: 1, Needed: 2, Highest: 41}
	below := &redlock.BelowKnown{Counter: "orders", Value: 5, Known: 9, Master: "a"}
	return map[string]error{
		"-EXHAUSTED " + exhausted.Error():                     exhausted,
		"-NOTDURABLE " + durable.Error():                      durable,
		"-LOSTSTATE " + lost.Error():                          lost,
		"-ERR " + below.Error():                               below,
		"-ERR " + redlock.ErrBadToken.Error():                 redlock.ErrBadToken,
		"-SHUTDOWN " + redlock.ErrShutdown.Error():            redlock.ErrShutdown,
		"-NOQUORUM 1 of 3 masters answered, 2 needed: b down": &redlock.NoQuorum{Answered: 1, Needed: 2, Total: 3, Missing: []string{"b down"}},
		"-TRYLATER operations in flight: limit 9 reached (--max-operations); nothing was done, try later":     &redlock.Busy{What: "operations in flight", Limit: 9, Option: "--max-operations"},
		"-WRONGTYPE Operation against a key holding the wrong kind of value: " + redlock.ErrWrongType.Error(): redlock.ErrWrongType,
		"-EXPIRED " + (&redlock.Expired{Elapsed: time.Second, TTL: time.Second}).Error():                      &redlock.Expired{Elapsed: time.Second, TTL: time.Second},
	}
}

// mirrors expects the line to be answered with every outcome that play makes
// the masters give.
func (c *workConversation) mirrors(line string, play func(error)) {
	c.t.Helper()
	for want, err := range outcomes() {
		play(err)
		if got := c.say(line); got != want {
			c.t.Errorf("> %s\n got %s\nwant %s", line, got, want)
		}
	}
}

// fakeIDs plays counters.
type fakeIDs struct {
	first    int64
	err      error
	counters map[redlock.Key]redlock.Counter
	held     bool // reads of counters are kept for the test to answer

	asked    []redlock.IDRequest
	read     []redlock.Key
	reading  []func()
	reseeded []any // db, name, value, in turn
	deleted  []any // the same
	listed   []int // databases
}

func (f *fakeIDs) NextID(_ *redlock.Batch, r redlock.IDRequest, done redlock.IDDone) {
	f.asked = append(f.asked, r)
	done(f.first, f.err)
}

func (f *fakeIDs) ReadCounter(_ int, name redlock.Key, done func(redlock.Counter, error)) {
	f.read = append(f.read, name)
	answer := func() { done(f.counters[name], f.err) }
	if f.held {
		f.reading = append(f.reading, answer)
		return
	}
	answer()
}

func (f *fakeIDs) ListCounters(db int, done func([]redlock.Key, error)) {
	f.listed = append(f.listed, db)
	var names []redlock.Key
	for name := range f.counters {
		names = append(names, name)
	}
	slices.Sort(names)
	done(names, f.err)
}

func (f *fakeIDs) DeleteCounter(db int, name redlock.Key, confirm int64, done func([]redlock.CounterFate, error)) {
	f.deleted = append(f.deleted, db, name, confirm)
	done([]redlock.CounterFate{{Master: "a", Fate: redlock.CounterDeleted}, {Master: "b", Fate: redlock.CounterUnanswered}}, f.err)
}

func (f *fakeIDs) Reseed(db int, name redlock.Key, value int64, done func(error)) {
	f.reseeded = append(f.reseeded, db, name, value)
	done(f.err)
}

// fakeWorks plays pieces of work.
type fakeWorks struct {
	left int // waits whose client has gone
	work redlock.Work
	view redlock.WorkView
	so   bool
	err  error

	asked     []redlock.WorkRequest
	ended     []string // "done", "fail" or "extend" in front of the request
	requests  []redlock.WorkEndRequest
	read      []redlock.Key
	givenBack []redlock.Token
}

func (f *fakeWorks) Work(_ *redlock.Batch, r redlock.WorkRequest, done redlock.WorkCompletion) (leave func()) {
	f.asked = append(f.asked, r)
	done(f.work, f.err)
	return func() { f.left++ }
}

func (f *fakeWorks) WorkGiveBack(w redlock.Work) { f.givenBack = append(f.givenBack, w.Token) }

func (f *fakeWorks) ReadWork(_ int, key redlock.Key, done func(redlock.WorkView, error)) {
	f.read = append(f.read, key)
	done(f.view, f.err)
}

func (f *fakeWorks) WorkDone(_ *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkEndDone) {
	f.end("done", r)
	done(f.so, f.err)
}

func (f *fakeWorks) WorkFail(_ *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkEndDone) {
	f.end("fail", r)
	done(f.so, f.err)
}

func (f *fakeWorks) WorkExtend(_ *redlock.Batch, r redlock.WorkEndRequest, done redlock.WorkExtendDone) {
	f.end("extend", r)
	done(f.work, f.err)
}

func (f *fakeWorks) end(how string, r redlock.WorkEndRequest) {
	f.ended = append(f.ended, how)
	f.requests = append(f.requests, r)
}

// acquired is attempt 2 with fence 41 and a validity that clock uses up.
func acquired(t *testing.T, validity time.Duration, clock *stillClock) redlock.Work {
	t.Helper()
	work := redlock.Work{State: redlock.WorkAcquired, Key: "report", Attempt: 2, Token: "work-token", Fence: 41}
	setLease(t, reflect.ValueOf(&work).Elem(), validity, clock)
	if got := work.Validity(); got != validity {
		t.Fatalf("work made for %v has a validity of %v", validity, got)
	}
	return work
}

// x is a text of n bytes.
func x(n int) string { return strings.Repeat("x", n) }
