package daemon

// slots_test.go: redlockd slots, beside a daemon that serves both groups.

import (
	"strings"
	"testing"

	"redlockd/commands/cli"
)

// answers waits until a command has this answer; until then its slots move.
func (c *client) answers(t *testing.T, command, want string) {
	t.Helper()
	last := ""
	eventually(t, command+" answers "+want, func() bool {
		last = c.ask(t, "%s", command)
		if last != want && !strings.HasPrefix(last, "-TRYLATER") && !strings.HasPrefix(last, "-NOQUORUM") {
			t.Fatalf("%s: %s, want %s", command, last, want)
		}
		return last == want
	}, func() string { return last })
}

func TestSlots_MoveWhileADaemonServes(t *testing.T) {
	groups := twoGroups(t)
	path := mapFile(t, groups, 16383)
	bootstrapFile(t, path)
	o := operate(t, "--config", path)
	c := dial(t, o.port)
	key := keyOf(1, 0)
	c.answers(t, "DNEXTID "+key, ":1")
	c.answers(t, "DNEXTID "+key+" COUNT 99", ":2")
	_, before := c.granted(t, "DLOCK %s 5000 TOKEN its-token", key)
	show := func(words ...string) {
		t.Helper()
		code, output := typed(t, nil, "slots", "--config", path, "--listen", o.port) // the daemon of this option is read
		for _, word := range words {
			if code != cli.ExitOK || !strings.Contains(strings.Join(strings.Fields(output), " "), word) {
				t.Errorf("slots: code %d, want %q:\n%s", code, word, output)
			}
		}
	}
	show("0-16383 16384 g1 0 owned 0", "- 0 g2 0 has no slots -")
	move := func(ranges, to string, words ...string) {
		t.Helper()
		code, output := typed(t, nil, "slots", "move", ranges, "--to", to, "--config", path)
		for _, word := range words {
			if code != cli.ExitOK || !strings.Contains(output, word) {
				t.Fatalf("slots move %s --to %s: code %d, want %q:\n%s", ranges, to, code, word, output)
			}
		}
	}
	move("8192-16383", "g2", "slots 8192-16383 leave group g1 for group g2", "1 counters and 0 records of work", "slots 8192-16383 are in group g2")
	show("0-8191 8192 g1 1 owned 0", "8192-16383 8192 g2 2 owned 0", "group g1 has the slots all in the file")
	c.answers(t, "DNEXTID "+key+" COUNT 100", ":101")
	token, after := c.granted(t, "DLOCK %s 5000 WAIT 5000", key)
	if after <= before {
		t.Errorf("fence %d follows %d", after, before)
	}
	if n := len(strings.Fields(strings.Join(held(t, groups[1], key), " "))); n < 2 {
		t.Errorf("%d masters of g2 hold the key", n)
	}
	c.types(t, "DUNLOCK "+key+" "+token, ":1")
	move("8192-16383", "g2", "in force already")
	late := dial(t, serveHere(t, nil, "--config", path)) // its file is older than the move
	late.answers(t, "DNEXTID "+key, ":201")
	move("8192-16383", "g1", "slots 8192-16383 are in group g1")
	late.answers(t, "DNEXTID "+key, ":202")
	c.answers(t, "DNEXTID "+key, ":203")
	for args, want := range map[string]string{
		"slots move 0-10 --to g3":      `--to = g3: is none of the groups of the file; name one of g1, g2`,
		"slots move 0-99999 --to g2":   `"99999" is not a slot`,
		"slots move none --to g2":      "no slots to move",
		"slots move 0-10 --to g2 more": "has a word that belongs to no option",
	} {
		if code, output := typed(t, nil, append(strings.Fields(args), "--config", path)...); code != cli.ExitUsage || !strings.Contains(output, want) {
			t.Errorf("%s: code %d, want %q:\n%s", args, code, want, output)
		}
	}
	if code, output := typed(t, nil, "slots", "move", "0-10", "--to", "g2", "--masters", listOf(groups[0]), "--group", "g1", "--databases", "2", "--max-ttl", "5s", "--max-keep", "5s"); code != cli.ExitRuntime || !strings.Contains(output, "there is one group of masters") {
		t.Errorf("code %d:\n%s", code, output)
	}
}
