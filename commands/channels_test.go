package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// fakeEvents play the daemon: a test makes the events.
type fakeEvents struct {
	commands.Inspect

	mu       sync.Mutex
	received map[int]func(redlock.Event) // by database: the latest listener
	latest   map[int]int                 // by database: its number
	began    int
	broken   bool // Listen panics
}

func (f *fakeEvents) Listen(db int, received func(redlock.Event)) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken {
		panic("a mistake of its own")
	}
	f.began++
	number := f.began
	if f.latest == nil {
		f.latest = map[int]int{}
	}
	f.received[db], f.latest[db] = received, number
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.latest[db] == number {
			delete(f.received, db)
		}
	}
}

// granted sends a grant in a database, if it has a listener.
func (f *fakeEvents) granted(db int, key string) {
	f.mu.Lock()
	received := f.received[db]
	f.mu.Unlock()
	if received != nil {
		received(redlock.Event{Kind: redlock.EventAcquired, Key: redlock.Key(key), Fence: 17, TokenHash: "0123abcd", At: time.UnixMilli(1700000000123)})
	}
}

// databases are those whose events have a listener.
func (f *fakeEvents) databases() (all []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for db := range f.received {
		all = append(all, db)
	}
	slices.Sort(all)
	return all
}

// listening is a conversation with a table whose events a test makes.
func listening(t *testing.T, list ...access.User) (*conversation, *fakeEvents) {
	t.Helper()
	c := newConversation(t)
	events := &fakeEvents{received: map[int]func(redlock.Event){}}
	env := commands.Deps{Locks: c.locks, Inspect: events}
	if list != nil {
		users, err := access.NewUsers(list)
		if err != nil {
			t.Fatal(err)
		}
		env.Users = users
	}
	c.serve(env)
	return c, events
}

// messages lets the conversation's client receive; each call of the function returns the messages so far, once.
func (c *conversation) messages() func() string {
	var all []string
	c.client.Push = func(message commands.Reply, plain bool) {
		if !plain {
			c.t.Error("a message that clients on RESP2 do not get")
		}
		all = append(all, show(message))
	}
	return func() string {
		text := strings.Join(all, " ")
		all = nil
		return text
	}
}

// another client of the same table.
func (c *conversation) another(id int64) *conversation {
	return &conversation{t: c.t, locks: c.locks, table: c.table, client: &commands.Client{ID: id, Proto: 3}}
}

// A session recovers from a panic of its command. The other connections subscribe and end.
func TestSUBSCRIBE_APanicCostsItsConnectionAlone(t *testing.T) {
	c, events := listening(t)
	other := c.another(2)
	events.broken = true
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		c.say("SUBSCRIBE dlock:a")
	}()
	events.broken = false
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.client.OnClose.Run()
		other.say("SUBSCRIBE dlock:a")
		other.client.OnClose.Run()
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("the registry is locked")
	}
	if all := events.databases(); len(all) > 0 {
		t.Errorf("databases %v have listeners", all)
	}
}

const event = `"acquired 17 1700000000123 0123abcd"`

func TestSUBSCRIBE_SendsTheEventsOfTheLock(t *testing.T) {
	c, events := listening(t)
	received := c.messages()
	events.granted(0, "a")
	c.say(`SUBSCRIBE dlock:a "dlock:b\x00\n" a`)
	events.granted(0, "a")
	events.granted(0, "b\x00\n")
	events.granted(0, "c")
	if got, want := received(), `>"message" "dlock:a" `+event+` >"message" "dlock:b\x00\n" `+event; got != want {
		t.Errorf("received %s, want %s", got, want)
	}
	c.say("PSUBSCRIBE dlock:* *a nothing*")
	events.granted(0, "b")
	if got, want := received(), `>"pmessage" "dlock:*" "dlock:b" `+event; got != want {
		t.Errorf("received %s, want %s", got, want)
	}
	events.granted(0, "a") // once for each subscription, as in Redis; the order of patterns is not promised
	if got := received(); strings.Count(got, event) != 3 || !strings.HasPrefix(got, `>"message" "dlock:a"`) || !strings.Contains(got, `"*a" "dlock:a"`) {
		t.Errorf("received %s", got)
	}
	c.say("UNSUBSCRIBE dlock:a")
	c.say("PUNSUBSCRIBE *a dlock:*")
	events.granted(0, "a")
	if got := received(); got != "" {
		t.Errorf("received %s without a subscription", got)
	}
}

// Each of several subscribers receives until it leaves, whichever came first.
func TestSUBSCRIBE_SendsToEverySubscriberOfAChannel(t *testing.T) {
	for leaves := range 3 {
		first, events := listening(t)
		all := []*conversation{first, first.another(2), first.another(3)}
		var received []func() string
		for _, one := range all {
			received = append(received, one.messages())
			one.say("SUBSCRIBE dlock:a")
			one.say("SUBSCRIBE dlock:a") // again, which adds nothing
		}
		all[leaves].say("UNSUBSCRIBE dlock:a")
		events.granted(0, "a")
		for i := range all {
			want := `>"message" "dlock:a" ` + event
			if i == leaves {
				want = ""
			}
			if got := received[i](); got != want {
				t.Errorf("after connection %d has left, connection %d received %q, want %q", leaves, i, got, want)
			}
		}
		all[leaves].say("SUBSCRIBE dlock:a")
		for _, one := range all {
			one.say("UNSUBSCRIBE dlock:a")
		}
		if left := events.databases(); len(left) > 0 {
			t.Errorf("the databases %v have subscriptions after the last one ended", left)
		}
	}
}

func TestSUBSCRIBE_ReceivesEventsOfTheDatabaseThatWasSelected(t *testing.T) {
	c, events := listening(t)
	received := c.messages()
	c.say("HELLO 3")
	c.say("SELECT 3")
	c.say("SUBSCRIBE dlock:a")
	events.granted(0, "a")
	events.granted(3, "a")
	if got := received(); strings.Count(got, event) != 1 {
		t.Errorf("received %s", got)
	}
	c.say("SELECT 0")
	c.say("PSUBSCRIBE dlock:?")
	if got := events.databases(); !slices.Equal(got, []int{0, 3}) {
		t.Errorf("events of databases %v", got)
	}
	c.say("SUBSCRIBE dlock:a") // moves it here
	if got := events.databases(); !slices.Equal(got, []int{0}) {
		t.Errorf("events of databases %v", got)
	}
	events.granted(3, "a")
	events.granted(0, "a")
	if got := received(); strings.Count(got, event) != 2 {
		t.Errorf("received %s", got)
	}
}

func TestSUBSCRIBE_EndsWithTheConnectionAndWithRESET(t *testing.T) {
	c, events := listening(t)
	received := c.messages()
	other := c.another(8)
	alsoReceived := other.messages()
	c.say("SUBSCRIBE dlock:a dlock:b")
	c.say("PSUBSCRIBE dlock:*")
	other.say("SUBSCRIBE dlock:a")
	c.client.OnClose.Run()
	events.granted(0, "a")
	if got := received(); got != "" {
		t.Errorf("a connection that has ended receives %s", got)
	}
	if got := alsoReceived(); !strings.Contains(got, event) {
		t.Error("the other one receives nothing")
	}
	c.say("SUBSCRIBE dlock:a") // its last words were still being read
	other.say("RESET")
	if got := events.databases(); len(got) > 0 {
		t.Errorf("events of databases %v", got)
	}
	other.say("SUBSCRIBE dlock:a")
	if n := len(events.databases()); n != 1 {
		t.Error("nothing is received behind a RESET")
	}
	other.client.OnClose.Run()
}

func TestSUBSCRIBE_SendsOnlyEventsOfLocksThatTheUserMayUse(t *testing.T) {
	c, events := listening(t, access.Everything("default", "pw"), low())
	received := c.messages()
	const refused = "-NOPERM this user has no permissions to access one of the channels used as arguments"
	c.transcript(strings.ReplaceAll(`
		> AUTH low new
		< +OK
		> SUBSCRIBE dlock:a:1 dlock:b
		< NOPERM
		> SUBSCRIBE dlock:a:1 anything
		< each(>"subscribe" "dlock:a:1" :1 >"subscribe" "anything" :2)
		> PSUBSCRIBE dlock:*
		< each(>"psubscribe" "dlock:*" :3)
	`, "NOPERM", refused))
	events.granted(0, "b")
	events.granted(0, "a:2")
	if got, want := received(), `>"pmessage" "dlock:*" "dlock:a:2" `+event; got != want {
		t.Errorf("received %s, want %s", got, want)
	}
	if err := c.deps.Users.Replace([]access.User{access.Everything("default", "pw")}); err != nil {
		t.Fatal(err)
	}
	events.granted(0, "a:1")
	if got := received(); got != "" {
		t.Errorf("a user who was removed receives %s", got)
	}
}

func TestPSUBSCRIBE_BoundsPatterns(t *testing.T) {
	c, events := listening(t)
	long := strings.Repeat("?", 64)
	if got, want := c.say("PSUBSCRIBE a* "+long), "-ERR pattern '"+long+"' has more than 63 elements behind its prefix"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	words := []string{"PSUBSCRIBE"}
	for i := range 129 {
		words = append(words, fmt.Sprint(i))
	}
	if got := c.words(words...); got != "-ERR 129 subscriptions on one connection, allowed are 128" {
		t.Error(got)
	}
	if c.client.Subscribed() || len(events.databases()) > 0 {
		t.Error("a refused PSUBSCRIBE subscribes")
	}
}

// Subscriptions come and go while events are sent.
func TestSUBSCRIBE_IsSafeWhileEventsAreSent(t *testing.T) {
	c, events := listening(t)
	var all sync.WaitGroup
	for id := range int64(4) {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				one := c.another(id)
				one.client.Push = func(commands.Reply, bool) { one.client.OnClose.Run() } // as one that does not read
				one.say("SUBSCRIBE dlock:a")
				one.say("PSUBSCRIBE dlock:*")
				events.granted(0, "a")
				one.say("UNSUBSCRIBE")
				one.client.OnClose.Run()
			}
		}()
	}
	all.Wait()
	if got := events.databases(); len(got) > 0 {
		t.Errorf("events of databases %v after the end of all connections", got)
	}
}
