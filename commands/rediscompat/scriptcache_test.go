package rediscompat

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"redlockd/commands"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// One user can neither flush the texts of another nor push them out.
func TestSCRIPT_KeepsTextsByUser(t *testing.T) {
	s := scriptCache{stats: new(dropin.Stats)}
	s.keep("a", shaOf("mine"), "mine")
	s.keep("b", shaOf("mine"), "mine")
	s.forget("b")
	if _, ok := s.text("b", shaOf("mine")); ok {
		t.Error("b's own text is left after b's flush")
	}
	for i := range 2 * maxScripts {
		text := fmt.Sprint("return ", i)
		s.keep("b", shaOf(text), text)
	}
	if text, ok := s.text("a", shaOf("mine")); !ok || text != "mine" {
		t.Errorf("a's text is %q, %v after b loaded and flushed", text, ok)
	}
	if n := s.stats.CachedScripts.Load(); n != maxScripts {
		t.Errorf("%d texts are kept, want %d", n, maxScripts)
	}
	s.forget("b")
	for i := range 2 * maxCachedBytes / maxScriptBytes {
		text := fmt.Sprintf("return %*d", maxScriptBytes-7, i)
		s.keep("b", shaOf(text), text)
	}
	if text, ok := s.text("a", shaOf("mine")); !ok || text != "mine" || s.bytes > maxCachedBytes || s.bytes < maxCachedBytes/2 {
		t.Errorf("a's text is %q, %v after b loaded large ones, of which %d bytes are kept", text, ok, s.bytes)
	}
	s.forget("b")
	if s.bytes != len("mine") {
		t.Errorf("%d bytes are left after b's flush", s.bytes)
	}
	if n := s.stats.CachedScripts.Load(); n != 1 {
		t.Errorf("%d texts are left after b's flush, want a's", n)
	}
}

// replies takes the answer to a call.
type replies chan commands.Reply

func (r replies) Complete(reply commands.Reply)                    { r <- reply }
func (r replies) CompleteDeferred(deferred commands.DeferredReply) { r <- deferred.Reply() }

// nothingHeld is a quorum of which every key is free.
type nothingHeld struct{ commands.RedisCompat }

func (nothingHeld) View(_ *redlock.Batch, _ int, _ redlock.Key, done redlock.ViewDone) {
	done(redlock.View{Kind: "none"}, nil)
}

func TestEVAL_OfUnknownScriptsIsLimited(t *testing.T) { synctest.Test(t, unknownScripts) }

// unknownScripts runs while the clock stands.
func unknownScripts(t *testing.T) {
	table := commands.NewTable(commands.Deps{RedisCompat: nothingHeld{}}, Rows)
	client := &commands.Client{Proto: 2}
	eval := func(text string, args ...string) string {
		answer := make(replies, 1)
		table.Dispatch(&commands.Call{Args: append([]string{"EVAL", text, "1", "k"}, args...), Client: client, Completer: answer})
		return (<-answer).Text
	}
	for i := range probesPerSecond {
		if got := eval(fmt.Sprint("return ", i)); strings.HasPrefix(got, "TRYLATER") {
			t.Fatalf("the %d. script: %s", i+1, got)
		}
	}
	if got := eval("return 'one more'"); !strings.HasPrefix(got, "TRYLATER new scripts: 50 a second of a user are looked at") {
		t.Error(got)
	}
	if got := eval("if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])", "token-1"); !strings.HasPrefix(got, "TRYLATER") {
		t.Error(got)
	}
}
