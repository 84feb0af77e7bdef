package wire

import (
	"errors"
	"fmt"
	"math"
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
		us, ok := ParseTime(c.reply)
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
	if r := Failed(errCut); r.Kind != ReplyError || errors.As(r.Err, &fromMaster) {
		t.Errorf("a lost connection became %+v", r)
	}
}

func TestReply_ReadsAFieldByItsWholeName(t *testing.T) {
	info := "# Server\r\nxrun_id:wrong\r\nrun_id:right\r\nrun_id_2:wrong\r\nempty:\r\nlast:a:b"
	for field, want := range map[string]string{"run_id": "right", "empty": "", "none": "", "last": "a:b", "run": ""} {
		if got := InfoField(info, field); got != want {
			t.Errorf("infoField(%q) = %q, want %q", field, got, want)
		}
	}
}

// answering is a Link that answers everything with these replies.
type answering []Reply

func (a answering) Exchange([]Command, []Reply) []Reply { return a }
func (answering) Close()                                {}

func TestAsk_TellsACutConnectionFromARefusal(t *testing.T) {
	ask := func(replies ...Reply) error {
		_, err := Ask(answering(replies), Words("GET", "a"), Words("GET", "b"))
		return err
	}
	wrapped := Reply{Kind: ReplyError, Err: fmt.Errorf("while reading: %w", errCut)}
	if err := ask(text("OK"), refusal("ERR no")); err != nil {
		t.Errorf("a refusal is taken for a cut connection: %v", err)
	}
	if err := ask(text("OK"), wrapped); !errors.Is(err, errCut) {
		t.Errorf("%v, want the connection's error", err)
	}
	for _, n := range []int{0, 1, 3} {
		if err := ask(make([]Reply, n)...); err == nil {
			t.Errorf("%d answers to 2 commands", n)
		}
	}
}

var errCut = errors.New("connection reset by the test")

func text(s string) Reply          { return Reply{Kind: ReplyString, Str: s} }
func number(n int64) Reply         { return Reply{Kind: ReplyInt, Int: n} }
func list(items ...Reply) Reply    { return Reply{Kind: ReplyArray, Items: items} }
func refusal(message string) Reply { return Reply{Kind: ReplyError, Err: MasterError(message)} }
