package proxy

import (
	"math"
	"strings"
	"testing"

	"redlockd/commands"
)

func TestEncode_WritesEachKindInBothProtocols(t *testing.T) {
	pair := []commands.Reply{commands.Bulk("k"), commands.Int(-1)}
	for _, row := range []struct {
		name         string
		reply        commands.Reply
		resp2, resp3 string
	}{
		{"nil", commands.Nil, "$-1\r\n", "_\r\n"},
		{"nil of a list", commands.NilArray, "*-1\r\n", "_\r\n"},
		{"simple", commands.OK, "+OK\r\n", "+OK\r\n"},
		{"error", commands.Error("ERR", "no"), "-ERR no\r\n", "-ERR no\r\n"},
		{"integer", commands.Int(math.MinInt64), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
		{"bulk", commands.Bulk("a\r\n\x00"), "$4\r\na\r\n\x00\r\n", "$4\r\na\r\n\x00\r\n"},
		{"empty bulk", commands.Bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"},
		{"array", commands.Array(pair...), "*2\r\n$1\r\nk\r\n:-1\r\n", "*2\r\n$1\r\nk\r\n:-1\r\n"},
		{"empty array", commands.Array(), "*0\r\n", "*0\r\n"},
		{"nested", commands.Array(commands.Array(commands.Nil), commands.Nil), "*2\r\n*1\r\n$-1\r\n$-1\r\n", "*2\r\n*1\r\n_\r\n_\r\n"},
		{"map", commands.Map(pair...), "*2\r\n$1\r\nk\r\n:-1\r\n", "%1\r\n$1\r\nk\r\n:-1\r\n"},
		{"odd map", commands.Map(commands.Bulk("k")), "*2\r\n$1\r\nk\r\n$-1\r\n", "%1\r\n$1\r\nk\r\n_\r\n"},
		{"push", commands.Reply{Kind: commands.KindPush, Items: pair}, "*2\r\n$1\r\nk\r\n:-1\r\n", ">2\r\n$1\r\nk\r\n:-1\r\n"},
	} {
		if got := string(appendReply(nil, row.reply, 2)); got != row.resp2 {
			t.Errorf("%s in RESP2: got %q, want %q", row.name, got, row.resp2)
		}
		if got := string(appendReply(nil, row.reply, 3)); got != row.resp3 {
			t.Errorf("%s in RESP3: got %q, want %q", row.name, got, row.resp3)
		}
		if got, size := replySize(&row.reply), max(len(row.resp2), len(row.resp3)); got < size {
			t.Errorf("%s: estimated at %d bytes, took %d", row.name, got, size)
		}
	}
}

func TestEncode_KeepsLinesOneLineAndTerminalsSafe(t *testing.T) {
	if got := string(appendReply(nil, commands.Simple("a\r\n+b"), 2)); got != "+a  +b\r\n" {
		t.Errorf("simple: got %q", got)
	}
	got := string(appendReply(nil, commands.Error("ERR", "x\r\n-y \x1b[2J \x9b \xff \u009b \x00\x7f é … 锁"), 2))
	if want := "-ERR x  -y ?[2J ? ? ? ?? é … 锁\r\n"; got != want {
		t.Errorf("error: got %q, want %q", got, want)
	}
}

func TestEncode_AllocatesNothing(t *testing.T) {
	grant := commands.Array(commands.Bulk(strings.Repeat("t", 27)), commands.Int(29_698), commands.Int(1<<50))
	buffer := make([]byte, 0, 1024)
	for name, reply := range map[string]commands.Reply{
		"integer": commands.Int(math.MaxInt64), "bulk": commands.Bulk("token"), "simple": commands.OK,
		"nil": commands.Nil, "grant": grant, "error": commands.Error("ERR", "no\x1b"),
	} {
		for proto := 2; proto <= 3; proto++ {
			if n := testing.AllocsPerRun(100, func() { buffer = appendReply(buffer[:0], reply, proto) }); n != 0 {
				t.Errorf("%s in RESP%d: %v allocations, want none", name, proto, n)
			}
		}
	}
}
