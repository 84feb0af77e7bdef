package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

func TestDropinStats_CountByLibraryAndOutcome(t *testing.T) {
	c, one := dropinConversation(t, commands.Deps{DropinStats: new(dropin.Stats)})
	c.say("SET k value-1") // refused before it is requested: not counted
	c.grantsAll()
	c.say("SET k value-1 NX PX 20000")
	c.refusesAll()
	c.say("SET k value-1 NX PX 20000")
	c.say("GET k")
	one.failure = &redlock.NoQuorum{Needed: 3, Total: 5}
	c.say("GET k")
	one.failure = nil
	const release = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])`
	c.releases(true, nil)
	unseen := c.start("EVAL", release, "1", "k", "value-1") // looked at on a goroutine of its own
	for deadline := time.Now().Add(20 * time.Second); unseen.answerCount() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	const redisPy = `
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('del', KEYS[1])
        return 1
    `
	c.words("EVAL", redisPy, "1", "k", "value-1")
	c.releases(false, nil)
	c.words("EVALSHA", shaOf(redisPy), "1", "k", "value-1")
	want := map[string]string{
		"commands set": "1 1 0", "commands get": "0 1 1",
		"redis-py Lock release": "1 1 0", "unnamed release": "1 0 0",
	}
	for _, f := range c.deps.DropinStats.List() {
		name := f.Library + " " + f.Operation
		if got := fmt.Sprint(f.Yes, f.No, f.Undecided); got != want[name] {
			t.Errorf("%s: %s, want %q", name, got, want[name])
		}
		if f.Quantile(1) <= 0 || f.Sum <= 0 {
			t.Errorf("%s took no time", name)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("%v are missing", want)
	}
	page := c.say("INFO dropin")
	if !strings.Contains(page, "dropin_redis-py_Lock_release:calls=2,yes=1,no=1,undecided=0,p50_us=") {
		t.Error(page)
	}
	if page := c.say("INFO memory"); !strings.Contains(page, "number_of_cached_scripts:2\\r\\n") {
		t.Error(page)
	}
}

func TestDropinStats_CountWhatNoLockCanMeet(t *testing.T) {
	c, _ := dropinConversation(t, commands.Deps{DropinStats: new(dropin.Stats)})
	c.transcript(`
		> SET k value-1 PX 20000 IFEQ ""
		< nil
		> DELEX k IFEQ ""
		< :0
	`)
	counted := ""
	for _, f := range c.deps.DropinStats.List() {
		counted += fmt.Sprint(f.Operation, f.Yes, f.No, f.Undecided, " ")
	}
	if counted != "delex0 1 0 set0 1 0 " {
		t.Errorf("%q", counted)
	}
}

// answerCount is how often the call has been answered.
func (f *fakeCompleter) answerCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answers
}
