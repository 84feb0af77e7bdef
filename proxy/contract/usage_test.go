package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// calls are command lines that end by themselves.
var calls = []string{
	"help", "help check", "help lock", "help top", "hash-password --help",
	"serve", "redis://user:secret@host", "help me", "version now", "--nonsense", "--max-ttl", "-x", "word --embedded 3",
	"bootstrap", "bootstrap --fence-above", "bootstrap --fence-above=0", "bootstrap --aged", "bootstrap --aged a --force --masters a,b,c", "bootstrap --fence-above 9000000000000000000 --masters a,b,c",
	"check", "reconfigure", "reconfigure --force", "masters", "masters add", "masters add d=e:x", "masters remove c", "masters add d=e:1 --embedded 3", "slots", "slots move", "slots move 0-10 --to", "slots --help", "quarantine", "quarantine a", "quarantine a --embedded 3", "completion", "completion csh", "man now", "hash-password nonsense", "hash-password --sha256",
	"lock", "lock key", "lock key --", "lock --ttl 1 key -- true", "lock --ttl 30 key -- true", "lock --wait x key -- true", "lock --db x key -- true",
	"lock --on-lost maybe key -- true", "lock --grace 1h key -- true", "lock --connect ? key -- true", "lock --ca testdata/none key -- true", "lock --nonsense key -- true",
	"top", "top now", "top --connect=", "top --db -1", "top --ca testdata/none", "top --nonsense", "top --once --connect ?",
	"--embedded 4", "--embedded 3 --masters a,b,c", "--masters a,b", "--masters a,a,b", "--masters a=redis://u:p@h:0,b,c", "--config testdata/none",
	"--masters-file testdata/none", "--users testdata/none", "--tls-cert testdata/none", "--listen tls::1", "--requirepass x --users testdata/users.toml --tls-ca x",
	"--log-level error --listen 127.0.0.1:0 --script-class nonsense", "--log-level error --listen 127.0.0.1:0 --script-class a=b,c=d", "--otlp-endpoint ftp://h", "--otlp-sample 2", "--admin-listen tls:127.0.0.1:0", "--log-level loud --max-ttl 1ms",
	"--max-ttl 30", "--drain-timeout 1m30 --listen=,",
}

var optionName = regexp.MustCompile(`--[a-z][a-z-]+`)

// Help, and what a wrong command line is answered with: the calls above, and each
// option with a value that is none.
func playUsage(t *testing.T) {
	all := run(t, split(calls))
	seen := map[string]bool{"--help": true, "--version": true, "--force": true, "--fence-above": true, "--aged": true, "--performance": true}
	var wrong [][]string
	for _, name := range optionName.FindAllString(all[0].Stdout, -1) {
		if !seen[name] {
			seen[name] = true
			wrong = append(wrong, []string{"check", name + "=, ?"})
		}
	}
	if again := run(t, split([]string{"help check", "check --help"})); again[0].Stdout != again[1].Stdout || !strings.Contains(again[0].Stdout, "--performance") {
		t.Errorf("help of check shows %q and %q", again[0].Stdout, again[1].Stdout)
	}
	var text strings.Builder
	for _, u := range append(all, run(t, wrong)...) {
		fmt.Fprintf(&text, "$ redlockd %s\n", strings.Join(u.Args, " "))
		for line := range strings.Lines(u.Stdout + u.Stderr) {
			text.WriteString("  " + line)
		}
		fmt.Fprintf(&text, "  exit code %d\n", u.Code)
	}
	compare(t, "usage", text.String())
}

func split(lines []string) (all [][]string) {
	for _, line := range lines {
		all = append(all, strings.Fields(line))
	}
	return all
}

// run executes calls in one process of their own.
func run(t *testing.T, calls [][]string) []usage {
	t.Helper()
	in := make([]usage, len(calls))
	for i := range calls {
		in[i].Args = calls[i]
	}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = environ("usage")
	command.Stdin, command.Stderr = bytes.NewReader(text), t.Output()
	text, err = command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var out []usage
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}
