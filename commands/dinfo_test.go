package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// fakeInspect plays the inspection of locks.
type fakeInspect struct {
	commands.Inspect // what is below replaces its methods

	view    redlock.LockView
	page    redlock.LockPage
	waiting []redlock.Waiting
	all     int
	forced  bool
	err     error

	keys    []redlock.Key
	listing redlock.Listing
	force   redlock.ForceRequest
	revoked []string

	described []string
	most      int
}

func (f *fakeInspect) ReadLock(_ int, key redlock.Key, done func(redlock.LockView, error)) {
	f.keys = append(f.keys, key)
	done(f.view, f.err)
}

func (f *fakeInspect) ListLocks(r redlock.Listing, done func(redlock.LockPage, error)) {
	f.listing = r
	done(f.page, f.err)
}

func (f *fakeInspect) Waiting(_ int, wanted func(redlock.Key) bool, most int) (list []redlock.Waiting, all int) {
	f.most = most
	for _, w := range f.waiting {
		for _, key := range w.Keys {
			if wanted(key) {
				list = append(list, w)
				break
			}
		}
	}
	return list, max(f.all, len(list))
}

func (f *fakeInspect) Force(r redlock.ForceRequest, done func(bool, error)) {
	f.force = r
	done(f.forced, f.err)
}

func (f *fakeInspect) Describe(id redlock.Lease, meta string, done func(bool, error)) {
	f.described = append(f.described, fmt.Sprint(id.DB, " ", id.Key, " ", id.Token, " ", meta))
	done(f.forced, f.err)
}

func (f *fakeInspect) Revoke(db int, key redlock.Key, text string, done func(int, error)) {
	f.revoked = append(f.revoked, fmt.Sprint(db, " ", key, " ", text))
	done(len(f.revoked), nil)
}

func (f *fakeInspect) HeldBy() map[int64]int { return map[int64]int{8: 2} }

func (f *fakeInspect) Listen(int, func(redlock.Event)) (end func()) { return func() {} }

func (f *fakeInspect) Track(int, redlock.Key, redlock.Seen, func(bool)) (stop func()) {
	return func() {}
}

// lookConversation is a conversation about locks.
type lookConversation struct {
	*workConversation
	looks *fakeInspect
}

func newLookConversation(t *testing.T) *lookConversation {
	c := &lookConversation{newWorkConversation(t), &fakeInspect{}}
	c.serve(commands.Deps{Inspect: c.looks})
	c.client.DB = 3
	return c
}

// asUser puts the conversation behind users and signs it in as one with the key
// patterns and all categories but those left out.
func (c *lookConversation) asUser(keys ...string) {
	c.t.Helper()
	who := access.Everything("ops", "pw")
	who.Keys = keys
	users, err := access.NewUsers([]access.User{who})
	if err != nil {
		c.t.Fatal(err)
	}
	c.serve(commands.Deps{Inspect: c.looks, Users: users})
	c.client.User = "ops"
}

// The first eight digits of: printf work-token | sha256sum
const workTokenShown = "488dc3c9"

func TestDINFO_ShowsHoldersAndMastersAndNeverATokenItself(t *testing.T) {
	c := newLookConversation(t)
	wanted := "let me"
	c.looks.view = redlock.LockView{
		State: redlock.LockHeld, Mode: redlock.Permits, Limit: 5, Count: 2, Left: 900 * time.Millisecond, Waiters: 4, Queued: 6, Wanted: &wanted,
		Holders: []redlock.Holder{
			{Token: "work-token", Slot: 3, Left: 900 * time.Millisecond, Votes: 3, Confirmed: true, Fence: 77, Hold: true, Note: &redlock.Note{Meta: "build\r\n7", Daemon: "host/12", Client: "10.0.0.9:1", Name: "n", User: "u", Library: "lib 1", Fence: 77}},
			{Token: "work-token", Slot: 1, Left: 5 * time.Millisecond, Votes: 2, Confirmed: true, Fence: 76},
		},
		Masters: []redlock.LockOnMaster{
			{Master: "a", Known: true, State: redlock.LockHeld, Mode: redlock.Permits, Count: 2, Token: "work-token", Left: 901 * time.Millisecond},
			{Master: "b", Known: true, Quarantined: true, Reason: "quarantined (restarted\nvotes in 3s)", State: redlock.LockForeign},
			{Master: "c", Reason: "connection refused", State: redlock.LockHeld, Token: "work-token"},
			{Master: "d", Known: true},
		},
	}
	want := `{"state" +held "mode" +permits "limit" :5 "count" :2 "holders" [` +
		`{"token" "488dc3c9" "ttl" :900 "slot" :3 "fence" :77 "meta" "build\r\n7" "daemon" "host/12" "client" "10.0.0.9:1" "name" "n" "library" "lib 1" "user" "u" "since" nil "hold" :1 "votes" :3} ` +
		`{"token" "488dc3c9" "ttl" :5 "slot" :1 "fence" :76 "meta" nil "daemon" nil "client" nil "name" nil "library" nil "user" nil "since" nil "hold" nil "votes" :2}] ` +
		`"fence" :77 "waiters" :4 "queue" :6 "wanted" "let me" "votes" [` +
		`{"master" "a" "state" +voting "detail" "" "mode" +permits "holders" :2 "token" "488dc3c9" "ttl" :901} ` +
		`{"master" "b" "state" +quarantined "detail" "quarantined (restarted votes in 3s)" "mode" +foreign "holders" :0 "token" nil "ttl" nil} ` +
		`{"master" "c" "state" +unknown "detail" "connection refused" "mode" nil "holders" :0 "token" nil "ttl" nil} ` +
		`{"master" "d" "state" +voting "detail" "" "mode" nil "holders" :0 "token" nil "ttl" nil}]}`
	got := c.say("DINFO invoices")
	if got != want || strings.Contains(got, "work-token") || !strings.Contains(got, workTokenShown) {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	if len(c.looks.keys) != 1 || c.looks.keys[0] != "invoices" {
		t.Errorf("read %q", c.looks.keys)
	}
}

func TestDINFO_ShowsAFreeLock(t *testing.T) {
	c := newLookConversation(t)
	for state, want := range map[redlock.LockState]string{
		redlock.LockFree: "free", redlock.LockForeign: "foreign", redlock.LockUndecided: "undecided",
	} {
		c.looks.view = redlock.LockView{State: state}
		want = `{"state" +` + want + ` "mode" nil "limit" nil "count" :0 "holders" [] "fence" nil "waiters" :0 "queue" :0 "wanted" nil "votes" []}`
		if got := c.say("DINFO k"); got != want {
			t.Errorf(" got %s\nwant %s", got, want)
		}
	}
}

func TestDINFO_ReportsMistakesAndMirrorsTheOutcomeOfTheMasters(t *testing.T) {
	c := newLookConversation(t)
	c.refuses("DINFO key", [][2]string{
		{"DINFO", "wrong number of arguments for 'dinfo' command"},
		{"DINFO " + x(513), "invalid lock name: 513 bytes, allowed are 1 to 512"},
		{"DINFO redlockd:seal", "invalid lock name 'redlockd:seal': names beginning with 'redlockd:' are reserved"},
	})
	c.mirrors("DINFO k", func(err error) { c.looks.err = err })
}
