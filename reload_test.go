// Tests of SIGHUP and of who gets in, on whole daemons.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// usersFile writes users who may lock everything and have their name for a password.
func usersFile(t *testing.T, path string, names ...string) {
	t.Helper()
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "[user.%s]\npassword-sha256 = \"%x\"\nkeys = [\"*\"]\ncommands = [\"lock\"]\n", name, sha256.Sum256([]byte(name)))
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProcess_ReadsTheUsersAgainOnSIGHUPAndKeepsConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.toml")
	usersFile(t, path, "anna", "bert")
	process, address := startProcess(t, "--users", path)
	anna, bert := dial(t, address), dial(t, address)
	for name, c := range map[string]*client{"anna": anna, "bert": bert} {
		if reply := c.ask(t, "PING"); reply != "-NOAUTH Authentication required." {
			t.Fatal(reply)
		}
		if reply := c.ask(t, "AUTH %s %s", name, name); reply != "+OK" {
			t.Fatal(reply)
		}
	}
	anna.lock(t, "invoices")

	usersFile(t, path, "anna", "carla")
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	log := process.Stderr.(*printed)
	log.awaits(t, "SIGHUP: users read again")
	if reply := bert.ask(t, "PING"); reply != "-NOAUTH user 'bert' was removed or disabled; this connection is closed" {
		t.Fatal(reply)
	}
	if rest, err := io.ReadAll(bert.replies); err != nil || len(rest) > 0 {
		t.Errorf("bert's connection is not closed: %q, %v", rest, err)
	}
	if reply := anna.ask(t, "DUNLOCK invoices"); reply != ":1" {
		t.Errorf("anna's connection did not stay as it was: %s", reply)
	}
	carla := dial(t, address)
	if reply := carla.ask(t, "AUTH carla carla"); reply != "+OK" {
		t.Error(reply)
	}

	if err := os.WriteFile(path, []byte("[user.anna]\nheld = -1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	log.awaits(t, "SIGHUP: users not read again") // a file that cannot be used changes nothing
	if reply := anna.ask(t, "PING"); reply != "+PONG" {
		t.Error(reply)
	}
	for login, want := range map[string]string{
		"anna anna": "+OK", "carla carla": "+OK", "bert bert": "-WRONGPASS invalid username-password pair or user is disabled.",
	} {
		if reply := dial(t, address).ask(t, "AUTH %s", login); reply != want {
			t.Errorf("AUTH %s after a reload that failed: %s, want %s", login, reply, want)
		}
	}
}

func TestProcess_WithAPasswordAnswersAsRedis(t *testing.T) {
	t.Setenv("REDLOCKD_REQUIREPASS", "S3CR3T")
	_, address := startProcess(t)
	c := dial(t, address)
	for _, step := range [][2]string{
		{"DLOCK a 1000", "-NOAUTH Authentication required."},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH S3CR3T", "+OK"},
	} {
		if reply := c.ask(t, "%s", step[0]); reply != step[1] {
			t.Errorf("%s: %s", step[0], reply)
		}
	}
	c.lock(t, "a")
	if reply := c.ask(t, "CONFIG GET requirepass"); reply != "*2" {
		t.Fatal(reply)
	}
	for _, want := range []string{"$11", "requirepass", "$3", "***"} {
		if line := c.line(t); line != want {
			t.Errorf("%q, want %q", line, want)
		}
	}
}
