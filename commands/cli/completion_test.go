// Tests of the completion scripts and of the manual page.

package cli

import (
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlockd/configs"
)

func completionOf(t *testing.T, shell string) string {
	t.Helper()
	r := record()
	if err := r.Run(t.Context(), []string{"completion", shell}); err != nil {
		t.Fatal(err)
	}
	return r.out.String()
}

func TestCompletion_RefusesOtherShells(t *testing.T) {
	for _, line := range []string{"completion", "completion csh", "completion bash zsh"} {
		r := record()
		if err := r.Run(t.Context(), strings.Fields(line)); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "allowed: bash zsh fish") || Report(io.Discard, err) != ExitUsage {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestCompletion_HasEverySubcommandAndOption(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text := completionOf(t, shell)
		dashes := map[bool]string{true: "-l ", false: "--"}[shell == "fish"]
		for _, s := range subcommands {
			if !strings.Contains(text, s.word+")") && !strings.Contains(text, "-xa "+s.word+" ") {
				t.Errorf("%s: %s is missing", shell, s.word)
			}
			for _, o := range append(s.options, settings()...) {
				if !strings.Contains(text, dashes+o.Name+" ") {
					t.Errorf("%s: option %s is missing", shell, o.Name)
				}
			}
		}
	}
}

// The calls run in a real bash, as after the tabulator key.
func TestCompletion_OffersInBashWhatMayFollow(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	text := completionOf(t, "bash")
	check := exec.CommandContext(t.Context(), bash, "-n")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line, want := range map[string]string{
		"boo":                           "bootstrap",
		"--restart-guard ":              "strict off",
		"--restart-guard = o":           "off",
		"check --max-tt":                "--max-ttl",
		"reconfigure --for":             "--force",
		"masters r":                     "remove replace",
		"masters add d=e --for":         "--force",
		"check --for":                   "",
		"lock --wa":                     "--wait",
		"lock --max-tt":                 "",
		"lock --ca /no/such":            "",
		"lock k -- --wa":                "",
		"completion ":                   "bash zsh fish",
		"--masters-file /no/such":       "",
		"--max-ttl 5s --restart-guard ": "strict off",
		"version ":                      "",
		"hash-password --s":             "--sha256",
		"to":                            "top",
		"top --on":                      "--once",
	} {
		words := strings.Split("redlockd "+line, " ")
		command := exec.CommandContext(t.Context(), bash, append([]string{"-c", text + `COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _redlockd; echo "${COMPREPLY[*]}"`, "bash"}, words...)...)
		if out, err := command.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q: offers %q, %v, want %q", line, out, err, want)
		}
	}
}

func TestCompletion_OffersShellsInFish(t *testing.T) {
	if want := "complete -c redlockd -n '__fish_seen_subcommand_from completion'  -xa 'bash zsh fish' -d "; !strings.Contains(completionOf(t, "fish"), want) {
		t.Errorf("%q is missing", want)
	}
}

func TestManual_HasEverySubcommandAndOption(t *testing.T) {
	page := manual("redlockd v9")
	lines := strings.Split(page, "\n")
	has := func(name, argument string) {
		t.Helper()
		if want := ".B " + strings.TrimSpace(roff(name+" "+argument)); !slices.Contains(lines, want) {
			t.Errorf("the line %q is missing", want)
		}
	}
	for _, s := range subcommands {
		has(s.word, s.arguments)
		for _, o := range s.options {
			has("--"+o.Name, o.Argument)
		}
		if !strings.Contains(help(""), "\n  "+s.word+" ") {
			t.Errorf("--help does not name %s", s.word)
		}
	}
	for _, name := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(configs.Help(), -1) {
		if !strings.Contains(page, ".B "+roff(name)) {
			t.Errorf("%s of --help is missing", name)
		}
	}
	if !strings.Contains(page, `Default: 1m. Allowed: 10ms to 24h. Advice: choose the longest lease`) {
		t.Error("an option has no description:\n" + page)
	}
}

func TestManual_IsFreeOfRoffErrors(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff on this machine")
	}
	command := exec.CommandContext(t.Context(), groff, "-man", "-Tascii", "-ww", "-z")
	command.Stdin = strings.NewReader(manual(Build()))
	if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
