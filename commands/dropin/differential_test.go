package dropin

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"redlockd/commands/dropin/textgen"
)

// Scripts that nobody has thought of: where the evaluator has a class, a real master answers the same
// and does the same, from every state of the keys. DROPIN_DIFFERENTIAL says how many are written.
func TestEvaluator_AgreesWithAMasterOnGeneratedScripts(t *testing.T) {
	m := startMaster(t)
	count, seed := 1500, uint64(1) // always the same in the short form
	if n, err := strconv.Atoi(os.Getenv("DROPIN_DIFFERENTIAL")); err == nil {
		count = n
	}
	if n, err := strconv.ParseUint(os.Getenv("DROPIN_SEED"), 10, 64); err == nil {
		seed = n
	}
	random := rand.New(rand.NewPCG(seed, 7))
	served := make(map[Op]int)
	for i := range count {
		text, keys, args := textgen.Script(random)
		if class := m.agrees(text, ScriptCall{Keys: keys, Args: args}); class != nil {
			served[class.Op]++
		}
		if t.Failed() {
			t.Fatalf("seed %d, script %d", seed, i)
		}
		if i%500 == 0 {
			m.do("SCRIPT", "FLUSH")
		}
	}
	t.Logf("seed %d: of %d scripts %v", seed, count, served)
	for _, op := range []Op{Acquire, Release, Extend, Read, Discard, Overwrite} {
		if count >= 4000 && served[op] == 0 {
			t.Errorf("seed %d: no %s among %d scripts", seed, op, count)
		}
	}
}

// agrees compares the class of a script with a master in every state of its keys. nil is one that is refused.
func (m *master) agrees(text string, call ScriptCall) *Class {
	m.t.Helper()
	class, _, err := classOfText(text, call)
	if err != nil || class.Fits(call) != nil {
		return nil
	}
	states := statesOf(class, call)
	results, ok := m.runs(text, call, states)
	if !ok {
		m.t.Errorf("it is served and does not compile:\n%s", text)
	}
	for s, r := range results {
		if diff := m.differsAgain(text, class, call, states[s], r); diff != "" {
			m.t.Errorf("%s, args %q, %+v: %s\n%s", class.Op, call.Args, states[s], diff, text)
			break
		}
	}
	return class
}

// What the generator has found: each was served and answered for another state, or where a master answers an error.
func TestEvaluator_AgreesWithAMasterOnWhatWasFound(t *testing.T) {
	m := startMaster(t)
	for _, text := range []string{
		"if redis.call('get', KEYS[2]) == KEYS[2] then do return redis.call('setnx', KEYS[1], ARGV[3]) end end",
		"do return (ARGV[3] ~= redis.call('get', KEYS[1])) end",
		"if redis.call('get', KEYS[1]) == false then redis.call('pexpire', KEYS[1], ARGV[3], 'XX') return redis.call('pttl', KEYS[1]) end",
		"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return redis.call('expire', KEYS[2], ARGV[3])",
	} {
		for _, word := range []string{"10", "0", "-1", "yes", "", "9223372036854775807", "1e3", " 7"} {
			for keys := 1; keys <= 2; keys++ {
				m.agrees(text, ScriptCall{Keys: []string{"k1", "k2"}[:keys], Args: []string{textgen.Token, "20000", word}})
			}
		}
	}
}

// statesOf are the states of the keys of a call, each key with those of its own token.
func statesOf(c *Class, call ScriptCall) (states [][]keyIn) {
	states, lock := [][]keyIn{nil}, 0
	for i := range call.Keys {
		token := "a token that nobody gives"
		if !contains(c.Others, i+1) {
			if own := c.TokenOf(call, lock); own != "" {
				token = own
			}
			lock++
		}
		var more [][]keyIn
		for _, state := range states {
			for _, k := range keysIn(token) {
				more = append(more, append(state[:i:i], k))
			}
		}
		states = more
	}
	return states
}
