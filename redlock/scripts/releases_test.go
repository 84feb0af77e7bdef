package scripts_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestReleasesScript_DoesWhatReleaseDoesForEachKey prepares two equal sets of
// keys, of every kind there is and held by every combination of tokens, and
// releases one set in a single call and the other key by key.
func TestReleasesScript_DoesWhatReleaseDoesForEachKey(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		r := rand.New(rand.NewPCG(3, 17))
		heard := map[string]int{}
		for round := range 60 {
			end := m.pureEnd()
			var many, one []string
			var tokens []any
			for i := range 1 + r.IntN(12) {
				name := fmt.Sprintf("%d:%d", round, i)
				if i > 0 && r.IntN(3) == 0 { // the same key once more
					name = fmt.Sprintf("%d:%d", round, i-1)
				} else {
					seed := r.Uint64()
					m.prepare("many:"+name, end, rand.New(rand.NewPCG(seed, 1)))
					m.prepare("one:"+name, end, rand.New(rand.NewPCG(seed, 1)))
				}
				many, one = append(many, "many:"+name), append(one, "one:"+name)
				tokens = append(tokens, []any{"mine", "mine", "yours", "theirs"}[r.IntN(4)])
			}
			got := m.replyOn("releases", many, tokens...)
			var want strings.Builder
			for i, key := range one {
				fmt.Fprint(&want, m.replyOn("release", []string{key}, tokens[i], "", ""))
			}
			if got != want.String() {
				t.Fatalf("round %d: together %v, one by one %s", round, got, want.String())
			}
			for i := range many {
				if a, b := m.content(many[i]), m.content(one[i]); a != b {
					t.Fatalf("round %d, key %d: together leaves %s, one by one %s", round, i, a, b)
				}
			}
			for _, digit := range want.String() {
				heard[string(digit)]++
			}
		}
		if heard["0"] < 50 || heard["1"] < 50 {
			t.Errorf("answers %v: hardly anything was compared", heard)
		}
	})
}

// TestExtendScript_TogetherDoesWhatItDoesForEachKey is the same for extensions.
func TestExtendScript_TogetherDoesWhatItDoesForEachKey(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		r := rand.New(rand.NewPCG(5, 23))
		heard := map[string]int{}
		for round := range 60 {
			end := m.pureEnd()
			var many []string
			var args, want []any
			digits := ""
			for i := range 1 + r.IntN(7) {
				name, seed, token := fmt.Sprintf("%d:%d", round, i), r.Uint64(), []any{"mine", "mine", "yours", "theirs"}[r.IntN(4)]
				asked := end + []int64{-1000, 0, 4, 1000}[r.IntN(4)]
				m.prepare("many:"+name, end, rand.New(rand.NewPCG(seed, 1)))
				m.prepare("one:"+name, end, rand.New(rand.NewPCG(seed, 1)))
				many, args = append(many, "many:"+name), append(args, token, asked)
				answer := m.replyOn("extend", []string{"one:" + name}, token, asked, "alone")
				want, digits = append(want, answer), digits+fmt.Sprint(answer)
				heard[fmt.Sprint(answer)]++
			}
			got := m.replyOn("extend", many, args...)
			if got != digits && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("round %d: together %v, one by one %v", round, got, want)
			}
			for i, key := range many {
				if a, b := m.content(key), m.content(strings.Replace(key, "many", "one", 1)); a != b {
					t.Fatalf("round %d, key %d: together leaves %s, one by one %s", round, i, a, b)
				}
			}
		}
		for _, answer := range []string{"0", "1", "[1]", "[1 1 4]"} {
			if heard[answer] < 5 {
				t.Errorf("answers %v: hardly any %s was compared", heard, answer)
			}
		}
	})
}

// prepare puts one of everything at a key, or nothing.
func (m *pureMaster) prepare(key string, end int64, r *rand.Rand) {
	m.t.Helper()
	token := []any{"mine", "yours", "theirs"}[r.IntN(3)]
	switch r.IntN(9) {
	case 0: // nothing
	case 1:
		m.do("SET", key, token)
	case 2: // readers, of whom some may be over
		for _, name := range []any{"mine", "yours", "theirs"}[r.IntN(3):] {
			m.do("ZADD", key, end-int64(r.IntN(2))*2*pureFar, name)
		}
		m.do("ZADD", key, end, token)
		m.do("PEXPIREAT", key, end)
	case 3: // a zset that is no lock
		m.do("ZADD", key, end, token)
	case 4: // permits; several may end last, and some may be over
		fields := []any{"n", 4, "1", fmt.Sprintf("%d %s", end, token)}
		for i, holder := range []string{"yours", "theirs", "mine"}[r.IntN(3):] {
			fields = append(fields, fmt.Sprint(i+2), fmt.Sprintf("%d %s", end-[]int64{0, 1, 1000, 2 * pureFar}[r.IntN(4)], holder))
		}
		m.do(append([]any{"HSET", key}, fields...)...)
		m.do("PEXPIREAT", key, end)
	case 5: // a hash that is no lock
		m.do("HSET", key, "n", token)
	case 6:
		m.do("RPUSH", key, token)
	default:
		m.do("SET", key, token, "PXAT", end)
	}
}

// content is what stands at a key and when it ends; the latter only where the
// master tells it exactly.
func (m *pureMaster) content(key string) string {
	m.t.Helper()
	out := ""
	switch m.do("TYPE", key) {
	case "string":
		out = fmt.Sprint(m.do("GET", key))
	case "zset":
		out = fmt.Sprint(m.do("ZRANGE", key, 0, -1, "WITHSCORES"))
	case "hash":
		out = fmt.Sprint(m.do("HMGET", key, "n", "1", "2", "3", "4"))
	case "list":
		out = fmt.Sprint(m.do("LRANGE", key, 0, -1))
	}
	if m.exact {
		out += fmt.Sprint(" ends ", m.endOf(key))
	}
	return out
}
