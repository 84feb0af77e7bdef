package commands_test

import (
	"strconv"
	"strings"
	"testing"

	"redlockd/commands"
)

func TestCOMMAND_InfoHasTheTenElementsOfRedis7(t *testing.T) {
	newConversation(t).transcript(`
		> COMMAND INFO dlock PING nope client|id client|nope
		< [["dlock" :-3 [+write +fast] :1 :1 :1 [+@lock] [] [{"flags" [+RW +access +update] "begin_search" {"type" "index" "spec" {"index" :1}} "find_keys" {"type" "range" "spec" {"lastkey" :0 "keystep" :1 "limit" :0}}}] []] ["ping" :-1 [+loading +stale +fast] :0 :0 :0 [+@connection] [] [] []] nil ["client|id" :2 [+loading +stale +fast] :0 :0 :0 [+@connection] [] [] []] nil]
	`)
}

func TestCOMMAND_AllCountAndListAgree(t *testing.T) {
	c := newConversation(t)
	n := len(c.table.Rows())
	for _, line := range []string{"COMMAND", "COMMAND INFO", "COMMAND LIST"} {
		r := c.start(strings.Fields(line)...).read(t)
		if r.Kind != commands.KindArray || len(r.Items) != n {
			t.Errorf("%s has %d items, want %d", line, len(r.Items), n)
		}
	}
	if got := c.say("COMMAND COUNT"); got != ":"+strconv.Itoa(n) {
		t.Error(got)
	}
	if got := c.say("COMMAND LIST"); !strings.HasPrefix(got, `["dlock" "dunlock" "dunlockall" "dextend" "dmlock" "dmunlock" "dmextend" "dnextid"`) {
		t.Error(got)
	}
}

func TestCOMMAND_DocsDescribeArguments(t *testing.T) {
	newConversation(t).transcript(`
		> COMMAND DOCS dextend nope
		< {"dextend" {"summary" "Makes a lock last at least ttl milliseconds from now: its validity, or nil if the token does not hold it any more." "since" "0.1.0" "group" "lock" "arguments" [{"name" "key" "type" "key" "key_spec_index" :0} {"name" "token" "type" "string"} {"name" "ttl" "type" "integer"} {"name" "ms" "type" "integer" "token" "DELAY" "flags" [+optional]}]}}
		> COMMAND DOCS config
		< {"config" {"summary" "Shows the options of this daemon." "since" "0.1.0" "group" "connection" "subcommands" {"config|get" {"summary" "Options whose names match the patterns, with their values." "since" "0.1.0" "group" "info" "arguments" [{"name" "parameter" "type" "string" "flags" [+multiple]}]} "config|help" {"summary" "Lists the subcommands." "since" "0.1.0" "group" "connection"}}}}
		> COMMAND DOCS client|no-evict
		< {"client|no-evict" {"summary" "Accepted: nothing is ever evicted." "since" "0.1.0" "group" "connection" "arguments" [{"name" "enabled" "type" "oneof" "arguments" [{"name" "on" "type" "pure-token" "token" "ON"} {"name" "off" "type" "pure-token" "token" "OFF"}]}]}}
		> COMMAND DOCS nope
		< {}
	`)
}

// redis-cli ends its process when it does not expect a shape.
func TestCOMMAND_DocsHaveTheShapesThatClientsInsistOn(t *testing.T) {
	c := newConversation(t)
	all := c.start("COMMAND", "DOCS").read(t)
	if len(all.Items) != 2*len(c.table.Rows()) {
		t.Errorf("%d items", len(all.Items))
	}
	checkDocs(t, all)
}

func checkDocs(t *testing.T, r commands.Reply) {
	t.Helper()
	if r.Kind != commands.KindMap || len(r.Items)%2 != 0 {
		t.Fatalf("not a map: %s", show(r))
	}
	for i := 0; i < len(r.Items); i += 2 {
		if r.Items[i].Kind != commands.KindBulk {
			t.Fatalf("a key that is not a string: %s", show(r.Items[i]))
		}
		checkFields(t, r.Items[i].Text, r.Items[i+1])
	}
}

// checkFields checks the map of one command or one argument.
func checkFields(t *testing.T, of string, r commands.Reply) {
	t.Helper()
	if r.Kind != commands.KindMap || len(r.Items)%2 != 0 {
		t.Fatalf("%s is not a map: %s", of, show(r))
	}
	for i := 0; i < len(r.Items); i += 2 {
		name, value := r.Items[i], r.Items[i+1]
		want := commands.KindBulk
		switch name.Text {
		case "key_spec_index":
			want = commands.KindInt
		case "flags", "arguments":
			want = commands.KindArray
		case "subcommands":
			want = commands.KindMap
		}
		if name.Kind != commands.KindBulk || value.Kind != want {
			t.Fatalf("%s: field %s is %s", of, show(name), show(value))
		}
		for _, item := range value.Items {
			switch name.Text {
			case "flags":
				if item.Kind != commands.KindSimple {
					t.Errorf("%s: flag %s", of, show(item))
				}
			case "arguments":
				checkFields(t, of, item)
			}
		}
		if name.Text == "subcommands" {
			checkDocs(t, value)
		}
	}
}

// A client that sends COMMAND again and again, and reads nothing, makes the daemon build nothing.
func TestCOMMAND_DescriptionsAreMadeOnceForAllClients(t *testing.T) {
	table := newTable(commands.Deps{})
	ask := func(words ...string) commands.Reply {
		sink := &keptReply{}
		table.Dispatch(&commands.Call{Args: words, Client: &commands.Client{Proto: 2}, Completer: sink})
		return sink.reply
	}
	for _, words := range [][]string{{"COMMAND"}, {"COMMAND", "INFO", "dlock"}, {"COMMAND", "DOCS"}, {"COMMAND", "DOCS", "x", "client|list"}} {
		first, second := ask(words...), ask(words...)
		last := len(first.Items) - 1
		if last < 0 || len(first.Items[last].Items) == 0 || &first.Items[last].Items[0] != &second.Items[last].Items[0] {
			t.Errorf("%q: two clients are answered with two descriptions", words)
		}
	}
}

// keptReply is a sink for one reply that is given at once.
type keptReply struct{ reply commands.Reply }

func (k *keptReply) Complete(r commands.Reply)                 { k.reply = r }
func (k *keptReply) CompleteDeferred(l commands.DeferredReply) { k.reply = l.Reply() }

// A client that requests them all and reads none keeps no copies in memory.
func TestCOMMAND_ClientsShareTheRepliesAboutAllCommands(t *testing.T) {
	table := newTable(commands.Deps{})
	for _, words := range [][]string{{"COMMAND"}, {"COMMAND", "DOCS"}, {"COMMAND", "INFO"}, {"COMMAND", "LIST"}} {
		var items [2]*commands.Reply
		for i := range items {
			sink := &keptReply{}
			table.Dispatch(&commands.Call{Args: words, Client: &commands.Client{Proto: 2}, Completer: sink})
			items[i] = &sink.reply.Items[0]
		}
		if items[0] != items[1] {
			t.Errorf("%q: each reply is built anew", words)
		}
	}
}
