package redlock

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"redlockd/redlock/scripts"
)

// bulkAcquire is a script for the acquires of a flush beside the one for each of them.
type bulkAcquire struct {
	together, alone string
	writes          string   // the flag of the check of the queue
	answers         []string // that must occur
	// args are the arguments of one acquire for the bulk, and further ones for its own script.
	args func(r *rand.Rand, token string, end int64) (bulk, own []any)
}

// TestBulkScripts_DoWhatTheOwnCommandsDo prepares two equal sets of keys, of every kind there
// is, some with a queue. Acquires take one set in a single call and the other one by one.
func TestBulkScripts_DoWhatTheOwnCommandsDo(t *testing.T) {
	t.Parallel()
	for _, b := range []bulkAcquire{
		{"shares", "share", "0", []string{"0", "1", "2", "-1"}, func(_ *rand.Rand, token string, end int64) (bulk, own []any) {
			return []any{token, end}, []any{token, end, ""}
		}},
	} {
		t.Run(b.together, func(t *testing.T) {
			t.Parallel()
			onEveryMaster(t, func(t *testing.T, m *pureMaster) { b.compare(t, m) })
		})
	}
}

func (b *bulkAcquire) compare(t *testing.T, m *pureMaster) {
	alone, err := scripts.Text("fair")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := scripts.Text(b.alone)
	if err != nil {
		t.Fatal(err)
	}
	alone = append(alone, lock...)
	r := rand.New(rand.NewPCG(5, 23))
	heard := map[string]int{}
	for round := range 100 {
		end := m.pureEnd()
		var locks, keys []string
		var args, want []any
		for k := range 1 + r.IntN(4) {
			name, seed := fmt.Sprintf("%d:%d", round, k), r.Uint64()
			locks = append(locks, name)
			for _, set := range []string{"many:", "one:"} {
				m.prepare(set+name, end, rand.New(rand.NewPCG(seed, 1)))
				m.queue(set+name, end, rand.New(rand.NewPCG(seed, 2)))
			}
			n := 1 + r.IntN(8)
			keys, args = append(keys, withQueue("many:"+name)...), append(args, n)
			tokens := r.Perm(12)
			for i := range n {
				token := fmt.Sprint("token", tokens[i])
				if tokens[i] < 3 {
					token = []string{"mine", "yours", "theirs"}[tokens[i]]
				}
				until := end + 8*int64(1+r.IntN(3))
				if r.IntN(20) == 0 {
					until = m.now() - 1
				}
				bulk, own := b.args(r, token, until)
				args = append(args, bulk...)
				answer := m.evaluate(string(alone), withQueue("one:"+name), append(own, "", "", b.writes, 1)...)
				want = append(want, answer)
				heard[fmt.Sprint(answer)]++
			}
		}
		got := m.replyOn(b.together, keys, args...)
		if digits, ok := got.(string); ok {
			parts := []any{}
			for _, digit := range digits {
				parts = append(parts, int64(digit-'0'))
			}
			got = parts
			heard["digits"]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("round %d: together %v, one by one %v", round, got, want)
		}
		for _, name := range locks {
			for i, key := range withQueue("many:" + name) {
				if a, b := m.content(key), m.content(withQueue("one:" + name)[i]); a != b {
					t.Fatalf("round %d, key %s: together leaves %s, one by one %s", round, key, a, b)
				}
			}
		}
	}
	for _, answer := range append(b.answers, "digits", "[-2]") {
		if heard[answer] < 5 {
			t.Errorf("%d times %s among the answers: %v", heard[answer], answer, heard)
		}
	}
}

// withQueue are a lock and the keys of its queue.
func withQueue(lock string) []string { return []string{lock, "q:" + lock, "qx:" + lock, "qw:" + lock} }

// queue puts waiters into a lock's queue, of whom some have expired and some want to write, or none.
func (m *pureMaster) queue(lock string, end int64, r *rand.Rand) {
	m.t.Helper()
	keys := withQueue(lock)
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
