package redlock

// script_test.go: locks with a client's own values and scripts, on real masters.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
)

// What a library might send; KEYS[1] is the lock, ARGV[1] the token.
const (
	scriptTake      = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 'taken' end return 'busy'"
	scriptRetake    = "local v = redis.call('GET', KEYS[1]) if v == false or v == ARGV[1] then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 'taken' end return 'busy'"
	scriptDrop      = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) return 'dropped' end return 'not yours'"
	scriptRenew     = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 'renewed' end return 'not yours'"
	scriptRetakeTwo = "for i = 1, 2 do local v = redis.call('GET', KEYS[i]) if v and v ~= ARGV[1] then return 'busy' end end for i = 1, 2 do redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end return 'taken'"
	scriptTakeTwo   = "if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 'busy' end for i = 1, 2 do redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end return 'taken'"
)

// votes says which answers of these scripts are yes.
func votes(r pool.Reply) ScriptVote {
	switch r.Str {
	case "taken", "dropped", "renewed":
		return ScriptYes
	case "busy", "not yours":
		return ScriptNo
	}
	return ScriptUnclear
}

func script(text, token, ms string, keys ...Key) *Script {
	s := &Script{Text: text, Keys: keys, Args: []string{token}, Vote: votes, Prolongs: text == scriptRetake || text == scriptRetakeTwo}
	if ms != "" {
		s.Args = append(s.Args, ms)
		s.Time = ScriptTime{Arg: 2}
	}
	return s
}

// takeBy takes a lock with a script.
func (d *daemon) takeBy(s *Script, ttl time.Duration) (Grant, *ScriptAnswers, error) {
	d.t.Helper()
	answers := &ScriptAnswers{}
	s.Answers = answers
	g, err := d.ask(LockRequest{Key: s.Keys[0], More: s.Keys[1:], TTL: ttl, Token: Token(s.Args[0]), Script: s})
	return g, answers, err
}

func (d *daemon) runScript(r ScriptRequest) (o ScriptOutcome, err error) {
	d.t.Helper()
	if r.Keys == nil {
		r.Keys, r.Token = r.Script.Keys, Token(r.Script.Args[0])
	}
	answered := make(chan struct{})
	d.RunScript(nil, r, func(outcome ScriptOutcome, e error) { o, err = outcome, e; close(answered) })
	receive(d.t, answered)
	return o, err
}

// Extensions that stand together in a flush share a call, scripts do not.
func TestScript_OneThatExtendsStandsBesideOtherExtensions(t *testing.T) {
	t.Parallel()
	d := newCluster(t, 3, time.Minute).daemon()
	keys := []Key{"k", "l", "m", "n"}
	for _, key := range keys {
		if answer := receive(t, d.request(LockRequest{Key: key, Token: tokenA, TTL: long})); answer.err != nil {
			t.Fatal(answer.err)
		}
	}
	var b Batch
	answers := make(chan error, len(keys)) // each has its one answer
	for i, key := range keys {
		if i%2 == 1 {
			d.Extend(&b, ExtendRequest{Key: key, Token: tokenA, TTL: long}, func(_ Grant, err error) { answers <- err })
			continue
		}
		r := ScriptRequest{Script: script(scriptRenew, string(tokenA), "40000", key), Effect: ScriptExtends, TTL: 40 * time.Second, Keys: []Key{key}, Token: tokenA}
		d.RunScript(&b, r, func(o ScriptOutcome, err error) {
			if err == nil && (!o.Yes || o.Reply.Str != "renewed") {
				err = fmt.Errorf("%+v", o)
			}
			answers <- err
		})
	}
	b.Send()
	for range keys {
		if err := receive(t, answers); err != nil {
			t.Error(err)
		}
	}
}

func TestValued_AnEqualValueBelongsToAnotherClient(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	request := LockRequest{Key: "k", Token: "1", TTL: long, Valued: true}
	if g, err := d.ask(request); err != nil || g.Fence == 0 {
		t.Fatalf("%v, %v", g, err)
	}
	if _, err := d.ask(request); !errors.Is(err, ErrHeld) {
		t.Errorf("the same value again: %v, want that it is held", err)
	}
	if was, err := d.unlock("k", "1"); !was || err != nil {
		t.Errorf("released: %v, %v", was, err)
	}
	if _, err := d.ask(request); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestValued_WithoutAnExpiryItIsUndoneAndReleasedAllTheSame(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	for _, i := range []int{0, 1} {
		c.do(i, "SET", "k", "somebody else's", "PX", 60000)
	}
	request := LockRequest{Key: "k", Token: "my own value", TTL: Endless, Valued: true}
	if _, err := d.ask(request); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	eventually(t, "the third master has nothing", func() bool { return c.copies("k")[2] == "" })
	c.do(0, "DEL", "k")
	if _, err := d.ask(request); err != nil {
		t.Fatal(err)
	}
	if ends := c.ends(0, "k"); ends != -1 {
		t.Errorf("ends at %d, want never", ends)
	}
	if was, err := d.unlock("k", "my own value"); !was || err != nil {
		t.Errorf("released: %v, %v", was, err)
	}
	eventually(t, "it is gone", func() bool { return c.copies("k")[2] == "" })
}

func TestScript_TakesAndReleasesInItsOwnWords(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*daemon{"real": newCluster(t, 5, time.Minute).daemon(), "embedded": embedded(t)} {
		t.Run(name, func(t *testing.T) {
			g, said, err := d.takeBy(script(scriptTake, "token-of-mine", "20000", "k"), 20*time.Second)
			if err != nil || said.Yes.Str != "taken" || !g.Fresh || g.Fence == 0 || g.Validity() > 20*time.Second {
				t.Fatalf("%+v, %+v, %v", g, said, err)
			}
			if _, said, err := d.takeBy(script(scriptTake, "another token", "20000", "k"), 20*time.Second); !errors.Is(err, ErrHeld) || said.No.Str != "busy" {
				t.Errorf("%+v, %v; want the script's word for no", said, err)
			}
			isHeld(t, d.refuse("k", 20*time.Second)) // and DLOCK is refused, too
			o, err := d.runScript(ScriptRequest{Script: script(scriptDrop, "another token", "", "k")})
			if err != nil || o.Yes || o.Reply.Str != "not yours" {
				t.Errorf("%+v, %v", o, err)
			}
			o, err = d.runScript(ScriptRequest{Script: script(scriptDrop, "token-of-mine", "", "k")})
			if err != nil || !o.Yes || o.Reply.Str != "dropped" {
				t.Errorf("%+v, %v", o, err)
			}
			d.take("k", 20*time.Second)
		})
	}
}

func TestScript_TakesBackWhatAMinorityGave(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	for i := range 3 {
		c.do(i, "SET", "a", "somebody else's", "PX", 60000)
	}
	if _, _, err := d.takeBy(script(scriptTakeTwo, "token-of-mine", "20000", "a", "b"), 20*time.Second); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	eventually(t, "nothing of the attempt is left", func() bool {
		return slices.Equal(c.copies("a")[3:], []string{"", ""}) && strings.Join(c.copies("b"), "") == ""
	})
}

// A script that also prolongs found the token on one master: whatever becomes of
// the attempt, that copy was not made by it.
func TestScript_LeavesWhatTheTokenHeldBefore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	c.do(0, "SET", "k", "token-of-mine", "PX", 60000)
	for i := 1; i < 4; i++ {
		c.do(i, "SET", "k", "somebody else's", "PX", 60000)
	}
	if _, _, err := d.takeBy(script(scriptRetake, "token-of-mine", "20000", "k"), 20*time.Second); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	eventually(t, "the copy that the attempt made is gone", func() bool { return c.copies("k")[4] == "" })
	if got := c.copies("k")[0]; got != "token-of-mine" {
		t.Errorf("the first master holds %q", got)
	}
	for i := range 5 {
		c.do(i, "DEL", "k")
	}
	d.takeAs("k", "token-of-mine", 20*time.Second)
	g, said, err := d.takeBy(script(scriptRetake, "token-of-mine", "20000", "k"), 20*time.Second)
	if err != nil || g.Fresh || said.Yes.Str != "taken" {
		t.Errorf("%+v, %+v, %v; want a grant that is not fresh: the token had it before", g, said, err)
	}
}

// Of two keys the token held one on a master: the attempt made the other alone.
func TestScript_TakesBackOnlyTheKeysThatItMade(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	for i := range 3 {
		c.do(i, "SET", "a", "somebody else's", "PX", 60000)
	}
	c.do(3, "SET", "a", "token-of-mine", "PX", 60000)
	if _, _, err := d.takeBy(script(scriptRetakeTwo, "token-of-mine", "20000", "a", "b"), 20*time.Second); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	eventually(t, "what the attempt made is gone", func() bool { return strings.Join(c.copies("b"), "")+c.copies("a")[4] == "" })
	d.idle()
	if got := c.copyAt(3, "a"); got != "token-of-mine" {
		t.Errorf("the fourth master holds %q", got)
	}
}

// A script may give each key a token of its own. Each is then held, taken back, released
// and given back by that one.
func TestScript_GivesEachKeyATokenOfItsOwn(t *testing.T) {
	const takesEach = "for i = 1, #KEYS do if redis.call('EXISTS', KEYS[i]) == 1 then return 'busy' end end for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i], 'PX', ARGV[#ARGV]) end return 'taken'"
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	each := func() *Script {
		s := script(takesEach, "token-of-c", "", "c", "a", "b")
		s.Tokens = []Token{"token-of-c", "token-of-a", "token-of-b"}
		s.Args, s.Time = []string{"token-of-c", "token-of-a", "token-of-b", "20000"}, ScriptTime{Arg: 4}
		return s
	}
	for i := range 3 {
		c.do(i, "SET", "b", "somebody else's", "PX", 60000)
	}
	if _, _, err := d.takeBy(each(), 20*time.Second); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	none := func(keys ...string) func() bool {
		return func() bool {
			all := ""
			for _, key := range keys {
				all += strings.Join(c.copies(key), "")
			}
			return all == ""
		}
	}
	eventually(t, "nothing of the attempt is left", func() bool { return none("a", "c")() && slices.Equal(c.copies("b")[3:], []string{"", ""}) })
	for i := range 3 {
		c.do(i, "DEL", "b")
	}
	g, _, err := d.takeBy(each(), 20*time.Second)
	if err != nil || !g.Fresh {
		t.Fatalf("%+v, %v", g, err)
	}
	for i, key := range g.Keys() {
		if want := Token("token-of-" + string(key)); g.TokenOf(i) != want {
			t.Errorf("%s is held by %s, want %s", key, g.TokenOf(i), want)
		}
		eventually(t, "all masters have "+string(key), func() bool { return !slices.Contains(c.copies(string(key)), "") })
	}
	if was, err := d.unlock("a", "token-of-c"); was || err != nil {
		t.Errorf("by another key's token: %v, %v", was, err)
	}
	if was, err := d.unlock("a", "token-of-a"); !was || err != nil {
		t.Errorf("by its own: %v, %v", was, err)
	}
	d.GiveBack(g)
	eventually(t, "the others are given back", none("b", "c"))
	if _, _, err := d.takeBy(each(), 20*time.Second); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestScript_AnExtensionRepairsAndARefusedOneLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	if _, _, err := d.takeBy(script(scriptTake, "token-of-mine", "20000", "k"), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have it", func() bool { return !slices.Contains(c.copies("k"), "") })
	c.do(0, "DEL", "k")
	renew := ScriptRequest{Script: script(scriptRenew, "token-of-mine", "40000", "k"), Effect: ScriptExtends, TTL: 40 * time.Second}
	o, err := d.runScript(renew)
	if err != nil || !o.Yes || o.Reply.Str != "renewed" || o.Grant.Validity() < 30*time.Second {
		t.Fatalf("%+v, %v", o, err)
	}
	eventually(t, "the first master has it again", func() bool { return c.copies("k")[0] == "token-of-mine" })
	for i := range 3 {
		c.do(i, "DEL", "k")
	}
	o, err = d.runScript(renew)
	if err != nil || o.Yes || o.Reply.Str != "not yours" {
		t.Fatalf("%+v, %v; want the script's word for no", o, err)
	}
	eventually(t, "what was prolonged of it is gone", func() bool { return strings.Join(c.copies("k"), "") == "" })
}

func TestScript_ReportsAKeyThatHoldsNoLockOfItsKind(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Mode: Shared})
	o, err := d.runScript(ScriptRequest{Script: script(scriptDrop, "token-of-mine", "", "k")})
	if err != nil || o.Yes || !saysWrongType(o.Reply) {
		t.Errorf("%+v, %v; want the masters' error", o, err)
	}
	if _, _, err := d.takeBy(script(scriptRetake, "token-of-mine", "20000", "k"), 20*time.Second); !errors.Is(err, ErrWrongType) {
		t.Errorf("%v, want that it is no lock of that kind", err)
	}
}

func TestScript_WithoutAQuorumTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	for _, i := range []int{0, 1} {
		c.servers[i].Kill()
		d.await(i, "down")
	}
	_, _, err := d.takeBy(script(scriptTake, "token-of-mine", "20000", "k"), 20*time.Second)
	noQuorum(t, err, "1 of 3")
	_, err = d.runScript(ScriptRequest{Script: script(scriptDrop, "token-of-mine", "", "k")})
	noQuorum(t, err, "1 of 3")
	eventually(t, "the copy is taken back", func() bool { return c.copyAt(2, "k") == "" })
}

// copyAt is one master's copy.
func (c *cluster) copyAt(i int, key string) string {
	c.t.Helper()
	token, _ := c.do(i, "GET", key).(string)
	return token
}

// The daemon's user on the masters needs what the scripts of libraries do.
func TestScript_MayRunForTheUserOfTheExample(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	c.aclUser()
	d := c.daemon(restricted)
	if _, _, err := d.takeBy(script(scriptRetake, "token-of-mine", "20000", "k"), 20*time.Second); err != nil {
		t.Error(err)
	}
	o, err := d.runScript(ScriptRequest{Script: script(scriptRenew, "token-of-mine", "40000", "k"), Effect: ScriptExtends, TTL: 40 * time.Second})
	if err != nil || !o.Yes {
		t.Errorf("%+v, %v", o, err)
	}
	if v, err := d.look("k"); err != nil || v.Value != "token-of-mine" {
		t.Errorf("%+v, %v", v, err)
	}
	if was, err := d.write(WriteRequest{Key: "k", Effect: WriteReplaces, Value: "another one", TTL: 20 * time.Second}); !was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	if o, err := d.runScript(ScriptRequest{Script: script(scriptDrop, "another one", "", "k")}); err != nil || !o.Yes {
		t.Errorf("%+v, %v", o, err)
	}
	d.idle()
	for i := range c.servers {
		if said := c.denied(i); said != "" {
			t.Errorf("master %s refused: %s", name(i), said)
		}
	}
}
