package commands_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

// fakeTracker plays the masters that report changes: a test makes them.
type fakeTracker struct {
	*fakeEvents
	tracked map[string]*fakeTrack // by key
	ended   int
}

type fakeTrack struct {
	seen   redlock.Seen
	report func(lost bool)
}

func (f *fakeTracker) Track(_ int, key redlock.Key, seen redlock.Seen, report func(bool)) func() {
	one := &fakeTrack{seen, report}
	f.tracked[string(key)] = one
	return func() {
		f.ended++
		if f.tracked[string(key)] == one {
			delete(f.tracked, string(key))
		}
	}
}

// changes reports a change of a key, if that is tracked.
func (f *fakeTracker) changes(key string) {
	if one := f.tracked[key]; one != nil {
		one.report(false)
	}
}

// seen is what was seen of a key that is tracked, else "".
func (f *fakeTracker) seen(key string) string {
	one := f.tracked[key]
	switch {
	case one == nil:
		return ""
	case one.seen.Undecided:
		return "undecided"
	case one.seen.Refused:
		return "refused"
	case one.seen.Lease > 0:
		return "held " + string(one.seen.View.Value)
	}
	return strings.TrimSpace(one.seen.View.Kind + " " + string(one.seen.View.Value))
}

// tracking is a conversation on RESP3 whose masters a test plays.
func tracking(t *testing.T) (c *conversation, f *fakeTracker, o *oneRedis, received func() string) {
	t.Helper()
	f = &fakeTracker{fakeEvents: &fakeEvents{received: map[int]func(redlock.Event){}}, tracked: map[string]*fakeTrack{}}
	c, o = dropinConversation(t, commands.Deps{Inspect: f, MaxSubscriptions: 3})
	o.views["held"] = redlock.View{Kind: "string", Value: "v", Left: time.Second}
	c.client.Proto = 3
	return c, f, o, pushed(c)
}

// pushed lets the client receive messages for RESP3, as messages does for the others.
func pushed(c *conversation) func() string {
	var all []string
	c.client.Push = func(message commands.Reply, plain bool) {
		if plain {
			c.t.Errorf("a message for clients on RESP2: %s", show(message))
		}
		all = append(all, show(message))
	}
	return func() string {
		text := strings.Join(all, " ")
		all = nil
		return text
	}
}

// steps are what a client says, with what is tracked of the key then, and received.
type steps []struct{ says, key, seen, receives string }

func (s steps) play(c *conversation, f *fakeTracker, received func() string) {
	c.t.Helper()
	for i, step := range s {
		if what, changes := strings.CutPrefix(step.says, "change "); changes {
			f.changes(what)
		} else {
			c.say(step.says)
		}
		if got := f.seen(step.key); got != step.seen {
			c.t.Errorf("%d: %s: of %s is tracked %q, want %q", i, step.says, step.key, got, step.seen)
		}
		if got := received(); got != step.receives {
			c.t.Errorf("%d: %s: received %s, want %s", i, step.says, got, step.receives)
		}
	}
}

func TestTracking_OfWhatAConnectionReadsAndTakes(t *testing.T) {
	c, f, o, received := tracking(t)
	c.grantsAll()
	c.releases(true, nil)
	const gone = `>"invalidate" ["held"]`
	steps{
		{"GET held", "held", "", ""},
		{"CLIENT TRACKING ON", "", "", ""},
		{"GET held", "held", "string v", ""},
		{"PTTL held", "held", "string v", ""},
		{"change held", "held", "", gone},
		{"change held", "held", "", ""},
		{"EXISTS held free", "free", "none", ""},
		{"TYPE held", "held", "string v", ""},
		{"DLOCK new 1000 TOKEN token-of-new", "new", "held token-of-new", ""},
	}.play(c, f, received)
	c.say("SET set value-of-set NX PX 1000") // the fourth key: another is invalidated
	if text := received(); len(f.tracked) != 3 || f.seen("set") != "held value-of-set" || !strings.HasPrefix(text, `>"invalidate" [`) {
		t.Errorf("%d keys are tracked, allowed are 3; received %q", len(f.tracked), text)
	}
	c.say("CLIENT TRACKING OFF")
	if len(f.tracked) != 0 || received() != "" {
		t.Errorf("%d keys are tracked after the end", len(f.tracked))
	}
	c.refusesAll()
	o.failure = &redlock.NoQuorum{}
	steps{
		{"CLIENT TRACKING ON OPTOUT NOLOOP", "", "", ""},
		{"SET held other NX PX 1000", "held", "refused", ""},
		{"GET free", "free", "undecided", ""},
		{"change free", "free", "", `>"invalidate" ["free"]`},
		{"CLIENT CACHING NO", "", "", ""},
		{"GET free", "free", "", ""},
		{"GET free", "free", "undecided", ""},
		{"RESET", "held", "", ""},
		{"GET held", "held", "", ""},
	}.play(c, f, received)
}

// What the connection changes itself is a change for it, unless it said NOLOOP.
func TestTracking_OfOwnChanges(t *testing.T) {
	for loop, gone := range map[string]string{"": `>"invalidate" ["held"]`, "NOLOOP": ""} {
		c, f, o, received := tracking(t)
		c.grantsAll()
		c.releases(true, nil)
		steps{
			{"CLIENT TRACKING ON " + loop, "", "", ""},
			{"GET held", "held", "string v", ""},
			{"DUNLOCK held token-of-held", "held", "", gone},
			{"SET held token-of-held NX PX 1000", "held", "held token-of-held", ""},
			{"DELIFEQ held token-of-held", "held", "", gone},
			{"GET held", "held", "string v", ""},
			{"DLOCK held 1000 TOKEN token-of-held", "held", "held token-of-held", gone},
		}.play(c, f, received)
		c.releases(false, nil) // the lock is not this client's any more: whether it changed shows the watch
		o.views["held"] = redlock.View{Kind: "none"}
		steps{
			{"DUNLOCK held token-of-held", "held", "string token-of-held", ""},
			{"change held", "held", "", `>"invalidate" ["held"]`},
		}.play(c, f, received)
	}
}

func TestTracking_OptInCachesOneCommandOrOneTransaction(t *testing.T) {
	c, f, _, received := tracking(t)
	steps{
		{"CLIENT TRACKING ON OPTIN", "", "", ""},
		{"GET held", "held", "", ""},
		{"CLIENT CACHING YES", "", "", ""},
		{"PING", "", "", ""},
		{"GET held", "held", "string v", ""},
		{"change held", "held", "", `>"invalidate" ["held"]`},
		{"GET held", "held", "", ""},
		{"CLIENT CACHING YES", "", "", ""},
		{"MULTI", "", "", ""},
		{"PTTL held", "held", "", ""},
		{"GET held", "held", "", ""},
	}.play(c, f, received)
	if got := c.say("EXEC"); got != `[:1000 "v"]` {
		t.Error(got)
	}
	steps{
		{"PING", "held", "string v", ""},
		{"GET free", "free", "", ""},
	}.play(c, f, received)
	if reply := c.start("GET", "free"); reply.late != nil || show(reply.read(t)) != "nil" {
		t.Error("a command that is not cached costs more than without tracking")
	}
}

// A transaction reads one key; a change, or a second key, is none.
func TestTransaction_ReadsOneKey(t *testing.T) {
	c, _, _, _ := tracking(t)
	for _, queue := range [][]string{{"GET held", "GET free"}, {"GET held", "DEL held"}, {"DEL held", "GET held"}, {"GET a", "GET a", "GET a", "GET a", "GET a"}} {
		c.say("MULTI")
		for _, words := range queue {
			c.say(words)
		}
		if got := c.say("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
			t.Errorf("%q: %s", queue, got)
		}
	}
}

// An invalidation that comes before the reply would leave the client with what is outdated.
func TestTracking_BeginsWithTheReply(t *testing.T) {
	c, f, _, _ := tracking(t)
	c.say("CLIENT TRACKING ON")
	reply := c.start("GET", "held")
	if f.seen("held") != "" {
		t.Error("it is tracked before its reply")
	}
	if got := show(reply.read(t)); got != `"v"` || f.seen("held") != "string v" {
		t.Errorf("%s, tracked %q", got, f.seen("held"))
	}
}

// Without a quorum nothing that was read can be relied on.
func TestTracking_LossInvalidatesAll(t *testing.T) {
	c, f, _, received := tracking(t)
	var counted []int
	c.client.SetTracked = func(bytes int) { counted = append(counted, bytes) }
	c.say("CLIENT TRACKING ON")
	c.say("EXISTS held free")
	f.tracked["held"].report(true)
	if got := received(); got != `>"invalidate" nil` || len(f.tracked) != 0 {
		t.Errorf("received %s, %d keys are tracked", got, len(f.tracked))
	}
	if last := len(counted) - 1; last < 1 || counted[last] != 0 || counted[last-1] < 2*1000 {
		t.Errorf("counted %v bytes", counted)
	}
	c.say("GET held")
	if c.say("CLIENT TRACKING ON NOLOOP"); received() != `>"invalidate" nil` {
		t.Error("what was tracked before is not invalidated")
	}
	c.say("GET held")
	c.client.OnClose.Run()
	if len(f.tracked) != 0 {
		t.Error("a connection that has ended tracks")
	}
}

func TestTracking_RedirectsToAnotherConnection(t *testing.T) {
	c, f, o, received := tracking(t)
	target := &commands.Client{ID: 8}
	var got []string
	target.Push = func(message commands.Reply, plain bool) { got = append(got, fmt.Sprint(plain, " ", show(message))) }
	others := &fakeConnections{
		list: []commands.Description{{ID: 8, User: "default"}, {ID: 9, User: "another"}},
		they: map[int64]*commands.Client{8: target, 9: {ID: 9}},
	}
	c.serve(commands.Deps{Locks: c.locks, Inspect: f, RedisCompat: o, Connections: others})
	const none = "-ERR The client ID you want redirect to does not exist"
	c.transcript(`
		> CLIENT GETREDIR
		< :-1
		> CLIENT TRACKING ON REDIRECT 9
		< ` + none + `
		> CLIENT TRACKING ON REDIRECT 17
		< ` + none + `
		> CLIENT TRACKING ON REDIRECT 8
		< +OK
		> CLIENT GETREDIR
		< :8
		> GET held
		< "v"
	`)
	f.changes("held")
	want := `false >"invalidate" ["held"] true ["message" "__redis__:invalidate" ["held"]]`
	if text := strings.Join(got, " "); text != want || received() != "" {
		t.Errorf("received %s, want %s", text, want)
	}
	target.OnClose.Run()
	if got := received(); got != `>"tracking-redir-broken" :8` {
		t.Errorf("received %s", got)
	}
	if got := c.say("CLIENT TRACKINGINFO"); got != `{"flags" ["on" "broken_redirect"] "redirect" :8 "prefixes" []}` {
		t.Error(got)
	}
}

func TestTracking_BroadcastsTheKeysOfEvents(t *testing.T) {
	c, f, _, received := tracking(t)
	c.say("CLIENT TRACKING ON BCAST PREFIX user: PREFIX order:")
	if got := c.say("CLIENT TRACKINGINFO"); got != `{"flags" ["on" "bcast"] "redirect" :0 "prefixes" ["user:" "order:"]}` {
		t.Error(got)
	}
	c.transcript(`
		> CLIENT TRACKING ON BCAST PREFIX us
		< -ERR Prefix 'us' overlaps with an existing prefix 'user:'. Prefixes for a single client must not overlap.
		> CLIENT TRACKING ON BCAST PREFIX job:
		< +OK
		> CLIENT TRACKINGINFO
		< {"flags" ["on" "bcast"] "redirect" :0 "prefixes" ["user:" "order:" "job:"]}
	`)
	c.say("GET held")
	f.granted(0, "user:1")
	f.granted(0, "another")
	f.granted(0, "order:2")
	if got := received(); got != `>"invalidate" ["user:1"] >"invalidate" ["order:2"]` || len(f.tracked) != 0 {
		t.Errorf("received %s", got)
	}
	c.transcript(`
		> CLIENT TRACKING ON BCAST
		< +OK
		> CLIENT TRACKINGINFO
		< {"flags" ["on" "bcast"] "redirect" :0 "prefixes" [""]}
	`)
	f.granted(0, "another")
	if got := received(); got != `>"invalidate" ["another"]` {
		t.Errorf("received %s", got)
	}
	c.say("CLIENT TRACKING OFF BCAST")
	f.granted(0, "user:1")
	if got := received(); got != "" || len(f.databases()) != 0 {
		t.Errorf("received %s after the end", got)
	}
}

func TestTracking_RefusesWhatContradictsItself(t *testing.T) {
	c, _, _, _ := tracking(t)
	const switched = "before disabling tracking for this client, and then re-enabling it with a different mode."
	c.transcript(strings.ReplaceAll(`
		> CLIENT CACHING YES
		< -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
		> CLIENT TRACKINGINFO
		< {"flags" ["off"] "redirect" :-1 "prefixes" []}
		> CLIENT TRACKING perhaps
		< -ERR syntax error
		> CLIENT TRACKING OFF perhaps
		< -ERR syntax error
		> CLIENT TRACKING ON PREFIX
		< -ERR syntax error
		> CLIENT TRACKING ON OPTIN OPTOUT
		< -ERR You can't specify both OPTIN mode and OPTOUT mode
		> CLIENT TRACKING ON OPTIN BCAST
		< -ERR OPTIN and OPTOUT are not compatible with BCAST
		> CLIENT TRACKING ON PREFIX a
		< -ERR PREFIX option requires BCAST mode to be enabled
		> CLIENT TRACKING ON BCAST PREFIX ab PREFIX a
		< -ERR Prefix 'a' overlaps with another provided prefix 'ab'. Prefixes for a single client must not overlap.
		> CLIENT TRACKING ON BCAST NOLOOP
		< -ERR NOLOOP is not served with BCAST: events do not name the connection that caused them
		> CLIENT TRACKING ON REDIRECT x
		< -ERR value is not an integer or out of range
		> CLIENT TRACKING ON REDIRECT 1 REDIRECT 2
		< -ERR A client can only redirect to a single other client
		> CLIENT TRACKING ON REDIRECT 0
		< -ERR The client ID you want redirect to does not exist
		> CLIENT GETREDIR
		< :-1
		> CLIENT TRACKING ON
		< +OK
		> CLIENT TRACKING ON OPTIN
		< +OK
		> CLIENT CACHING NO
		< -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
		> CLIENT CACHING perhaps
		< -ERR syntax error
		> CLIENT TRACKING ON OPTOUT
		< -ERR You can't switch OPTIN/OPTOUT mode SWITCHED
		> CLIENT TRACKING ON BCAST
		< -ERR You can't switch BCAST mode on/off SWITCHED
		> CLIENT CACHING YES
		< +OK
		> CLIENT TRACKINGINFO
		< {"flags" ["on" "optin" "caching-yes"] "redirect" :0 "prefixes" []}
	`, "SWITCHED", switched))
}

// keptTracker keeps nothing but what belongs to its caller.
type keptTracker struct {
	commands.Inspect
	reports []func(bool)
}

func (k *keptTracker) Track(_ int, _ redlock.Key, _ redlock.Seen, report func(bool)) func() {
	k.reports = append(k.reports, report)
	return func() {}
}

func TestTracking_MemoryOfAKey(t *testing.T) {
	const keys = 4000
	c, o := dropinConversation(t, commands.Deps{Inspect: &keptTracker{reports: make([]func(bool), 0, 2*keys)}, MaxSubscriptions: 3 * keys})
	counted := 0
	c.client.SetTracked = func(bytes int) { counted = bytes }
	o.views = nil
	read := func(first, last int) int {
		for i := first; i < last; i++ {
			c.words("GET", fmt.Sprintf("key-number-%06d", i))
		}
		runtime.GC()
		runtime.GC() // the second empties the pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	c.say("CLIENT TRACKING ON")
	before, charged := read(0, keys), counted
	each := (read(keys, 2*keys) - before) / keys
	charged = (counted-charged)/keys - len("key-number-000000")
	if t.Logf("%d bytes a key, counted as %d", each, charged); each > charged-1200 {
		t.Errorf("a tracked key takes %d bytes, counted are %d", each, charged-1200)
	}
	c.say("CLIENT TRACKING OFF")
	if counted != 0 {
		t.Errorf("%d bytes are counted after the end", counted)
	}
}
