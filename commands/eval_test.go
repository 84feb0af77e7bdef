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
	"redlockd/pool"
	"redlockd/redlock"
)

// wait is read for answers that come from the goroutine that evaluates scripts.
func (s *fakeCompleter) wait(t *testing.T) commands.Reply {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n := s.answers
		s.mu.Unlock()
		if n > 0 || time.Now().After(end) {
			return s.read(t)
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

func TestEVAL_RunsScriptsOfEachClassAndAnswersAsTheMastersDo(t *testing.T) {
	c, o := dropinConversation(t, commands.Deps{})
	c.grantsAll()
	c.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) {
		one := pool.Reply{Kind: pool.ReplyInt, Int: 1}
		if vote := r.Script.Vote(one); vote != redlock.ScriptYes {
			t.Errorf("1 is %v", vote)
		}
		*r.Script.Answers = redlock.ScriptAnswers{Yes: one, HasYes: true}
		return grant(t, r.Token, 41, r.TTL, &stillClock{}), nil
	}
	if got := c.eval("EVAL", takes, "1", "k", "token-1", "20000"); got != ":1" {
		t.Error(got)
	}
	r := c.locks.locked[0]
	if r.TTL != 20*time.Second || r.Token != "token-1" || r.Script.Text != takes || r.Script.Time != (redlock.ScriptTime{Arg: 2}) || r.Script.Prolongs {
		t.Errorf("asked for %+v, %+v", r, r.Script)
	}
	o.answers = redlock.ScriptOutcome{Reply: pool.Reply{Kind: pool.ReplyInt, Int: 1}, Replied: true, Yes: true, Grant: grant(t, "token-1", 0, time.Second, &stillClock{})}
	for text, want := range map[string]redlock.ScriptEffect{tells: redlock.ScriptReleases, renews: redlock.ScriptExtends, adds: redlock.ScriptAdds} {
		args := []string{"EVAL", text, "1", "k", "token-1"}
		if text != tells {
			args = append(args, "20000")
		}
		if got := c.eval(args...); got != ":1" {
			t.Errorf("%s: %s", text, got)
		}
		last := o.ran[len(o.ran)-1]
		if last.Effect != want || last.Token != "token-1" || len(last.Keys) != 1 || (last.Script.Time.Arg > 0) != (text == renews) {
			t.Errorf("%s: asked for %+v, %+v", text, last, last.Script)
		}
	}
	o.answers = redlock.ScriptOutcome{} // decided without asking
	if got := c.eval("EVAL", renews, "1", "k", "token-1", "20000"); got != ":0" {
		t.Error(got)
	}
}

// Each key that a script takes with a token of its own is known by that one.
func TestEVAL_TakesSeveralKeysWithATokenEach(t *testing.T) {
	const batch = "for i = 1, #KEYS do if redis.call('exists', KEYS[i]) == 1 then return {0, i} end end for i = 1, #KEYS do redis.call('set', KEYS[i], ARGV[i], 'PX', ARGV[#ARGV]) end return {1, #KEYS}"
	c, _ := dropinConversation(t, commands.Deps{})
	c.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) {
		*r.Script.Answers = redlock.ScriptAnswers{Yes: pool.Reply{Kind: pool.ReplyArray, Items: []pool.Reply{{Kind: pool.ReplyInt, Int: 1}, {Kind: pool.ReplyInt, Int: 2}}}, HasYes: true}
		if r.Script.Vote(r.Script.Answers.Yes) != redlock.ScriptYes {
			t.Error("the list is no yes")
		}
		return grant(t, r.Token, 41, r.TTL, &stillClock{}), nil
	}
	if got := c.eval("EVAL", batch, "2", "k", "l", "token-1", "token-2", "20000"); got != "[:1 :2]" {
		t.Error(got)
	}
	r := c.locks.locked[0]
	if r.Token != "token-1" || !slices.Equal(r.Script.Tokens, []redlock.Token{"token-1", "token-2"}) || r.Key != "k" || !slices.Equal(r.More, []redlock.Key{"l"}) || r.Script.Time.Arg != 3 {
		t.Errorf("asked for %+v, %+v", r, r.Script)
	}
	if got := c.eval("EVAL", batch, "2", "k", "l", "token-1", "", "20000"); !strings.HasPrefix(got, "-ERR ") || len(c.locks.locked) != 1 {
		t.Errorf("with an empty token: %s", got)
	}
}

// A text that deletes its key and answers in two ways is DUNLOCK in other words.
func TestEVAL_OfAScriptThatOnlyReleasesIsARelease(t *testing.T) {
	const (
		says     = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) return redis.status_reply('OK') end return false"
		signals  = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end redis.call('del', KEYS[2]) redis.call('lpush', KEYS[2], 1) redis.call('pexpire', KEYS[2], ARGV[2]) redis.call('del', KEYS[1]) return 0"
		all      = "local n = 0 for _, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then n = n + redis.call('del', key) end end return n"
		notifies = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('publish', 'freed', KEYS[1]) return redis.call('del', KEYS[1]) end return 0"
	)
	c, o := dropinConversation(t, commands.Deps{})
	for _, text := range []string{drops, says} {
		for _, held := range []bool{true, false} {
			c.releases(held, nil)
			want := map[string]string{drops + "true": ":1", drops + "false": ":0", says + "true": "+OK", says + "false": "nil"}[text+fmt.Sprint(held)]
			if got := c.eval("EVAL", text, "1", "k", "token-1"); got != want {
				t.Errorf("%s, held %v: %s, want %s", text, held, got, want)
			}
		}
	}
	if len(o.ran) > 0 || len(c.locks.unlocked) != 4 || c.locks.unlocked[0].Key != "k" || c.locks.unlocked[0].Token != "token-1" {
		t.Errorf("ran %v, released %v", o.ran, c.locks.unlocked)
	}
	for _, args := range [][]string{{signals, "2", "k", "s", "token-1", "1000"}, {all, "2", "k", "l", "token-1"}, {tells, "1", "k", "token-1"}, {notifies, "1", "k", "token-1"}} {
		o.answers = redlock.ScriptOutcome{Reply: pool.Reply{Kind: pool.ReplyInt, Int: 0}, Replied: true}
		ran := len(o.ran)
		if got := c.eval(append([]string{"EVAL"}, args...)...); got != ":0" || len(o.ran) != ran+1 {
			t.Errorf("%q: %s, ran %d times", args, got, len(o.ran)-ran)
		}
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
	if len(o.ran) > 0 {
		t.Errorf("something ran: %+v", o.ran)
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
	o.views["k"] = redlock.View{Kind: "string", Value: "token-1", Left: 50 * time.Second}
	if got := c.eval("EVAL", adds, "1", "k", "token-1", "20000"); !strings.Contains(got, "exceed max-ttl") {
		t.Error(got)
	}
	if len(o.ran)+len(c.locks.locked) > 0 {
		t.Errorf("something ran: %+v, %+v", o.ran, c.locks.locked)
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
	if got := c.words("EVALSHA", sha, "1", "k", "token-1"); got != "-NOSCRIPT No matching script. Please use EVAL." {
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
	if got := c.eval("EVAL", tells, "1", "k", "token-1"); got != "-ERR undecided" {
		t.Error(got)
	}
	c.releases(false, errors.New("this is undecided, too"))
	if got := c.eval("EVAL", drops, "1", "k", "token-1"); got != "-ERR this is undecided, too" {
		t.Error(got)
	}
}

// What a mock has shown is no proof, and what a read shows may be another client's token.
func TestEVAL_OfAScriptKnownByItsBehaviourNeedsMoreThanLock(t *testing.T) {
	const shows = "return redis.call('get', KEYS[1])"
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
		o.answers = redlock.ScriptOutcome{Reply: pool.Reply{Kind: pool.ReplyInt, Int: 1}, Replied: true, Yes: true, Grant: grant(t, "token-1", 0, time.Second, &stillClock{})}
		for text, refused := range map[string]string{
			takes: "(category force)", tells: "(category force)", adds: "(category force)", renews: "(category force)",
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
		{"overwrite", plain, []string{overwrites, "1", "k", "token-1", "20000"}, "-NOPERM", ":1"},
		{"overwrite", plain, []string{psetex, "1", "k", "token-1", "20000"}, "-NOPERM", ":1"},
		{"overwrite", plain, []string{setex, "1", "k", "token-1"}, "-NOPERM", ":1"},
		{"discard", plain, []string{discards, "1", "k"}, "-NOPERM", ":1"},
		{"discard", plain, []string{getdel, "1", "k"}, "-NOPERM", ":1"},
		{"discard", plain, []string{ends, "1", "k"}, "-NOPERM", ":1"},
		{"discard of two", plain, []string{all, "2", "k", "l"}, "-NOPERM", ":1"},
		{"pinned as overwrite", pins, []string{replaces, "1", "k", "token-1", "20000"}, "-NOPERM", ":1"},
		{"pinned as discard", pins, []string{renames, "2", "k", "l"}, "-NOPERM", ":1"},
		{"pinned as extend, at the operator's word", pins, []string{overwrites, "1", "k", "token-1", "20000"}, ":1", ":1"},
		{"expire, served to no user", plain, []string{shortens, "1", "k", "20000"}, "-ERR", "-ERR"},
		{"set xx, served to no user", plain, []string{replaces, "1", "k", "token-1", "20000"}, "-ERR", "-ERR"},
		{"rename, served to no user", plain, []string{renames, "2", "k", "l"}, "-ERR", "-ERR"},
		{"a library's release, its signal", plain, []string{wakes, "2", "lock:k", "lock-signal:k", "token-1", "1000"}, ":1", ":1"},
		{"a library's release, another's lock", plain, []string{wakes, "2", "lock:k", "victim", "token-1", "1000"}, "-NOPERM", ":1"},
		{"a library's release, another's signal", plain, []string{wakes, "2", "lock:k", "lock-signal:l", "token-1", "1000"}, "-NOPERM", ":1"},
		{"a library's release, one key more", plain, []string{wakes, "3", "lock:k", "lock-signal:k", "victim", "token-1", "1000"}, "-NOPERM", ":1"},
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
			o.answers = redlock.ScriptOutcome{Reply: pool.Reply{Kind: pool.ReplyInt, Int: 1}, Replied: true, Yes: true, Grant: grant(t, "token-1", 0, time.Second, &stillClock{})}
			got := c.eval(append([]string{"EVAL"}, test.words...)...)
			if !strings.HasPrefix(got, want) || want == "-NOPERM" && !strings.Contains(got, "(category force)") {
				t.Errorf("%s, with %s: %s, want %s", test.class, category, got, want)
			}
			if ran := len(o.ran) + len(c.locks.locked); (ran > 0) != (want == ":1") {
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
		class := scripts.BySHA(obtain, dropin.ScriptCall{Keys: []string{"k"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9d", given, "20000"}})
		if (class != nil) != want {
			t.Errorf("%s bytes are compared: %t", given, class != nil)
		}
	}
}

func TestEVAL_SendsNothingToTheDaemonsOwnChannels(t *testing.T) {
	const notifies = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('publish', ARGV[2], KEYS[1]) return redis.call('del', KEYS[1]) end return 0"
	for prefix, names := range map[string][]string{"": {"redlockd:events:0", "redlockd:"}, "p:": {"p:redlockd:events:0"}} {
		c, o := dropinConversation(t, commands.Deps{KeyPrefix: prefix})
		for _, name := range names {
			if got := c.eval("EVAL", notifies, "1", "k", "token-1", name); !strings.HasPrefix(got, "-ERR script ") || !strings.Contains(got, "argument 2 begins with '"+prefix+"redlockd:'") || len(o.ran) > 0 {
				t.Errorf("%s: %s, ran %v", name, got, o.ran)
			}
		}
		o.answers = redlock.ScriptOutcome{Reply: pool.Reply{Kind: pool.ReplyInt, Int: 1}, Replied: true, Yes: true}
		if got := c.eval("EVAL", notifies, "1", "k", "token-1", "freed"); got != ":1" {
			t.Error(got)
		}
	}
}

// With a prefix the masters call a key by another name than the client.
func TestEVAL_AnswersWithTheKeyAsTheClientCallsIt(t *testing.T) {
	const names = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return KEYS[1] end return false"
	c, _ := dropinConversation(t, commands.Deps{KeyPrefix: "p:"})
	c.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) {
		one := pool.Reply{Kind: pool.ReplyString, Str: "p:k"}
		if vote := r.Script.Vote(one); vote != redlock.ScriptYes {
			t.Errorf("the key is %v", vote)
		}
		*r.Script.Answers = redlock.ScriptAnswers{Yes: one, HasYes: true}
		return grant(t, r.Token, 41, r.TTL, &stillClock{}), nil
	}
	if got := c.eval("EVAL", names, "1", "k", "token-1", "20000"); got != `"k"` {
		t.Error(got)
	}
}
