package scripts_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"redlockd/redlock/scripts"
)

// bulkAcquire is a script for the acquires of a flush beside the one for each of them.
type bulkAcquire struct {
	together, alone string
	writes          string   // the flag of the check of the queue
	kind            string   // of a lock that is often there before
	answers         []string // that must occur
	// args are the arguments of one acquire for the bulk, and further ones for its own script.
	args func(r *rand.Rand, token string, end int64) (bulk, own []any)
}

// TestBulkScripts_DoWhatTheOwnCommandsDo prepares equal sets of keys, of every kind there is,
// some with a queue. Acquires take one set in a single call, and the others one by one: in the
// same order, or first those that succeed.
func TestBulkScripts_DoWhatTheOwnCommandsDo(t *testing.T) {
	t.Parallel()
	for _, b := range []bulkAcquire{
		{"shares", "share", "0", "zset", []string{"0", "1", "2", "-1"}, func(_ *rand.Rand, token string, end int64) (bulk, own []any) {
			return []any{token, end}, []any{token, end, ""}
		}},
		{"permits", "permit", "1", "hash", []string{"[0]", "1", "2", "-1", "[3 4]"}, func(r *rand.Rand, token string, end int64) (bulk, own []any) {
			n := 4 + r.IntN(30)/29
			bulk = []any{token, end, n, 1 + r.IntN(n)}
			return bulk, append(bulk, "")
		}},
	} {
		t.Run(b.together, func(t *testing.T) {
			t.Parallel()
			onEveryMaster(t, func(t *testing.T, m *pureMaster) { b.compare(t, m) })
		})
	}
}

// What fails at one lock is not the answer of the others' acquires.
func TestBulkScripts_AnErrorAtOneLockIsOfThatLockOnly(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end := m.pureEnd()
		m.do("SET", "redlockd:q:b", "foreign")
		keys := []string{}
		for _, lock := range []string{"a", "b", "c"} {
			keys = append(keys, lock, "redlockd:q:"+lock, "redlockd:qx:"+lock, "redlockd:qw:"+lock)
		}
		m.do("SET", "redlockd:qw:b", "foreign")
		for what, args := range map[string][]any{
			"shares":  {2, "r1", end, "r2", end, 2, "r3", end, "r4", end, 1, "r5", end},
			"permits": {2, "p1", end, 4, 1, "p2", end, 4, 2, 2, "p3", end, 4, 3, "p4", end, 4, 4, 1, "p5", end, 4, 1},
		} {
			m.do("DEL", "a", "b", "c")
			got, ok := m.replyOn(what, keys, args...).([]any)
			if !ok || len(got) != 5 {
				t.Fatalf("%s: %v", what, got)
			}
			for i, one := range got {
				err, _ := one.(error)
				if wrong := i == 2 || i == 3; wrong != (err != nil && strings.Contains(err.Error(), "WRONGTYPE")) || !wrong && one != int64(1) {
					t.Errorf("%s: %v", what, got)
				}
			}
		}
	})
}

// A bulk names at most 500 locks (pool.maxBulkLocks).
func TestBulkScripts_HaveRoomForTheLargestBulk(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		const most = 500
		end := m.pureEnd()
		for _, locks := range []int{1, most} {
			var keys, released []string
			var shares, permits, tokens []any
			for i := range most {
				lock, token := fmt.Sprint("lock", i%locks), fmt.Sprint("token", i)
				if i < locks {
					keys = append(keys, withQueue(lock)...)
					shares, permits = append(shares, most/locks), append(permits, most/locks)
				}
				released, tokens = append(released, lock), append(tokens, token)
				shares, permits = append(shares, token, end), append(permits, token, end, most, i+1)
			}
			for file, args := range map[string][]any{"shares": shares, "permits": permits} {
				for _, of := range []any{m.replyOn(file, keys, args...), m.replyOn("releases", released, tokens...)} {
					if of != strings.Repeat("1", most) {
						t.Errorf("%s of %d locks: %v", file, locks, of)
					}
				}
			}
		}
	})
}

// ownAcquire is one acquire of a bulk.
type ownAcquire struct {
	lock   string
	args   []any
	answer any // in the bulk
}

func (b *bulkAcquire) compare(t *testing.T, m *pureMaster) {
	var text string
	for _, file := range []string{"fair", b.alone} {
		part, err := scripts.Text(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(part)
	}
	sets := []string{"many:", "one:", "first:"}
	r := rand.New(rand.NewPCG(5, 23))
	heard := map[string]int{}
	for round := range 150 {
		end := m.pureEnd()
		var locks, keys []string
		var args []any
		var all []*ownAcquire
		for k := range 1 + r.IntN(4) {
			name, often := fmt.Sprintf("%d:%d", round, k), r.IntN(2) == 0
			locks = append(locks, name)
			seed := r.Uint64()
			for m.prepare(sets[0]+name, end, rand.New(rand.NewPCG(seed, 1))); often && m.do("TYPE", sets[0]+name) != b.kind; seed++ {
				m.do("DEL", sets[0]+name)
				m.prepare(sets[0]+name, end, rand.New(rand.NewPCG(seed+1, 1)))
			}
			for _, set := range sets {
				m.do("DEL", set+name)
				m.prepare(set+name, end, rand.New(rand.NewPCG(seed, 1)))
				m.enqueue(withQueue(set+name), end, rand.New(rand.NewPCG(seed, 2)))
			}
			n := 1 + r.IntN(8)
			keys, args = append(keys, withQueue(sets[0]+name)...), append(args, n)
			for _, i := range r.Perm(20)[:n] {
				token := append([]string{"mine", "yours"}, make([]string, 18)...)[i]
				if token == "" {
					token = fmt.Sprint("token", i)
				}
				until := end + 8*int64(1+r.IntN(3))
				if r.IntN(20) == 0 {
					until = m.now() - 1
				}
				bulk, own := b.args(r, token, until)
				args = append(args, bulk...)
				all = append(all, &ownAcquire{lock: name, args: append(own, "", "", b.writes, 1)})
			}
		}
		got := m.replyOn(b.together, keys, args...)
		for i, one := range all {
			if digits, ok := got.(string); ok && len(digits) == len(all) {
				one.answer, heard["digits"] = int64(digits[i]-'0'), heard["digits"]+1
			} else if one.answer, ok = got.([]any)[i], true; !ok {
				t.Fatalf("round %d: %v", round, got)
			}
			heard[fmt.Sprint(one.answer)]++
		}
		for _, name := range locks {
			var of []*ownAcquire
			for _, one := range all {
				if one.lock == name {
					of = append(of, one)
				}
			}
			wrong := m.differs(text, sets[1], of)
			slices.SortStableFunc(of, func(a, b *ownAcquire) int { return a.refused() - b.refused() })
			if wrong != "" && m.differs(text, sets[2], of) != "" {
				t.Fatalf("round %d: %s", round, wrong)
			}
		}
	}
	for _, answer := range append(b.answers, "digits", "[-2]") {
		if heard[answer] < 2 {
			t.Errorf("%d times %s among the answers: %v", heard[answer], answer, heard)
		}
	}
}

// refused is 0 if the answer is a yes, else 1.
func (a *ownAcquire) refused() int {
	if n, ok := a.answer.(int64); ok && n > 0 {
		return 0
	}
	return 1
}

// differs makes the acquires of a lock one by one, and returns what is not as after the bulk.
func (m *pureMaster) differs(text, set string, all []*ownAcquire) string {
	m.t.Helper()
	lock := all[0].lock
	for _, one := range all {
		if got := m.evaluate(text, withQueue(set+lock), one.args...); fmt.Sprint(got) != fmt.Sprint(one.answer) {
			return fmt.Sprintf("%v on %s: together %v, alone %v", one.args, lock, one.answer, got)
		}
	}
	for i, key := range withQueue("many:" + lock) {
		if a, b := m.content(key), m.content(withQueue(set + lock)[i]); a != b {
			return fmt.Sprintf("%s: together leaves %s, alone %s", key, a, b)
		}
	}
	return ""
}

// withQueue are a lock and the keys of its queue.
func withQueue(lock string) []string { return []string{lock, "q:" + lock, "qx:" + lock, "qw:" + lock} }

// enqueue puts waiters into a lock's queue, see withQueue, of whom some have expired and some want to write, or none.
func (m *pureMaster) enqueue(keys []string, end int64, r *rand.Rand) {
	m.t.Helper()
	if r.IntN(3) > 0 {
		return
	}
	for i := range r.IntN(4) {
		waiter := fmt.Sprint("waiter", i)
		m.do("ZADD", keys[1], 10+i, waiter)
		m.do("ZADD", keys[2], end-2*pureFar*int64(r.IntN(2)), waiter)
		if r.IntN(2) == 0 {
			m.do("ZADD", keys[3], 10+i, waiter)
		}
	}
}
