package commands_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// wait is read for answers that come from the goroutine that evaluates scripts.
func (f *fakeCompleter) wait(t *testing.T) commands.Reply {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		n := f.answers
		f.mu.Unlock()
		if n > 0 || time.Now().After(end) {
			return f.read(t)
		}
	}
}

const (
	takes    = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 else return 0 end"
	drops    = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
	tells    = "local v = redis.call('get', KEYS[1]) if not v then return -1 end if v ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])"
	renews   = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"
	adds     = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end local left = redis.call('pttl', KEYS[1]) if left < 0 then return 0 end redis.call('pexpire', KEYS[1], left + ARGV[2]) return 1"
	looks    = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) else return -3 end"
	counts   = "return redis.call('incr', KEYS[1])"
	discards = "return redis.call('del', KEYS[1])"
)

func (c *conversation) eval(args ...string) string {
	c.t.Helper()
	return show(c.start(args...).wait(c.t))
}

// extendsAll has every extension granted.
func (c *conversation) extendsAll() {
	c.locks.extend = func(r redlock.ExtendRequest) (redlock.Grant, error) {
		g := grant(c.t, r.Token, 0, r.TTL, &stillClock{})
		g.Key, g.More = r.Key, r.More
		return g, nil
	}
}

func TestEVAL_BecomesTheOperationOfItsClass(t *testing.T) {
	const (
		retakes = "local v = redis.call('get', KEYS[1]) if v and v ~= ARGV[1] then return -1 end redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1"
		longer  = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end return 1"
	)
	held := redlock.View{Kind: "string", Value: "token-1", Left: 5 * time.Second, Longest: 6 * time.Second}
	for _, one := range []struct {
		text, answer string
		locked       string
		extended     string
	}{
		{takes, ":1", "{Key:k TTL:20s Token:token-1 Valued:true Retakes:<nil>}", ""},
		{retakes, ":1", "{Key:k TTL:20s Token:token-1 Valued:false Retakes:&{Held:token-1 Bytes:0 EndlessToo:true}}", ""},
		{renews, ":1", "", "k 20s exact true seen false endless true"},
		{adds, ":1", "", "k 26s exact true seen true endless false"},
		{longer, ":1", "", "k 20s exact false seen false endless true"},
	} {
		c, o := dropinConversation(t, commands.Deps{})
		c.grantsAll()
		c.extendsAll()
		o.views["k"] = held
		if got := c.eval("EVAL", one.text, "1", "k", "token-1", "20000"); got != one.answer {
			t.Errorf("%s: %s", one.text, got)
		}
		locked, extended := "", ""
		for _, r := range c.locks.locked {
			locked += fmt.Sprintf("{Key:%s TTL:%v Token:%s Valued:%v Retakes:%+v}", r.Key, r.TTL, r.Token, r.Mode == redlock.Valued, swapOf(r).Retakes)
		}
		for _, r := range c.locks.extended {
			extended += fmt.Sprintf("%s %v exact %v seen %v endless %v", r.Key, r.TTL, r.Exact, r.Seen != nil, r.EndlessToo)
		}
		if locked != one.locked || extended != one.extended {
			t.Errorf("%s: locked %s, extended %s", one.text, locked, extended)
		}
	}
}

// A refusal is answered as the script would where a quorum holds the key so, with its value and its time.
func TestEVAL_AnswersARefusalByWhatAQuorumHolds(t *testing.T) {
	const shows = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 'taken' end return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}"
	c, o := dropinConversation(t, commands.Deps{})
	c.refusesAll()
	o.views["k"] = redlock.View{Kind: "string", Value: "token-2", Left: 5 * time.Second}
	if got := c.eval("EVAL", shows, "1", "k", "token-1", "20000"); got != `["token-2" :5000]` {
		t.Error(got)
	}
	o.views["k"] = redlock.View{Kind: "zset", Left: time.Second}
	if got := c.eval("EVAL", shows, "1", "k", "token-1", "20000"); !strings.HasPrefix(got, "-WRONGTYPE ") {
		t.Error(got)
	}
	delete(o.views, "k") // free each time, and refused each time
	n := len(c.locks.locked)
	if got := c.eval("EVAL", shows, "1", "k", "token-1", "20000"); !strings.HasPrefix(got, "-NOQUORUM ") || len(c.locks.locked) != n+1+maxLooks {
		t.Errorf("%s after %d tries", got, len(c.locks.locked)-n)
	}
	if got := c.eval("EVAL", takes, "1", "k", "token-1", "20000"); got != ":0" {
		t.Errorf("one answer for all: %s", got)
	}
	c.releases(false, nil)
	for holder, want := range map[redlock.Token]string{"": ":-1", "token-2": ":0"} {
		if o.views["k"] = (redlock.View{Kind: "string", Value: holder, Left: time.Second}); holder == "" {
			delete(o.views, "k")
		}
		if got := c.eval("EVAL", tells, "1", "k", "token-1"); got != want {
			t.Errorf("held by %q: %s, want %s", holder, got, want)
		}
	}
}

const maxLooks = 3

// Each key that a script takes with a token of its own is known by that one.
func TestEVAL_TakesSeveralKeysWithATokenEach(t *testing.T) {
	const batch = "for i = 1, #KEYS do if redis.call('exists', KEYS[i]) == 1 then return {0, i} end end for i = 1, #KEYS do redis.call('set', KEYS[i], ARGV[i], 'PX', ARGV[#ARGV]) end return {1, #KEYS}"
	c, o := dropinConversation(t, commands.Deps{})
	c.grantsAll()
	if got := c.eval("EVAL", batch, "2", "k", "l", "token-1", "token-2", "20000"); got != "[:1 :2]" {
		t.Error(got)
	}
	r := c.locks.locked[0]
	if r.Token != "token-1" || !slices.Equal(swapOf(r).Tokens, []redlock.Token{"token-1", "token-2"}) || r.Key != "k" || !slices.Equal(r.More, []redlock.Key{"l"}) {
		t.Errorf("asked for %+v", r)
	}
	if got := c.eval("EVAL", batch, "2", "k", "l", "token-1", "", "20000"); !strings.HasPrefix(got, "-ERR ") || len(c.locks.locked) != 1 {
		t.Errorf("with an empty token: %s", got)
	}
	c.refusesAll()
	o.views["l"] = redlock.View{Kind: "string", Value: "somebody", Left: time.Second}
	if got := c.eval("EVAL", batch, "2", "k", "l", "token-1", "token-2", "20000"); got != "[:0 :2]" {
		t.Errorf("the second is held: %s", got)
	}
}

func TestEVAL_ReleasesByTheTokenAlone(t *testing.T) {
	const (
		says   = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) return redis.status_reply('OK') end return false"
		silent = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end"
		all    = "local n = 0 for _, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then n = n + redis.call('del', key) end end return n"
	)
	c, o := dropinConversation(t, commands.Deps{})
	for text, want := range map[string][2]string{drops: {":1", ":0"}, says: {"+OK", "nil"}, silent: {"nil", "nil"}} {
		for i, held := range []bool{true, false} {
			c.releases(held, nil)
			if got := c.eval("EVAL", text, "1", "k", "token-1"); got != want[i] {
				t.Errorf("%s, held %v: %s, want %s", text, held, got, want[i])
			}
		}
	}
	n := len(c.locks.unlocked)
	c.releases(true, nil)
	o.views["l"] = redlock.View{Kind: "string", Value: "token-1", Left: time.Second}
	if got := c.eval("EVAL", all, "3", "k", "l", "m", "token-1"); got != ":1" || len(c.locks.unlocked) != n+1 || c.locks.unlocked[n].Key != "l" {
		t.Errorf("one of three: %s, %+v", got, c.locks.unlocked[n:])
	}
}

func TestEVAL_OfAScriptThatReadsIsAnsweredFromTheQuorum(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	o.views["k"] = redlock.View{Kind: "string", Value: "token-1", Left: 5 * time.Second}
	for token, want := range map[string]string{"token-1": ":5000", "token-2": ":-3"} {
		for _, name := range []string{"EVAL", "EVAL_RO"} {
			if got := c.eval(name, looks, "1", "k", token); got != want {
				t.Errorf("%s with %s: %s", name, token, got)
			}
		}
	}
	if got := c.eval("EVAL_RO", drops, "1", "k", "token-1"); got != "-ERR Write commands are not allowed from read-only scripts." {
		t.Error(got)
	}
}

func TestEVAL_RefusesWhatItDoesNotRecogniseBySHAAndOption(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	for _, args := range [][]string{
		{"EVAL", counts, "1", "k"}, {"EVAL", "this is no Lua", "1", "k"}, {"EVAL", "while true do end", "1", "k"},
	} {
		sha := shaOf(args[1])
		got := c.eval(args...)
		if !strings.HasPrefix(got, "-ERR script "+sha+" is not a recognised lock script: ") || !strings.Contains(got, "--script-class "+sha+"=<class>") {
			t.Errorf("%q: %s", args, got)
		}
	}
	for _, bad := range []struct{ args, want string }{
		{"EVAL x y k", "-ERR value is not an integer or out of range"},
		{"EVAL x -1 k", "-ERR Number of keys can't be negative"},
		{"EVAL x 2 k", "-ERR Number of keys can't be greater than number of args"},
		{"EVAL x 1 redlockd:seal", "-ERR invalid lock name 'redlockd:seal'"},
		{"EVALSHA 0123456789abcdef0123456789abcdef01234567 1 k", "-NOSCRIPT No matching script. Please use EVAL."},
	} {
		if got := c.say(bad.args); !strings.HasPrefix(got, bad.want) {
			t.Errorf("%s: %s", bad.args, got)
		}
	}
	for _, args := range [][]string{
		{"EVAL", takes, "1", "k", "token-1", "90000"}, {"EVAL", takes, "1", "k", "", "1000"}, {"EVAL", strings.Repeat("-", maxScriptBytes+1), "1", "k"},
	} {
		if got := c.eval(args...); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%q: %s", args, got)
		}
	}
	o.views["k"] = redlock.View{Kind: "string", Value: "token-1", Left: 50 * time.Second, Longest: 50 * time.Second}
	if got := c.eval("EVAL", adds, "1", "k", "token-1", "20000"); !strings.Contains(got, "exceed max-ttl") {
		t.Error(got)
	}
	if len(c.locks.locked)+len(c.locks.extended) > 0 {
		t.Errorf("something was done: %+v, %+v", c.locks.locked, c.locks.extended)
	}
}

func TestSCRIPT_KeepsTextsForEVALSHA(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	c.releases(true, nil)
	sha := shaOf(drops)
	if got := c.words("SCRIPT", "LOAD", drops); got != fmt.Sprintf("%q", sha) {
		t.Fatal(got)
	}
	if got := c.eval("EVALSHA", strings.ToUpper(sha), "1", "k", "token-1"); got != ":1" {
		t.Error(got)
	}
	c.eval("EVAL", looks, "1", "k", "token-1")
	if got := c.words("SCRIPT", "EXISTS", sha, shaOf(looks), shaOf("x")); got != "[:1 :1 :0]" {
		t.Error(got)
	}
	if got := c.words("SCRIPT", "FLUSH", "SYNC"); got != "+OK" {
		t.Error(got)
	}
	if got := c.words("SCRIPT", "EXISTS", sha); got != "[:0]" {
		t.Error(got)
	}
	if got := c.words("EVALSHA", shaOf("x"), "1", "k", "token-1"); got != "-NOSCRIPT No matching script. Please use EVAL." {
		t.Error(got)
	}
	for i := range maxScripts + 1 {
		c.words("SCRIPT", "LOAD", fmt.Sprint("return ", i))
	}
	if got := c.words("SCRIPT", "EXISTS", shaOf("return 0"), shaOf("return 1")); got != "[:0 :1]" {
		t.Errorf("with one more than there is room for: %s", got)
	}
}

func TestEVAL_ReportsWhatTheMastersCouldNotDecide(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	o.failure = errors.New("undecided")
	c.releases(false, nil)
	if got := c.eval("EVAL", tells, "1", "k", "token-1"); got != "-ERR undecided" { // it cannot tell free from another's
		t.Error(got)
	}
	if got := c.eval("EVAL", looks, "1", "k", "token-1"); got != "-ERR undecided" {
		t.Error(got)
	}
	c.releases(false, errors.New("this is undecided, too"))
	if got := c.eval("EVAL", drops, "1", "k", "token-1"); got != "-ERR this is undecided, too" {
		t.Error(got)
	}
}

// What a script shows of a lock that its token does not hold may be another client's token.
func TestEVAL_ThatShowsAnothersLockNeedsTheCategoryRead(t *testing.T) {
	const (
		shows        = "return redis.call('get', KEYS[1])"
		takesOrTells = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 'ok' end return redis.call('pttl', KEYS[1])"
	)
	user := access.Everything("me", "p")
	user.Commands = []string{access.CategoryLock}
	users, err := access.NewUsers([]access.User{user})
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := dropin.New([]string{shaOf(renews) + "=extend", shaOf(looks) + "=read,token=1,yes=pttl,no=-3"})
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]commands.Deps{"probed": {Users: users}, "pinned": {Users: users, Scripts: scripts}} {
		c, o := dropinConversation(t, env)
		c.client.User = "me"
		c.grantsAll()
		c.locks.unlock = func(redlock.UnlockRequest) (bool, error) { return true, nil }
		o.views["k"] = redlock.View{Kind: "string", Value: "token-1", Left: time.Second}
		c.extendsAll()
		for text, refused := range map[string]string{
			takes: "", tells: "", adds: "", renews: "", takesOrTells: "(category read)",
			shows: "(category read)", looks: "(category read)", drops: "",
		} {
			if name == "pinned" && (text == renews || text == looks) {
				refused = ""
			}
			args := []string{"EVAL", text, "1", "k", "token-1", "20000"}
			switch text {
			case shows:
				args = args[:4]
			case drops, tells, looks:
				args = args[:5]
			}
			got := c.eval(args...)
			if refused == "" && strings.HasPrefix(got, "-") || refused != "" && (!strings.HasPrefix(got, "-NOPERM") || !strings.Contains(got, refused)) {
				t.Errorf("%s: %s: %s, want %s", name, text, got, refused)
			}
		}
	}
}

// wakes is python-redis-lock's release: it replaces the list KEYS[2], whatever that is.
const wakes = `
    if redis.call("get", KEYS[1]) ~= ARGV[1] then
        return 1
    else
        redis.call("del", KEYS[2])
        redis.call("lpush", KEYS[2], 1)
        redis.call("pexpire", KEYS[2], ARGV[2])
        redis.call("del", KEYS[1])
        return 0
    end
`

// The category lock alone takes no lock from its holder, whatever the script.
func TestEVAL_ThatMayTakeAnothersLockNeedsTheCategoryForce(t *testing.T) {
	const (
		overwrites = "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])"
		psetex     = "return redis.call('psetex', KEYS[1], ARGV[2], ARGV[1])"
		setex      = "return redis.call('setex', KEYS[1], 20, ARGV[1])"
		ends       = "return redis.call('expire', KEYS[1], 0)"
		getdel     = "return redis.call('getdel', KEYS[1])"
		all        = "return redis.call('del', KEYS[1], KEYS[2])"
		shortens   = "return redis.call('pexpire', KEYS[1], ARGV[1])"
		replaces   = "return redis.call('set', KEYS[1], ARGV[1], 'XX', 'PX', ARGV[2])"
		renames    = "return redis.call('rename', KEYS[1], KEYS[2])"
	)
	pins, err := dropin.New([]string{shaOf(replaces) + "=overwrite", shaOf(renames) + "=discard,keys=2,args=0", shaOf(overwrites) + "=extend,yes=OK,no=nil"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := dropin.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		class string
		by    *dropin.Recogniser
		words []string
		lock  string // how the answer begins with the category lock alone
		force string // and with force
	}{
		{"overwrite", plain, []string{overwrites, "1", "k", "token-1", "20000"}, "-NOPERM", "+OK"},
		{"overwrite", plain, []string{psetex, "1", "k", "token-1", "20000"}, "-NOPERM", "+OK"},
		{"overwrite", plain, []string{setex, "1", "k", "token-1"}, "-NOPERM", "+OK"},
		{"discard", plain, []string{discards, "1", "k"}, "-NOPERM", ":1"},
		{"discard", plain, []string{getdel, "1", "k"}, "-NOPERM", "\"holder-1\""},
		{"discard", plain, []string{ends, "1", "k"}, "-NOPERM", ":1"},
		{"discard of two", plain, []string{all, "2", "k", "l"}, "-NOPERM", ":2"},
		{"pinned as overwrite", pins, []string{replaces, "1", "k", "token-1", "20000"}, "-NOPERM", "+OK"},
		{"pinned as discard", pins, []string{renames, "2", "k", "l"}, "-NOPERM", ":1"},
		{"pinned as extend, at the operator's word", pins, []string{overwrites, "1", "k", "token-1", "20000"}, "+OK", "+OK"},
		{"expire, served to no user", plain, []string{shortens, "1", "k", "20000"}, "-ERR", "-ERR"},
		{"set xx, served to no user", plain, []string{replaces, "1", "k", "token-1", "20000"}, "-ERR", "-ERR"},
		{"rename, served to no user", plain, []string{renames, "2", "k", "l"}, "-ERR", "-ERR"},
		{"a library's release, its signal", plain, []string{wakes, "2", "lock:k", "lock-signal:k", "token-1", "1000"}, ":0", ":0"},
		{"a library's release, another's lock", plain, []string{wakes, "2", "lock:k", "victim", "token-1", "1000"}, "-ERR", "-ERR"},
		{"a library's release, another's signal", plain, []string{wakes, "2", "lock:k", "lock-signal:l", "token-1", "1000"}, "-ERR", "-ERR"},
		{"a library's release, one key more", plain, []string{wakes, "3", "lock:k", "lock-signal:k", "victim", "token-1", "1000"}, "-ERR", "-ERR"},
	} {
		for category, want := range map[string]string{access.CategoryLock: test.lock, access.CategoryForce: test.force} {
			user := access.Everything("me", "p")
			user.Commands = []string{access.CategoryLock, category}
			users, err := access.NewUsers([]access.User{user})
			if err != nil {
				t.Fatal(err)
			}
			c, o := dropinConversation(t, commands.Deps{Users: users, Scripts: test.by})
			c.client.User = "me"
			c.grantsAll()
			c.extendsAll()
			c.releases(true, nil)
			o.wrote = true
			for _, key := range []redlock.Key{"k", "l", "lock:k"} {
				o.views[key] = redlock.View{Kind: "string", Value: "holder-1", Left: time.Second}
			}
			got := c.eval(append([]string{"EVAL"}, test.words...)...)
			if !strings.HasPrefix(got, want) || want == "-NOPERM" && !strings.Contains(got, "(category force)") {
				t.Errorf("%s, with %s: %s, want %s", test.class, category, got, want)
			}
			if ran := len(o.written) + len(c.locks.locked) + len(c.locks.extended) + len(c.locks.unlocked); (ran > 0) == (want[0] == '-') {
				t.Errorf("%s, with %s: %d operations", test.class, category, ran)
			}
		}
	}
}

// redislock sends how much of a token is compared; a byte of it is soon guessed.
func TestEVAL_ComparesNoLessThanATokensLeastLength(t *testing.T) {
	scripts, err := dropin.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	const obtain = "eb0c00d98f6f33b4262419a509002884540f30be"
	for given, want := range map[string]bool{"22": true, "8": true, "7": false, "1": false, "0": false, "23": false, "x": false} {
		class, _ := scripts.Find("", obtain, dropin.ScriptCall{Keys: []string{"k"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9d", given, "20000"}})
		if (class != nil) != want {
			t.Errorf("%s bytes are compared: %t", given, class != nil)
		}
	}
}

// A message of a script would reach nobody: subscribers are the daemons' alone.
func TestEVAL_RefusesToPublish(t *testing.T) {
	const notifies = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('publish', ARGV[2], KEYS[1]) return redis.call('del', KEYS[1]) end return 0"
	c, _ := dropinConversation(t, commands.Deps{})
	if got := c.eval("EVAL", notifies, "1", "k", "token-1", "freed"); !strings.HasPrefix(got, "-ERR script ") || !strings.Contains(got, "SUBSCRIBE dlock:<key>") {
		t.Error(got)
	}
}

// A refusal that is known costs nobody's budget, and pushes no text out that a client has loaded.
func TestEVAL_ARefusalThatIsKnownCostsNothing(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{})
	c.releases(true, nil)
	c.words("SCRIPT", "LOAD", tells)
	for i := range 500 {
		if got := c.eval("EVAL", counts, "1", "k"); !strings.HasPrefix(got, "-ERR script ") {
			t.Fatalf("call %d: %s", i, got)
		}
	}
	for i := range 30 {
		if got := c.eval("EVAL", fmt.Sprintf("-- %d\n%s", i, drops), "1", "k", "token-1"); got != ":1" {
			t.Fatalf("new text %d: %s", i, got)
		}
	}
	if got := c.words("SCRIPT", "EXISTS", shaOf(tells), shaOf(counts)); got != "[:1 :0]" {
		t.Error(got)
	}
}

// swapOf is the mode of a request with clients' values; empty for another one.
func swapOf(r redlock.LockRequest) *redlock.Swap {
	if s, ok := r.Mode.(*redlock.Swap); ok {
		return s
	}
	return &redlock.Swap{}
}
