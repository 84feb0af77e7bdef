package commands_test

// keyspec_test.go: where names stand in a call, compared with a redis-server.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/pool/faulty"
)

func TestCOMMAND_GetKeysFindsTheNamesOfEveryCommand(t *testing.T) {
	newConversation(t).transcript(`
		> COMMAND GETKEYS dlock a 1000 WAIT 5 TOKEN b
		< ["a"]
		> COMMAND GETKEYS DMLOCK 1000 2 a b TOKEN c
		< ["a" "b"]
		> COMMAND GETKEYS DMUNLOCK token 1 a
		< ["a"]
		> COMMAND GETKEYS DMEXTEND token 1000 2 a b
		< ["a" "b"]
		> COMMAND GETKEYS DIDS ids
		< ["ids"]
		> COMMAND GETKEYS DIDS DEL ids CONFIRM 7
		< ["ids"]
		> COMMAND GETKEYS MSETEX 2 a 1 b 2 NX
		< ["a" "b"]
		> COMMAND GETKEYS BLPOP lock-signal:a 0
		< ["lock-signal:a"]
		> COMMAND GETKEYSANDFLAGS DUNLOCK a token
		< [["a" [+RW +access +update]]]
		> COMMAND GETKEYSANDFLAGS DINFO a
		< [["a" [+RO +access]]]
		> COMMAND GETKEYS DMLOCK 1000 0 a b
		< -ERR Invalid arguments specified for command
		> COMMAND GETKEYS DMLOCK 1000 3 a b
		< -ERR Invalid arguments specified for command
		> COMMAND GETKEYS DMLOCK 1000 9223372036854775808 a b
		< -ERR Invalid arguments specified for command
	`)
}

func TestCOMMAND_EveryNameHasASpecification(t *testing.T) {
	every(newTable(commands.Deps{}), func(row *commands.Command) {
		named := (strings.Contains(row.Syntax, "key") || strings.Contains(row.Syntax, "name")) && row.Category != "connection" && row.Category != "info"
		entry := ask(t, row.Full)
		if specified := len(entry.Items[8].Items) == 1; specified != named {
			t.Errorf("%s: a key specification: %t", row.Syntax, specified)
		}
	})
}

// ask is the entry of COMMAND INFO for a command.
func ask(t *testing.T, name string) commands.Reply {
	t.Helper()
	return newConversation(t).start("COMMAND", "INFO", name).read(t).Items[0]
}

// What both have must be at the same place in both, or a client of a cluster takes it to the
// wrong node.
func TestCOMMAND_AgreesWithRedisAboutNames(t *testing.T) {
	server := faulty.Start(t)
	own := map[string]string{
		"blpop": "waits for one lock",
	}
	every(newTable(commands.Deps{}), func(row *commands.Command) {
		reply, err := server.Do("COMMAND", "INFO", row.Full)
		if err != nil {
			t.Fatal(err)
		}
		theirs := reply.([]any)
		if theirs[0] == nil || own[row.Full] != "" {
			return
		}
		their, our := theirs[0].([]any), ask(t, row.Full)
		for i, what := range map[int]string{3: "first key", 4: "last key", 5: "step"} {
			if fmt.Sprint(their[i]) != fmt.Sprint(our.Items[i].Int) {
				t.Errorf("%s: %s %v, want %v", row.Full, what, our.Items[i].Int, their[i])
			}
		}
		if movable := slices.Contains(plain(our.Items[2]).([]any), any("movablekeys")); movable != slices.Contains(their[2].([]any), any("movablekeys")) {
			t.Errorf("%s: movablekeys %t", row.Full, movable)
		}
		ourSpecs, theirSpecs := plain(our.Items[8]).([]any), their[8].([]any)
		if len(ourSpecs) != len(theirSpecs) {
			t.Errorf("%s: %d specifications, want %d", row.Full, len(ourSpecs), len(theirSpecs))
			return
		}
		for i := range ourSpecs { // without the notes and flags, which come first
			ours, them := ourSpecs[i].([]any), theirSpecs[i].([]any)
			if got, want := fmt.Sprint(ours[len(ours)-4:]), fmt.Sprint(them[len(them)-4:]); got != want {
				t.Errorf("%s: %s, want %s", row.Full, got, want)
			}
		}
	})
	for _, call := range []string{"SET a b", "EXISTS a b", "EVAL x 2 a b c", "EVAL x 0 a", "EVAL x 3 a", "EVAL x y a", "EVALSHA x 1 a", "DEL", "PING", "nope a", "TIME", "WATCH a b", "SCRIPT LOAD x", "SETNX a"} {
		words, args := strings.Fields("COMMAND GETKEYS "+call), []any(nil)
		for _, word := range words {
			args = append(args, word)
		}
		reply, err := server.Do(args...)
		want := fmt.Sprint(reply)
		if err != nil {
			want = err.Error()
		}
		if got := fmt.Sprint(plain(newConversation(t).start(words...).read(t))); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}

// plain is a reply as RESP2 has it, in Go's values.
func plain(r commands.Reply) any {
	switch r.Kind {
	case commands.KindArray, commands.KindMap:
		items := make([]any, len(r.Items))
		for i := range r.Items {
			items[i] = plain(r.Items[i])
		}
		return items
	case commands.KindInt:
		return r.Int
	}
	return r.Text
}
