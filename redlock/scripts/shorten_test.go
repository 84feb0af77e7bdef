package scripts_test

import (
	"fmt"
	"testing"
)

func TestSwapScript_EveryBranch(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end, mine := m.pureEnd(), sha1Hex("mine")
		for _, c := range []struct {
			what, had   string
			asked       int64
			bytes       string
			value, may  string
			says, holds string
			wants       int64 // its end
		}{
			{"free", "", end, "", "mine", "", "[1 0 []]", "mine", end},
			{"free, too late", "", 1000, "", "mine", "", "0", "", 0},
			{"later", "mine", end + 100, "", "mine", "mine", "[1 1 []]", "mine", end + 104},
			{"earlier", "mine", end - 100, "", "mine", "mine", fmt.Sprintf("[1 1 [[1 %d %d %s]]]", end+4, end-96, mine), "mine", end + 4},
			{"at the same time", "mine", end - 4, "", "mine", "mine", fmt.Sprintf("[1 1 [[1 %d %d %s]]]", end+4, end, mine), "mine", end + 4},
			{"an end that has passed", "mine", 1000, "", "mine", "mine", fmt.Sprintf("[1 1 [[1 %d 1004 %s]]]", end+4, mine), "mine", end + 4},
			{"another's", "other", end + 100, "", "mine", "mine", "0", "other", end},
			{"its own, which may not be there", "mine", end + 100, "", "mine", "", "0", "mine", end},
			{"a former value", "old", end + 100, "", "mine", "old", "[1 1 []]", "mine", end + 106},
			{"a former value, earlier", "old", end - 100, "", "mine", "old", fmt.Sprintf("[1 1 [[1 %d %d %s]]]", end+6, end-94, mine), "mine", end + 6},
			{"an equal beginning", "mi: 1", end + 100, "2", "mi: 2", "mi: 3", "[1 1 []]", "mi: 2", end + 106},
			{"another beginning", "mo: 1", end + 100, "2", "mi: 2", "mi: 3", "0", "mo: 1", end},
		} {
			if !m.exact && c.asked != end {
				continue
			}
			m.do("DEL", "lock")
			if c.had != "" {
				m.put(c.had, end)
			}
			m.says(c.what, c.says, "swap", c.asked, "0", c.bytes, c.may, c.value)
			if got, _ := m.do("GET", "lock").(string); got != c.holds || m.exact && c.holds != "" && m.end() != c.wants {
				t.Errorf("%s: the key is %s, ends at %d, want %s at %d", c.what, got, m.end(), c.holds, c.wants)
			}
		}
		m.put("mine", 0)
		m.says("without an expiry", "0", "swap", end, "0", "", "mine", "mine")
		m.says("without an expiry, as a lock", "[1 1 []]", "swap", end, "1", "", "mine", "mine")
		if m.exact && m.end() != end+4 {
			t.Errorf("ends at %d", m.end())
		}
		m.says("none any more", "[1 1 []]", "swap", "", "1", "", "mine", "mine")
		if m.end() != -1 {
			t.Errorf("ends at %d, want never", m.end())
		}
		m.foreignData(func(what string) {
			before := m.whole()
			if got := m.run("swap", end, "0", "", "mine", "mine"); got == 1 || m.whole() != before {
				t.Errorf("%s: %d, the key is %s, was %s", what, got, m.whole(), before)
			}
		})
	})
}

func TestTrimScript_EveryBranch(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		if !m.exact {
			return
		}
		end, mine := m.pureEnd(), sha1Hex("mine")
		m.do("DEL", "lock")
		m.unchanged("free", 0, "trim", end, end-100, mine)
		m.put("other", end)
		m.unchanged("another's", 0, "trim", end, end-100, mine)
		m.foreignData(func(what string) { m.unchanged(what, 0, "trim", end, end-100, mine) })
		for _, by := range []int64{-1, 1, 2, 8} {
			m.put("mine", end+by)
			m.unchanged("it ends at another time", 0, "trim", end, end-100, mine)
		}
		m.put("mine", end)
		if got := m.run("trim", end, end-100, mine); got != 1 || m.end() != end-100 {
			t.Errorf("its own: %d, ends at %d", got, m.end())
		}
		m.unchanged("said twice", 0, "trim", end, end-100, mine)
		m.put("mine", end)
		if got := m.run("trim", end, 1000, mine); got != 1 || m.holds() != "none" {
			t.Errorf("an end that has passed: %d, %s", got, m.holds())
		}
	})
}

// An end that the client names moves no copy to an earlier one: trim.lua does that, for the end that
// is reported here.
func TestRetimeScript_EveryBranch(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		if !m.exact {
			return
		}
		end, mine := m.pureEnd()/8*8+4, sha1Hex("mine") // as a prolonged copy ends
		m.do("DEL", "lock")
		m.leaves("free", "0", "retime", "mine", end, "")
		m.put("other", end)
		m.leaves("another's", "0", "retime", "mine", end+80, "")
		m.do("DEL", "lock")
		m.do("ZADD", "lock", end, "mine")
		m.leaves("a reader's", "-1", "retime", "mine", end+80, "")
		m.do("DEL", "lock")
		m.put("mine", 0)
		m.leaves("foreign data", "-1", "retime", "mine", end, "0")
		m.leaves("without an expiry", fmt.Sprintf("[1 1 -1 %d]", end), "retime", "mine", end, "1")
		if got := m.run("trim", -1, end, mine); got != 1 || m.end() != end {
			t.Errorf("the end of one without: %d, ends at %d", got, m.end())
		}
		m.says("later", "[1]", "retime", "mine", end+1, "") // the next value = 4 mod 8
		if m.end() != end+8 {
			t.Errorf("ends at %d, want %d", m.end(), end+8)
		}
		m.says("as late", "[1]", "retime", "mine", end+8, "")
		if m.end() != end+9 {
			t.Errorf("ends at %d, want %d", m.end(), end+9)
		}
		m.says("earlier", fmt.Sprintf("[1 1 %d %d]", end+16, end-80), "retime", "mine", end-80, "")
		if m.end() != end+16 {
			t.Errorf("ends at %d, want %d", m.end(), end+16)
		}
		m.says("prolonged since", "1", "extend", "mine", end, "alone")
		m.unchanged("a trim from before", 0, "trim", end+16, end-80, mine)
	})
}

// Who holds the key on several masters prolongs it there in every case: a trim that
// is late finds another end.
func TestMultiExtendScript_AlwaysMovesTheEndOfAnExclusiveCopy(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		if !m.exact {
			return
		}
		end := m.pureEnd()
		m.put("mine", end+4)
		m.says("less than it has", "1", "multiextend", "mine", end)
		if m.end() != end+5 {
			t.Errorf("ends at %d, want %d", m.end(), end+5)
		}
		m.unchanged("a trim from before", 0, "trim", end+4, end-100, sha1Hex("mine"))
	})
}
