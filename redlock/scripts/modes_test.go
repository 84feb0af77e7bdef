package scripts_test

// every branch of the scripts of readers, permits and
// several keys, on an embedded master, a real one, and one before Redis 7.0.

import (
	"fmt"
	"strings"
	"testing"

	"redlockd/redlock/engine"
)

// says runs a script on the key "lock" and wants its answer as it is printed.
func (m *pureMaster) says(what, want, file string, args ...any) {
	m.t.Helper()
	if got := fmt.Sprint(m.reply(file, args...)); got != want {
		m.t.Errorf("%s, %s: answered %s, want %s", file, what, got, want)
	}
}

// leaves is says for what must not change anything.
func (m *pureMaster) leaves(what, want, file string, args ...any) {
	m.t.Helper()
	before := m.whole()
	m.says(what, want, file, args...)
	if after := m.whole(); after != before {
		m.t.Errorf("%s, %s: the key is %s, was %s", file, what, after, before)
	}
}

// whole is everything that stands at the key.
func (m *pureMaster) whole() string {
	m.t.Helper()
	switch kind := m.do("TYPE", "lock"); kind {
	case "zset":
		return fmt.Sprint(m.do("ZRANGE", "lock", 0, -1, "WITHSCORES"), m.end())
	case "hash":
		return fmt.Sprint(m.do("HGETALL", "lock"), m.end())
	}
	return m.holds()
}

// readers makes the key a zset that ends when its last reader does.
func (m *pureMaster) readers(pairs ...any) {
	m.t.Helper()
	m.do("DEL", "lock")
	last := int64(0)
	for i := 0; i < len(pairs); i += 2 {
		m.do("ZADD", "lock", pairs[i+1], pairs[i])
		last = max(last, pairs[i+1].(int64))
	}
	m.do("PEXPIREAT", "lock", last)
}

// score of a reader, 0 for nobody.
func (m *pureMaster) score(token string) int64 {
	m.t.Helper()
	text, _ := m.do("ZSCORE", "lock", token).(string)
	var score float64
	_, _ = fmt.Sscan(text, &score)
	return int64(score)
}

func TestShareScript_EveryBranch(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end, now := m.pureEnd(), m.now()
		m.do("DEL", "lock")
		m.leaves("an E that is past", "0", "share", "mine", now-1)
		m.says("a free key", "1", "share", "mine", end)
		m.says("beside another", "1", "share", "other", end+80)
		m.says("beside a longer one", "1", "share", "third", end-80)
		if m.score("mine") != end || m.score("third") != end-80 || m.end() != end+80 {
			t.Errorf("%s, want every reader with its own end and the key with the last", m.whole())
		}
		m.says("a repeat", "2", "share", "mine", end+160)
		if m.score("mine") != end+164 || m.end() != end+164 {
			t.Errorf("%s, want the repeat in its own class of ends", m.whole())
		}
		m.says("a repeat for less", "2", "share", "mine", end)
		m.says("the same again", "2", "share", "mine", end+160)
		if m.score("mine") != end+164 {
			t.Errorf("%s, want nothing shortened", m.whole())
		}
		m.readers("gone", now-1, "mine", end)
		m.says("behind one whose time is over", "1", "share", "other", end)
		if m.score("gone") != 0 {
			t.Errorf("%s: one whose time is over is still there", m.whole())
		}
		m.put("other", end)
		m.leaves("another writes", "0", "share", "mine", end)
		m.put("mine", 0)
		m.leaves("its own for ever: not a lock of ours", "0", "share", "mine", end)
		m.permits(2, "1", end, "other")
		m.leaves("permits", "0", "share", "mine", end)
		m.foreignData(func(what string) { m.leaves(what, "-1", "share", "mine", end) })
	})
}

// A level of a reentrant lock is beside levels of its owner only, and ends with the last of them.
func TestShareScript_LevelsOfOneOwner(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		unique, end := engine.Token("aaaaaaaaaaaaaaaaaaaaaaaaaaa"), m.pureEnd()
		outer, inner, other := engine.LevelOf("owner", unique), engine.LevelOf("owner", unique[1:]+"b"), engine.LevelOf("other", unique)
		m.do("DEL", "lock")
		m.says("a free key", "1", "share", outer, end+80)
		m.says("an inner level for less", "1", "share", inner, end)
		if m.score(string(inner)) != end+80 || m.end() != end+80 {
			t.Errorf("%s, want the inner level as long as the outer one", m.whole())
		}
		for _, stranger := range []engine.Token{other, "owner", unique, "owner" + unique, "#" + unique} {
			m.leaves("beside levels of another owner", "0", "share", stranger, end)
			m.readers(string(stranger), end)
			m.leaves("beside a reader", "0", "share", outer, end)
			m.readers(string(outer), end, string(inner), end)
		}
		m.says("a repeat", "2", "share", inner, end+160)
		m.readers(string(other), m.now()-1, string(outer), end)
		m.says("behind another owner's level whose time is over", "1", "share", inner, end)
	})
}

func TestShareScript_TheWriterIsDowngradedAndKeepsItsTime(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		if !m.exact {
			return
		}
		end := m.pureEnd()
		for asked, want := range map[int64]int64{end + 80: end + 84, end - 80: end + 4, end: end + 4} {
			m.put("mine", end)
			m.leaves("the writer, nobody says which", fmt.Sprintf("[0 %d]", end), "share", "mine", asked, "")
			m.leaves("another writer's copy", fmt.Sprintf("[0 %d]", end), "share", "mine", asked, end-8)
			m.says("the writer", "3", "share", "mine", asked, end)
			if m.score("mine") != want || m.end() != want {
				t.Errorf("asked for %d: %s, want it until %d", asked, m.whole(), want)
			}
		}
	})
}

// Who becomes the writer again moves the end of its copy, also with several keys
// and for less: a step down that is late finds another copy than it names.
func TestMultiScript_AlwaysMovesTheEndOfTheWritersCopy(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		if !m.exact {
			return
		}
		end := m.pureEnd()
		m.put("mine", end+4)
		m.says("its own from before", "[1 1]", "multi", "mine", end, "0")
		if m.end() != end+5 {
			t.Errorf("the copy ends at %d, ended at %d before", m.end(), end+4)
		}
		m.leaves("a step down that names the end of before", fmt.Sprintf("[0 %d]", end+5), "share", "mine", end, end+4)
	})
}

// permits makes the key a hash: how many there are, then slot, end, token.
func (m *pureMaster) permits(n int, slots ...any) {
	m.t.Helper()
	m.do("DEL", "lock")
	m.do("HSET", "lock", "n", n)
	last := int64(0)
	for i := 0; i < len(slots); i += 3 {
		m.do("HSET", "lock", slots[i], fmt.Sprint(slots[i+1], " ", slots[i+2]))
		last = max(last, slots[i+1].(int64))
	}
	m.do("PEXPIREAT", "lock", last)
}

func TestAcquireScript_TheOnlyReaderBecomesTheWriter(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end, now := m.pureEnd(), m.now()
		m.readers("mine", end-80, "gone", now-5)
		m.says("the only reader", fmt.Sprintf("[1 %d]", end-80), "acquire", "mine", end)
		if m.holds() != fmt.Sprintf("string mine ends %d", end+2) {
			t.Errorf("%s", m.holds())
		}
		long := end + 5000
		m.readers("mine", long)
		m.says("the only reader, for less", fmt.Sprintf("[1 %d]", long), "acquire", "mine", end)
		if ends := m.end(); ends != long+2 {
			t.Errorf("it ends at %d, want %d", ends, long+2)
		}
		m.readers("mine", end, "other", end)
		m.leaves("beside another", "[0 2 1]", "acquire", "mine", end)
		m.readers("other", end)
		m.leaves("another alone", "[0 1 0]", "acquire", "mine", end)
		m.readers("gone", now-5, "late", now-1)
		if kind := m.do("TYPE", "lock"); kind == "none" { // the master was faster
			m.says("all of whose time is over", "1", "acquire", "mine", end)
		}
		m.permits(2, "1", end, "other")
		m.leaves("permits", "0", "acquire", "mine", end)
	})
}

func TestUnupgradeScript_TakesBackNothingButItsOwnUpgrade(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end := m.pureEnd()
		for _, score := range []int64{end - 80, end, end + 4, end + 85} {
			m.readers("mine", score)
			m.says("upgraded", fmt.Sprintf("[1 %d]", score), "acquire", "mine", end)
			m.says("a reader", "1", "unupgrade", "mine", end, score)
			if got := m.score("mine"); got != score {
				t.Errorf("%s, want the reader until %d", m.whole(), score)
			}
			m.leaves("told twice", "0", "unupgrade", "mine", end, score)
		}
		m.readers("mine", end-80)
		m.says("upgraded", fmt.Sprintf("[1 %d]", end-80), "acquire", "mine", end)
		m.says("a repeat", "2", "acquire", "mine", end)
		m.leaves("prolonged since", "0", "unupgrade", "mine", end, end-80)
		m.readers("mine", end)
		m.says("upgraded", fmt.Sprintf("[1 %d]", end), "acquire", "mine", end)
		m.says("a reader again", "3", "share", "mine", end, end+2)
		m.says("a writer again", fmt.Sprintf("[1 %d]", end+4), "acquire", "mine", end)
		m.leaves("an upgrade of after that", "0", "unupgrade", "mine", end, end)
		m.put("mine", end)
		m.leaves("what an attempt has created", "0", "unupgrade", "mine", end, end-80)
		m.put("other", end+2)
		m.leaves("another's", "0", "unupgrade", "mine", end, end-80)
		m.put("mine", 0)
		m.leaves("for ever", "0", "unupgrade", "mine", end, end-80)
		m.foreignData(func(what string) { m.leaves(what, "0", "unupgrade", "mine", end, end-80) })
	})
}

func TestPermitScript_EveryBranch(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end, now := m.pureEnd(), m.now()
		m.do("DEL", "lock")
		m.leaves("an E that is past", "[0]", "permit", "mine", now-1, 3, 2, "0")
		m.says("a free key", "1", "permit", "mine", end, 3, 2, "0")
		m.leaves("a slot that is taken", "[0 3 1]", "permit", "other", end+80, 3, 2, "0")
		m.says("another slot", "1", "permit", "other", end+80, 3, 3, "1")
		if m.end() != end+80 {
			t.Errorf("%s, want it until %d", m.whole(), end+80)
		}
		m.leaves("one slot left", "[0 1]", "permit", "third", end, 3, 2, "0")
		m.says("the last slot", "1", "permit", "third", end, 3, 1, "0")
		m.leaves("none left", "[0]", "permit", "fourth", end, 3, 2, "1")
		m.leaves("in another slot", "[2 3]", "permit", "other", end, 3, 2, "1")
		m.leaves("another number", "[3 3]", "permit", "fourth", end, 4, 4, "0")
		m.says("a repeat", "2", "permit", "mine", end+160, 3, 2, "1")
		if got := m.do("HGET", "lock", "2"); got != fmt.Sprintf("%d mine", end+164) || m.end() != end+164 {
			t.Errorf("%v, until %d", got, m.end())
		}
		m.says("a repeat for less", "2", "permit", "mine", end, 3, 2, "1")
		if got := m.do("HGET", "lock", "2"); got != fmt.Sprintf("%d mine", end+164) {
			t.Errorf("shortened: %v", got)
		}
		m.permits(2, "1", now-1, "gone", "2", end, "other")
		m.says("a slot whose time is over", "1", "permit", "mine", end, 2, 1, "0")
		m.permits(2, "1", end, "other", "2", now-1, "mine")
		m.leaves("its own slot's time is over", "[0 2]", "permit", "mine", end, 2, 1, "1")
		for _, writes := range []string{"mine", "other"} {
			m.put(writes, end)
			m.leaves("a writer", "[0]", "permit", "mine", end, 2, 1, "1")
		}
		m.readers("mine", end)
		m.leaves("readers", "[0]", "permit", "mine", end, 2, 1, "1")
		m.foreignData(func(what string) { m.leaves(what, "-1", "permit", "mine", end, 2, 1, "1") })
	})
}

func TestPermitScript_NamesFreeSlotsFromTheRequestedOneOn(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end := m.pureEnd()
		m.permits(1024, "1000", end, "other", "1001", end, "other2", "1024", end, "other3")
		said := m.reply("permit", "mine", end, 1024, 1000, "0").([]any)
		if len(said) != 33 || said[1] != int64(1002) || said[22] != int64(1023) || said[23] != int64(1) {
			t.Errorf("%d words: %v", len(said), said)
		}
	})
}

func TestExtendScript_HandlesReadersAndPermits(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end, now := m.pureEnd(), m.now()
		m.readers("mine", end, "other", end+80)
		m.says("a reader", "[1]", "extend", "mine", end+160)
		if m.score("mine") != end+164 || m.end() != end+164 {
			t.Error(m.whole())
		}
		m.says("a reader, for less", "[1]", "extend", "mine", end)
		if m.score("mine") != end+164 {
			t.Error(m.whole())
		}
		m.leaves("nobody", "0", "extend", "nobody", end)
		m.readers("mine", now-1, "other", end)
		m.leaves("a reader whose time is over", "0", "extend", "mine", end)
		m.permits(5, "3", end, "mine", "4", end+80, "other")
		m.says("a permit", "[1 3 5]", "extend", "mine", end+160)
		if got := m.do("HGET", "lock", "3"); got != fmt.Sprintf("%d mine", end+164) || m.end() != end+164 {
			t.Errorf("%v, until %d", got, m.end())
		}
		m.leaves("nobody's permit", "0", "extend", "nobody", end)
		m.permits(5, "3", now-1, "mine", "4", end, "other")
		m.leaves("a permit whose time is over", "0", "extend", "mine", end)
	})
}

func TestReleaseScript_HandlesReadersAndPermits(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end, now := m.pureEnd(), m.now()
		m.readers("mine", end+80, "other", end)
		m.leaves("another end", "0", "release", "mine", end-1, end+1)
		m.says("a reader", "1", "release", "mine", end+79, end+81)
		if m.score("mine") != 0 || m.end() != end {
			t.Error(m.whole())
		}
		m.leaves("told twice", "0", "release", "mine", "", "")
		m.says("the last reader", "1", "release", "other", "", "")
		if m.holds() != "none" {
			t.Error(m.whole())
		}
		m.readers("mine", now-1, "other", end)
		m.leaves("a reader whose time is over", "0", "release", "mine", "", "")
		m.readers("mine", end, "gone", now-5)
		m.says("the last reader beside one whose time is over", "1", "release", "mine", "", "")
		if m.holds() != "none" {
			t.Error(m.whole())
		}
		m.permits(3, "1", end+80, "mine", "2", end, "other", "3", now-1, "gone")
		m.leaves("another slot", "0", "release", "mine", "", "", "2")
		m.leaves("another end", "0", "release", "mine", end-1, end+1)
		m.says("a permit", "1", "release", "mine", end+79, end+81, "1")
		if got := fmt.Sprint(m.do("HKEYS", "lock")); strings.Contains(got, "1") || m.end() != end {
			t.Errorf("slots %s until %d, want %d", got, m.end(), end)
		}
		m.says("the last permit", "1", "release", "other", "", "")
		if m.holds() != "none" {
			t.Error(m.whole())
		}
	})
}

func TestMultiScripts_EveryBranch(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end, now := m.pureEnd(), m.now()
		keys := []string{"x", "lock", "y"}
		all := func(what, want, file string, args ...any) {
			t.Helper()
			if got := fmt.Sprint(m.replyOn(file, keys, args...)); got != want {
				t.Errorf("%s, %s: %s, want %s", file, what, got, want)
			}
		}
		none := func() {
			t.Helper()
			if got := fmt.Sprint(m.do("EXISTS", "x", "y")); got != "0" {
				t.Errorf("%s of the other keys exist", got)
			}
		}
		m.do("DEL", "x", "y", "lock")
		all("an E that is past", "[0 0]", "multi", "mine", now-1, "0")
		for _, reads := range []string{"0", "1"} {
			m.put("other", end)
			all("another writes", "[0 2]", "multi", "mine", end, reads)
			m.permits(2, "1", end, "mine")
			all("permits", "[0 2]", "multi", "mine", end, reads)
			m.foreignData(func(what string) {
				all(what, "[-1 2]", "multi", "mine", end, reads)
				all(what, "0", "multiextend", "mine", end)
			})
			none()
		}
		m.readers("mine", end)
		all("its own reader", "[0 2]", "multi", "mine", end, "0")
		m.put("mine", end)
		all("its own writer", "[0 2]", "multi", "mine", end, "1")
		none()
		all("one was its own", "[1 0 1 0]", "multi", "mine", end, "0")
		if got := fmt.Sprint(m.do("MGET", "x", "y")); got != "[mine mine]" {
			t.Error(got)
		}
		if m.exact && (m.end() != end+4 || m.endOf("x") != end) {
			t.Errorf("ends %d and %v, want only what was there in its own class", m.end(), m.endOf("x"))
		}
		all("held", "1", "multiextend", "mine", end+80)
		m.put("other", end)
		all("one is lost", "0", "multiextend", "mine", end+160)
		m.do("DEL", "x", "y")
		m.readers("other", end, "gone", now-1)
		all("readers", "[1 0 0 0]", "multi", "mine", end+80, "1")
		if m.score("gone") != 0 || m.end() != end+80 {
			t.Error(m.whole())
		}
		all("readers again", "[1 1 1 1]", "multi", "mine", end+160, "1")
		all("held by readers", "[1]", "multiextend", "mine", end+240)
		if m.score("mine") != end+244 || m.end() != end+244 {
			t.Error(m.whole())
		}
		m.put("mine", end)
		all("a writer among readers", "0", "multiextend", "mine", end+320)
		m.do("DEL", "x", "y")
	})
}

// An undo takes the slot of its own attempt, also if another one of the same
// token ends at the same millisecond.
func TestUndo_OfAPermitTakesItsOwnSlotOnly(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end := m.pureEnd()
		m.do("DEL", "lock")
		for _, slot := range []int{1, 2} {
			if got := fmt.Sprint(m.reply("permit", "mine", end, 2, slot, "0")); got != "1" {
				t.Fatalf("slot %d: %s", slot, got)
			}
		}
		if got := m.run("release", "mine", end-2, end+2, "2"); got != 1 {
			t.Error(got)
		}
		if got := fmt.Sprint(m.do("HKEYS", "lock")); strings.Contains(got, "2") || !strings.Contains(got, "1") {
			t.Errorf("slots %s are left, want the first", got)
		}
	})
}

// What prolongs all levels of an owner reads as many holders as a view shows.
func TestReentrant_AnOwnerHasAThousandLevels(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end := m.pureEnd()
		words := []any{"ZADD", "k"}
		for i := range 999 {
			words = append(words, end, fmt.Sprintf("owner-of-all#%027d", i))
		}
		m.do(words...)
		m.do("PEXPIREAT", "k", end)
		for i, want := range []any{int64(1), int64(0)} {
			if got := m.replyOn("share", []string{"k"}, fmt.Sprintf("owner-of-all#%027d", 1000+i), end, ""); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("level %d: %v, want %v", 1000+i, got, want)
			}
		}
	})
}
