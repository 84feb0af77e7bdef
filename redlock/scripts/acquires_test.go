package scripts_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"redlockd/redlock/scripts"
)

// acquirePrefix is the daemon's prefix of all keys in these tests.
const acquirePrefix = "p:"

// TestAcquiresScript_DoesWhatTheOwnCommandsDo prepares two equal sets of keys, of every kind there
// is, some with a queue. Requests for one key or several, which may overlap, take one set in a
// single call and the other one by one.
func TestAcquiresScript_DoesWhatTheOwnCommandsDo(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		r := rand.New(rand.NewPCG(7, 29))
		heard := map[string]int{}
		for round := range 150 {
			a := acquiresRound{m: m, r: r, end: m.pureEnd(), crowded: round%3 > 0}
			for i := range 1 + r.IntN(6) {
				a.names = append(a.names, fmt.Sprintf("%d:%d", round, i))
			}
			a.prepare()
			together, alone := a.acquire(heard)
			if fmt.Sprint(together) != fmt.Sprint(alone) {
				t.Fatalf("round %d: together %v, one by one %v", round, together, alone)
			}
			a.compare(t, round)
		}
		for _, answer := range []string{"0", "1", "-1", "[-2]", "error", "digits", "overlap", "too late"} {
			if heard[answer] < 5 {
				t.Errorf("%d times %s among the answers: %v", heard[answer], answer, heard)
			}
		}
	})
}

type acquiresRound struct {
	m       *pureMaster
	r       *rand.Rand
	end     int64
	crowded bool     // some keys are taken
	names   []string // of the keys, without prefix and set
}

func (a *acquiresRound) prepare() {
	if !a.crowded {
		return
	}
	for _, name := range a.names {
		seed := a.r.Uint64()
		free := a.r.IntN(3) > 0
		for _, set := range []string{"many:", "one:"} {
			keys := queueOf(set + name)
			if !free {
				a.m.prepare(keys[0], a.end, rand.New(rand.NewPCG(seed, 1)))
			}
			a.m.enqueue(keys, a.end, rand.New(rand.NewPCG(seed, 2)))
			if seed%16 == 0 {
				a.m.do("SET", keys[1], "foreign")
			}
		}
	}
}

// acquire puts requests for some of the keys to both sets. One by one they go to the scripts for
// requests of any kind and, every second time, to the bulk's script as if they were alone.
func (a *acquiresRound) acquire(heard map[string]int) (together, alone []any) {
	m, r := a.m, a.r
	var keys []string
	args := []any{len(acquirePrefix)}
	seen := map[int]bool{}
	for i := range 1 + r.IntN(6) {
		chosen := r.Perm(len(a.names))[:1+r.IntN(min(3, len(a.names)))]
		token, until := fmt.Sprint("token", i), a.end+8*int64(1+r.IntN(3))
		if r.IntN(20) == 0 {
			until = m.now() - 1
			heard["too late"]++
		}
		var own []string
		for _, k := range chosen {
			if seen[k] {
				heard["overlap"]++
			}
			seen[k] = true
			keys = append(keys, queueOf("many:" + a.names[k])[0])
			own = append(own, "one:"+a.names[k])
		}
		args = append(args, len(chosen), token, until)
		answer := a.own(own, token, until, r.IntN(2) == 0)
		alone = append(alone, answer)
		heard[fmt.Sprint(answer)]++
	}
	got := m.replyOn("acquires", keys, args...)
	digits, ok := got.(string)
	if !ok {
		for _, answer := range got.([]any) {
			together = append(together, errorOr(answer))
		}
		return together, alone
	}
	heard["digits"]++
	for _, digit := range digits {
		together = append(together, int64(digit-'0'))
	}
	return together, alone
}

// own is the answer to one request, as a number or {-2}.
func (a *acquiresRound) own(names []string, token string, until int64, asBulk bool) any {
	var locks, queues []string
	for _, name := range names {
		keys := queueOf(name)
		locks, queues = append(locks, keys[0]), append(queues, keys[1:]...)
	}
	if asBulk {
		return errorOr(a.m.replyOn("acquires", locks, len(acquirePrefix), len(locks), token, until, "alone"))
	}
	file, args := "acquire", []any{token, until}
	if len(locks) > 1 {
		file, args = "multi", []any{token, until, "0"}
	}
	text, err := scripts.Text("fair")
	if err != nil {
		a.m.t.Fatal(err)
	}
	lock, err := scripts.Text(file)
	if err != nil {
		a.m.t.Fatal(err)
	}
	answer := a.m.evaluate(string(text)+string(lock), append(locks, queues...), append(args, "", "", "1", len(locks))...)
	if items, ok := answer.([]any); ok && fmt.Sprint(items) != "[-2]" {
		return items[0] // which keys, or how many readers, matters to no request of this kind
	}
	return errorOr(answer)
}

// errorOr names an error, whose text depends on the line.
func errorOr(answer any) any {
	switch answer.(type) {
	case string, error:
		return "error"
	}
	return answer
}

func (a *acquiresRound) compare(t *testing.T, round int) {
	t.Helper()
	for _, name := range a.names {
		one := queueOf("one:" + name)
		for i, key := range queueOf("many:" + name) {
			if many, one := a.m.content(key), a.m.content(one[i]); many != one {
				t.Fatalf("round %d, key %s: together leaves %s, one by one %s", round, key, many, one)
			}
		}
	}
}

// queueOf are a lock and the keys of its queue, as the daemon names them on the masters.
func queueOf(name string) []string {
	keys := []string{acquirePrefix + name}
	for _, kind := range []string{"q:", "qx:", "qw:"} {
		keys = append(keys, acquirePrefix+"redlockd:"+kind+name)
	}
	return keys
}

// TestAcquiresScript_TakesTheLargestBulk is about Lua's unpack: its limit is 8000 words.
func TestAcquiresScript_TakesTheLargestBulk(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		const requests, locks = 8, 62 // pool.maxBulkLocks is 500
		var keys []string
		args := []any{len(acquirePrefix)}
		for i := range requests {
			for k := range locks {
				keys = append(keys, fmt.Sprintf("%s%d:%d", acquirePrefix, i, k))
			}
			args = append(args, locks, fmt.Sprint("token", i), m.pureEnd())
		}
		m.do("ZADD", acquirePrefix+"redlockd:q:7:61", 1, "waiter") // the last name
		got, ok := m.replyOn("acquires", keys, args...).([]any)
		if !ok || len(got) != requests || fmt.Sprint(got[0], got[requests-1]) != "1 [-2]" {
			t.Errorf("%.200v", got)
		}
	})
}
