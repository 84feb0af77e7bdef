package commands_test

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// guarded is a conversation with a table that has users; the clock stands.
func guarded(t *testing.T, list ...access.User) (*conversation, *access.Users) {
	t.Helper()
	users, err := access.NewUsers(list)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	users.Now = func() time.Time { return now }
	c := newConversation(t)
	c.client.Host = "10.0.0.9"
	c.serve(commands.Deps{Locks: c.locks, IDs: &fakeIDs{}, Users: users})
	return c, users
}

func digest(password string) [32]byte { return sha256.Sum256([]byte(password)) }

// low may lock a:* and nothing else.
func low() access.User {
	return access.User{Name: "low", Passwords: [][32]byte{digest("old"), digest("new")}, Keys: []string{"a:*"}, Commands: []string{"lock", "id"}}
}

const helloRefused = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"

func TestAUTH_RepliesAsRedisDoes(t *testing.T) {
	c, _ := guarded(t, access.Everything("default", "pw"), low())
	c.transcript(strings.NewReplacer("REFUSED", helloRefused, "UNMEASURED", "age=0 idle=0 flags=N sub=0 psub=0 "+unmeasured).Replace(`
		> PING
		< -NOAUTH Authentication required. Send AUTH password, or AUTH user password.
		> DLOCK a:1 1000
		< -NOAUTH Authentication required. Send AUTH password, or AUTH user password.
		> CLIENT ID
		< -NOAUTH Authentication required. Send AUTH password, or AUTH user password.
		> PING x y z
		< -ERR wrong number of arguments for 'ping' command
		> FOO bar
		< -ERR unknown command 'FOO', with args beginning with: 'bar' 
		> CLIENT FOO
		< -ERR unknown subcommand 'FOO'. Try CLIENT HELP.
		> HELLO
		< REFUSED
		> HELLO 3
		< REFUSED
		> HELLO 4
		< -NOPROTO unsupported protocol version
		> HELLO 3 JUNK
		< -ERR Syntax error in HELLO option 'JUNK'
		> AUTH a b c
		< -ERR syntax error
		> AUTH
		< -ERR wrong number of arguments for 'auth' command
		> AUTH pw
		< +OK
		> PING
		< +PONG
		> RESET
		< +RESET
		> PING
		< -NOAUTH Authentication required. Send AUTH password, or AUTH user password.
		> HELLO 3 AUTH low new SETNAME me
		< {"server" "redis" "version" "8.4.0" "proto" :3 "id" :7 "mode" "standalone" "role" "master" "modules" []}
		> CLIENT INFO
		< "id=7 addr=10.0.0.9:5555 name=me db=0 UNMEASURED cmd=client|info user=low lib-name= lib-ver= resp=3\n"
		> AUTH low old
		< +OK
		> AUTH default pw
		< +OK
	`))
}

func TestAUTH_ClosesAfterTheThirdFailureInARow(t *testing.T) {
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled."
	c, _ := guarded(t, access.Everything("default", "pw"), low())
	for i, line := range []string{"AUTH x", "AUTH nobody pw", "AUTH pw", "AUTH low pw", "HELLO 3 AUTH default x", "AUTH default x"} {
		want := wrong
		if i == 2 {
			want = "+OK"
		}
		if got := c.say(line); got != want || c.client.Closing != (i == 5) {
			t.Errorf("%s: %s, closing %t", line, got, c.client.Closing)
		}
	}
	if c.client.User != "default" {
		t.Errorf("a failed login changed the user to %q", c.client.User)
	}
}

func TestUnknownCommands_CountAsFailuresBeforeTheLoginAlone(t *testing.T) {
	c, _ := guarded(t, access.Everything("default", "pw"))
	for range 3 {
		c.say("SSH-2.0-x")
	}
	if !c.client.Closing {
		t.Error("a scanner may go on")
	}
	c, _ = guarded(t, access.Everything("default", "pw"))
	c.say("AUTH pw")
	for range 5 {
		c.say("SSH-2.0-x")
	}
	if c.client.Closing {
		t.Error("a user may not try unknown commands")
	}
}

func TestAUTH_LimitsTheFailuresOfAnAddressAndOfNoOther(t *testing.T) {
	c, users := guarded(t, access.Everything("default", "pw"))
	now := time.Now()
	users.Now = func() time.Time { return now }
	attempt := func(host, password string) string {
		c.client = &commands.Client{Host: host, Proto: 2}
		return c.words("AUTH", password)
	}
	for i := range 10 {
		if got := attempt("10.0.0.1", "x"); !strings.HasPrefix(got, "-WRONGPASS") {
			t.Fatalf("failure %d: %s", i+1, got)
		}
	}
	const full = "-TRYLATER too many failed logins from this address or for this user, 10 and 20 per second are allowed; wait a second and try again"
	for i := range 2 {
		if got := attempt("10.0.0.1", "x"); got != full {
			t.Errorf("failure %d, a reserved check: %s", 11+i, got)
		}
	}
	if got := attempt("10.0.0.1", "pw"); got != full {
		t.Errorf("the 13th: %s", got)
	}
	if got := attempt("10.0.0.2", "pw"); got != "+OK" {
		t.Errorf("another address: %s", got)
	}
	now = now.Add(100 * time.Millisecond)
	if got := attempt("10.0.0.1", "pw"); got != "+OK" {
		t.Errorf("after a tenth of a second: %s", got)
	}
}

func TestPermissions_AreRefusedInTheWordsOfRedis(t *testing.T) {
	const command, key = "-NOPERM this user has no permissions to run the '%' command", "-NOPERM this user has no permissions to access one of the keys used as arguments"
	c, _ := guarded(t, low())
	c.grants(1e9)
	c.say("AUTH low new")
	for line, want := range map[string]string{
		"PING":                       "+PONG",
		"DLOCK a:1 1000":             `["generated-token" :1000 :41]`,
		"DLOCK b 1000":               key,
		"DUNLOCK b token-token":      key,
		"DEXTEND b token-token 1000": key,
		"DNEXTID b":                  key,
		"DIDS":                       strings.ReplaceAll(command, "%", "dids"),
		"DIDS a:1":                   strings.ReplaceAll(command, "%", "dids"),
		"DIDRESEED a:1 7":            strings.ReplaceAll(command, "%", "didreseed"),
		"DWORK a:1 1000 MAX 3":       strings.ReplaceAll(command, "%", "dwork"),
		"DWORKINFO a:1":              strings.ReplaceAll(command, "%", "dworkinfo"),
		"CLIENT KILL ID 1":           strings.ReplaceAll(command, "%", "client|kill"),
		"DLOCK b":                    "-ERR wrong number of arguments for 'dlock' command; syntax: " + "DLOCK key ttl [SHARED | LIMIT n | REENTRANT] [FAIR] [DELAY ms] [WAIT ms] [TOKEN token] [META text] [HOLD [max-ms]] [MAXHOLD ms]",
		"NOSUCH b":                   "-ERR unknown command 'NOSUCH', with args beginning with: 'b' ",
	} {
		if got := c.say(line); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
}

// Every command of ours that is about a name needs its pattern: one that is
// added without is found here.
func TestPermissions_CoverEveryCommandWithAName(t *testing.T) {
	all := low()
	all.Commands = access.Categories()
	c, _ := guarded(t, all)
	c.say("AUTH low new")
	every(c.table, func(row *commands.Command) {
		if row.Redis || row.Category == access.CategoryConnection {
			return
		}
		if !slices.ContainsFunc(row.Args, func(a arg.Spec) bool { return a.Kind == arg.KindKey && !a.Within }) {
			return
		}
		words := make([]string, max(row.Arity.Min, 2))
		words[0] = row.Name
		good := map[string]string{"ttl": "1000", "token": "12345678", "numkeys": "1"} // as far as they come before the key
		for i := range words[1:] {
			words[i+1] = "foreign"
			if !row.Named() && good[row.Args[i].Name] != "" {
				words[i+1] = good[row.Args[i].Name]
			}
		}
		if got := c.words(words...); !strings.HasPrefix(got, "-NOPERM") {
			t.Errorf("%q: %s", words, got)
		}
	})
}

func TestDIDS_ListsOnlyWhatTheUserMaySee(t *testing.T) {
	all := low()
	all.Commands = access.Categories()
	c, _ := guarded(t, all)
	c.say("AUTH low new")
	c.deps.IDs.(*fakeIDs).counters = map[redlock.Key]redlock.Counter{"a:1": {}, "b": {}, "a:2": {}}
	if got, want := c.say("DIDS"), `{"a:1" [] "a:2" []}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUsers_AreReplacedUnderConnectionsThatStay(t *testing.T) {
	c, users := guarded(t, low())
	c.grants(1e9)
	c.say("AUTH low new")
	more := low()
	more.Keys = append(more.Keys, "b")
	if err := users.Replace([]access.User{more}); err != nil {
		t.Fatal(err)
	}
	if got := c.say("DLOCK b 1000"); !strings.HasPrefix(got, "[") {
		t.Errorf("the new key: %s", got)
	}
	if err := users.Replace([]access.User{{Name: "x"}}); err == nil || c.say("PING") != "+PONG" {
		t.Errorf("a list that cannot be used changed something: %v", err)
	}
	if err := users.Replace([]access.User{access.Everything("other", "pw")}); err != nil {
		t.Fatal(err)
	}
	if got := c.say("PING"); got != "-NOAUTH user 'low' was removed or disabled; this connection is closed" || !c.client.Closing {
		t.Errorf("a user who is gone: %s, closing %t", got, c.client.Closing)
	}
}

func TestQuota_BoundsTheLocksOfAUserOverAllConnections(t *testing.T) {
	user := low()
	user.Held = 2
	c, users := guarded(t, user, access.Everything("default", "pw"))
	now := time.Now()
	users.Now = func() time.Time { return now }
	c.grants(time.Second)
	c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return true, nil }
	const full = "-TRYLATER user 'low' may hold 2 locks at once (held in the users file); nothing was done"
	got := func(line string) string {
		c.t.Helper()
		if reply := c.say(line); strings.HasPrefix(reply, "[") {
			return "granted"
		} else {
			return reply
		}
	}
	c.say("AUTH low new")
	for _, step := range []struct{ line, want string }{
		{"DLOCK a:1 1000", "granted"}, {"DLOCK a:2 1000", "granted"}, {"DLOCK a:3 1000", full},
		{"DLOCK a:2 1000", "granted"}, // the same key takes the same slot
		{"DUNLOCK a:1 generated-token", ":1"}, {"DLOCK a:3 1000", "granted"}, {"DLOCK a:4 1000", full},
	} {
		if reply := got(step.line); reply != step.want {
			t.Errorf("%s: %s, want %s", step.line, reply, step.want)
		}
	}
	other := *c
	other.client = &commands.Client{ID: 8, Proto: 2}
	other.say("AUTH low new")
	if reply := other.say("DLOCK a:5 1000"); reply != full {
		t.Errorf("another connection: %s", reply)
	}
	other.say("AUTH pw")
	if reply := other.say("DLOCK z 1000"); !strings.HasPrefix(reply, "[") {
		t.Errorf("another user: %s", reply)
	}
	now = now.Add(2 * time.Second) // what was held has expired
	if reply := got("DLOCK a:4 1000"); reply != "granted" {
		t.Errorf("after the leases' end: %s", reply)
	}
}

func TestQuota_CountsAcquiresInFlightAndFreesThoseRefused(t *testing.T) {
	user := low()
	user.Held = 1
	c, _ := guarded(t, user)
	c.say("AUTH low new")
	first := c.start("DLOCK", "a:1", "1000")
	if got := c.say("DLOCK a:2 1000"); !strings.HasPrefix(got, "-TRYLATER") {
		t.Errorf("while one is in flight: %s", got)
	}
	c.locks.waiting[0](redlock.Grant{}, errors.Join(redlock.ErrHeld))
	if got := show(first.read(t)); got != "nil" {
		t.Errorf("got %s", got)
	}
	c.grants(time.Second)
	third := c.start("DLOCK", "a:2", "1000")
	third.late.Undelivered() // the client has gone: the lock is given back
	if got := c.say("DLOCK a:3 1000"); !strings.HasPrefix(got, "[") {
		t.Errorf("after one was given back: %s", got)
	}
}

func TestQuota_BoundsTheRateOfAUser(t *testing.T) {
	user := low()
	user.Rate = 3
	c, users := guarded(t, user)
	now := time.Now()
	users.Now = func() time.Time { return now }
	c.grants(time.Second)
	c.say("AUTH low new")
	granted := 0
	for range 5 {
		if strings.HasPrefix(c.say("DLOCK a:1 1000"), "[") {
			granted++
		}
	}
	const full = "-TRYLATER user 'low' may send 3 commands per second (rate in the users file); nothing was done"
	if got := c.say("DLOCK a:1 1000"); granted != 3 || got != full {
		t.Errorf("%d granted, then %s", granted, got)
	}
	for _, line := range []string{"PING", "INFO server", "CLIENT LIST", "NOSUCHCOMMAND", "CLIENT NOSUCH", "DUNLOCK", "DFORCE x"} {
		if got := c.say(line); got != full {
			t.Errorf("%s is not counted: %s", line, got)
		}
	}
	now = now.Add(time.Second / 2)
	if got := c.say("DLOCK a:1 1000"); !strings.HasPrefix(got, "[") {
		t.Errorf("half a second later: %s", got)
	}
	if err := users.Replace([]access.User{user}); err != nil {
		t.Fatal(err)
	}
	if got := c.say("DLOCK a:1 1000"); got != full {
		t.Errorf("a reload filled the bucket: %s", got)
	}
}

func TestAUTH_AllUsersHaveEventsAndInfoUnlessDenied(t *testing.T) {
	mute := access.User{Name: "mute", Passwords: [][32]byte{digest("pw")}, Keys: []string{"*"}, Commands: []string{"lock"}, Denied: []string{"events", "info"}}
	c, users := guarded(t, low(), mute)
	commands := []string{"SUBSCRIBE dlock:a:1", "PSUBSCRIBE *", "COMMAND", "COMMAND DOCS dlock", "COMMAND INFO dlock", "COMMAND LIST", "INFO", "CONFIG GET x"}
	for name, password := range map[string]string{"low": "old", "mute": "pw"} {
		c.say("HELLO 3 AUTH " + name + " " + password)
		for _, line := range commands {
			got := c.say(line)
			if refused := strings.HasPrefix(got, "-NOPERM this user has no permissions to run the '"); refused != (name == "mute") {
				t.Errorf("%s, %s: %s", name, line, got)
			}
		}
		for _, line := range []string{"PING", "CLIENT ID", "UNSUBSCRIBE", "PUNSUBSCRIBE", "COMMAND COUNT", "SELECT 0"} {
			if got := c.say(line); strings.HasPrefix(got, "-") {
				t.Errorf("%s, %s: %s", name, line, got)
			}
		}
	}
	mute.Denied = []string{"lock"}
	if err := users.Replace([]access.User{mute}); err == nil || !strings.Contains(err.Error(), `denies the command category "lock", allowed are events, info`) {
		t.Errorf("got %v", err)
	}
}

func TestSUBSCRIBE_EndsForAUserWhoIsDeniedEventsLater(t *testing.T) {
	c, events := listening(t, low())
	received := c.messages()
	c.say("HELLO 3 AUTH low new")
	c.say("SUBSCRIBE dlock:a:1")
	denied := low()
	denied.Denied = []string{"events"}
	if err := c.deps.Users.Replace([]access.User{denied}); err != nil {
		t.Fatal(err)
	}
	events.granted(0, "a:1")
	if got := received(); got != "" {
		t.Errorf("received %s", got)
	}
}

func TestQuota_BoundsTheConnectionsOfAUser(t *testing.T) {
	user := low()
	user.Connections = 2
	c, _ := guarded(t, user, access.Everything("operator", "pw"))
	others := []*conversation{c.another(2), c.another(3), c.another(4)}
	for _, one := range []*conversation{c, others[0], c} { // the same connection twice is one
		if got := one.say("AUTH low new"); got != "+OK" {
			t.Fatal(got)
		}
	}
	const full = "-TRYLATER user 'low' has 2 connections, as many as are allowed (connections in the users file); nothing was done; close one of them"
	for _, line := range []string{"AUTH low new", "HELLO 3 AUTH low new"} {
		if got := others[1].say(line); got != full {
			t.Errorf("%s: %s", line, got)
		}
	}
	if got := others[1].say("PING"); got != "-NOAUTH Authentication required. Send AUTH password, or AUTH user password." {
		t.Errorf("one too many is in: %s", got)
	}
	others[0].client.OnClose.Run() // its connection ends
	if got := others[2].say("AUTH low new"); got != "+OK" {
		t.Errorf("behind one that has ended: %s", got)
	}
	c.say("AUTH operator pw")
	if got := others[1].say("AUTH low new"); got != "+OK" {
		t.Errorf("behind one that is another user: %s", got)
	}
	others[2].say("RESET")
	if got := c.say("AUTH low new"); got != "+OK" {
		t.Errorf("behind one that has signed out: %s", got)
	}
	others[1].say("RESET")
	if got := others[0].say("AUTH low new"); got != "+OK" { // its handler runs although it has gone
		t.Error(got)
	}
	for i, want := range []string{"+OK", full} { // the one that is there is counted, and no other
		if got := others[1+i].say("AUTH low new"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestQuota_BoundsTheCountersOfAUser(t *testing.T) {
	user, operator := low(), access.Everything("operator", "pw")
	user.Counters = 2
	c, users := guarded(t, user, operator)
	admin := c.another(2)
	c.say("AUTH low new")
	admin.say("AUTH operator pw")
	const full = "-NOPERM user 'low' may use 2 counters (counters in the users file) and has used as many others since this daemon started; nothing was done; use one of them, or have an admin delete one with DIDS DEL"
	for _, step := range [][2]string{
		{"DNEXTID a:1", ":0"}, {"DNEXTID a:2", ":0"}, {"DNEXTID a:1 COUNT 5", ":0"},
		{"DNEXTID a:3", full}, {"DNEXTID a:1", ":0"},
	} {
		if got := c.say(step[0]); got != step[1] {
			t.Errorf("%s: %s, want %s", step[0], got, step[1])
		}
	}
	if err := users.Replace([]access.User{user, operator}); err != nil {
		t.Fatal(err)
	}
	if got := c.say("DNEXTID a:3"); got != full {
		t.Errorf("a reload forgot the counters: %s", got)
	}
	if got := admin.say("DIDS DEL a:2 CONFIRM 7"); !strings.HasPrefix(got, "[[") {
		t.Fatal(got)
	}
	if got := c.say("DNEXTID a:3"); got != ":0" {
		t.Errorf("a deleted counter takes a slot: %s", got)
	}
	if got := c.say("DIDS DEL a:1 CONFIRM 7"); got != "-NOPERM this user has no permissions to run the 'dids|del' command" {
		t.Errorf("without the category admin: %s", got)
	}
}

// A reload that overtakes a login refuses it, or ends its connection.
func TestAUTH_AReloadDuringALoginEndsTheConnection(t *testing.T) {
	c, users := guarded(t, low())
	var seconds atomic.Int64
	users.Now = func() time.Time { return time.Unix(seconds.Add(1), 0) } // no login is one too many
	reload := func(list ...access.User) {
		if err := users.Replace(list); err != nil {
			t.Error(err)
		}
	}
	var reloads sync.WaitGroup
	var done atomic.Bool
	reloads.Go(func() {
		for !done.Load() {
			reload()
			reload(low())
		}
	})
	const logins = 2000
	var in, expelled [logins]atomic.Bool
	for i := range logins {
		one := c.another(int64(i))
		one.client.Expel = func(commands.Expelled) { expelled[i].Store(true) }
		in[i].Store(one.say("AUTH low new") == "+OK")
	}
	done.Store(true)
	reloads.Wait()
	reload()
	for i := range logins {
		if in[i].Load() && !expelled[i].Load() {
			t.Errorf("login %d outlives its user", i)
		}
	}
}
