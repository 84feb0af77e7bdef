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
		call := ScriptCall{Keys: keys, Args: args}
		class, _, err := classOfText(text, call)
		if err != nil || class.Fits(call) != nil {
			continue
		}
		states := statesOf(class, call)
		results, ok := m.runs(text, call, states)
		if !ok {
			t.Fatalf("seed %d, script %d is served and does not compile:\n%s", seed, i, text)
		}
		served[class.Op]++
		for s, r := range results {
			if diff := m.differsAgain(text, class, call, states[s], r); diff != "" {
				t.Fatalf("seed %d, script %d, %s, args %q, %+v: %s\n%s", seed, i, class.Op, call.Args, states[s], diff, text)
			}
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
