package pool

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestReply_NumberReadsIntegersDigitsAndExactDoubles(t *testing.T) {
	for _, c := range []struct {
		reply Reply
		want  int64
		ok    bool
	}{
		{number(0), 0, true}, {number(math.MaxInt64), math.MaxInt64, true}, {number(math.MinInt64), math.MinInt64, true},
		{text("1700000000000000"), 1_700_000_000_000_000, true}, {text("-1"), -1, true},
		{text("1.7e15"), 1_700_000_000_000_000, true}, {text("9007199254740991"), 1<<53 - 1, true},
		{text("9223372036854775807"), math.MaxInt64, true}, {text("1.8003600000000000e+15"), 1_800_360_000_000_000, true},
		{text("9223372036854775808"), 0, false}, {text("9.1e15"), 0, false}, {text("-1.5"), 0, false},
		{text(""), 0, false}, {text("nan"), 0, false}, {text("inf"), 0, false}, {text("-inf"), 0, false}, {text("12 "), 0, false}, {text("ten"), 0, false},
		{Reply{}, 0, false}, {refusal("ERR"), 0, false}, {list(number(1)), 0, false},
	} {
		if got, ok := c.reply.Number(); got != c.want || ok != c.ok {
			t.Errorf("%+v: %d, %v, want %d, %v", c.reply, got, ok, c.want, c.ok)
		}
	}
}

func TestReply_TimeIsTwoNumbers(t *testing.T) {
	for _, c := range []struct {
		reply Reply
		us    int64
		ok    bool
	}{
		{list(text("1700000000"), text("123456")), 1_700_000_000_123_456, true},
		{list(number(1_700_000_000), number(0)), 1_700_000_000_000_000, true},
		{list(text("0"), text("999999")), 999_999, true},
		{list(text("1")), 0, false}, {list(), 0, false}, {Reply{}, 0, false}, {text("1"), 0, false}, {number(1), 0, false},
		{list(text("1"), text("x")), 0, false}, {list(text("x"), text("1")), 0, false}, {list(text("1"), Reply{}), 0, false},
		{list(number(1), number(2), number(3)), 0, false}, {list(list(), list()), 0, false}, {refusal("ERR"), 0, false},
		{Reply{Kind: ReplyString, Items: []Reply{number(1), number(2)}}, 0, false},
	} {
		us, ok := parseTime(c.reply)
		if ok != c.ok || ok && us != c.us {
			t.Errorf("%+v: %d, %v, want %d, %v", c.reply, us, ok, c.us, c.ok)
		}
	}
}

func TestReply_AMasterErrorBeginsWithAWholeWord(t *testing.T) {
	for _, c := range []struct {
		text, code string
		want       bool
	}{
		{"NOSCRIPT No matching script", "NOSCRIPT", true}, {"NOSCRIPT", "NOSCRIPT", true},
		{"NOSCRIPTS are here", "NOSCRIPT", false}, {"ERR NOSCRIPT", "NOSCRIPT", false}, {"", "NOSCRIPT", false},
	} {
		if got := MasterError(c.text).Begins(c.code); got != c.want {
			t.Errorf("%q begins with %q: %v", c.text, c.code, got)
		}
	}
	var fromMaster MasterError
	if r := failed(errCut); r.Kind != ReplyError || errors.As(r.Err, &fromMaster) {
		t.Errorf("a lost connection became %+v", r)
	}
}

// FuzzReply: a flush settles whatever a lying master answers, every operation
// is answered, and nothing that is not a good seal counts.
func FuzzReply(f *testing.F) {
	f.Add([]byte{2, 2, 'O', 'K', 2, 1, '5', 1, 0, 0, 7, 2, 2, 1, '1', 2, 1, '2'}, false)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, data []byte, beat bool) {
		s := newFlushStage()
		fl, op := &s.conn.flush, acquiring("key")
		fl.entries = []queueEntry{{op: op, props: op.plan, fence: 1}}
		fl.sealed, fl.beat, fl.readSettings, fl.raise = true, beat, beat, 1000
		fl.write()
		fl.replies = nil
		for range fl.commands {
			fl.replies = append(fl.replies, anyReply(&data, 0))
		}
		s.lane.finishFlush(s.conn)
		if len(op.answers[0]) != 1 {
			t.Fatalf("answered %d times", len(op.answers[0]))
		}
		if a := op.answers[0][0]; a.Seal.Good {
			score, ok := fl.replies[fl.sealAt].Number()
			_, isTime := parseTime(fl.replies[fl.timeAt])
			if !ok || !isTime || fl.replies[fl.sealAt+1].Err != nil || a.Seal.Old != score || a.Seal.Top < score {
				t.Fatalf("%+v under %+v", a.Seal, fl.replies[fl.sealAt:])
			}
		}
	})
}

func TestReply_MomentWritesNumbersAsDigits(t *testing.T) {
	var m SendContext
	for _, n := range []int64{0, 0, 7, 7, -3, math.MaxInt64, 0, 7} {
		if got := m.Decimal(n); got != strconv.FormatInt(n, 10) {
			t.Errorf("Decimal(%d) = %q", n, got)
		}
	}
	if s := m.Decimal(12); strings.TrimSpace(s) != "12" {
		t.Errorf("%q", s)
	}
}
