package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// told is what becomes of a program that is a shell script.
func told(t *testing.T, script string, passwords bool, environ ...string) outcome {
	t.Helper()
	out := outcome{run: run{library: "x", protocol: "3", command: []string{"sh", "-c", script}}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out.follow(ctx, options{patience: time.Minute}, &daemon{}, environ)
	out.judge(passwords)
	return out
}

const whole = `echo library 1.2.3; echo protocol 3; echo skip password the daemon has none
for s in connect ping dlock taken dunlock dextend dnextid error pipeline reconnect close; do echo ok $s; done; `

func TestStory_PassesWhenEveryStepIsReported(t *testing.T) {
	out := told(t, whole, false)
	if out.problem != "" || out.version != "1.2.3" || len(out.passed) != len(steps)-1 {
		t.Errorf("%+v", out)
	}
}

func TestStory_FailsForWhateverIsMissing(t *testing.T) {
	for _, c := range []struct{ name, script, problem string }{
		{"a step", strings.Replace(whole, "taken ", "", 1), "no word of step taken"},
		{"the version", strings.Replace(whole, "echo library 1.2.3;", "", 1), "which version"},
		{"the protocol", strings.Replace(whole, "protocol 3", "protocol 2", 1), "RESP2, wanted RESP3"},
		{"its exit status", whole + "exit 3", "exit status 3"},
		{"the story's words", whole + "echo hello", "not of the protocol"},
		{"success", "echo library 1.2.3; echo fail dlock nobody knows; exit 1", "dlock nobody knows"},
		{"something the driver can do", "echo wait rain", `waits for "rain"`},
		{"the program", "exec /nonexistent/program", "exit status 127"},
	} {
		if out := told(t, c.script, false); !strings.Contains(out.problem, c.problem) {
			t.Errorf("without %s: problem %q, wanted %q", c.name, out.problem, c.problem)
		}
	}
}

func TestStory_MayNotSkipThePasswordWhereThereIsOne(t *testing.T) {
	if out := told(t, whole, true); !strings.Contains(out.problem, "no word of step password") {
		t.Errorf("problem %q", out.problem)
	}
}

func TestStory_IsEndedWithAllItHasStartedWhenItsTimeIsUp(t *testing.T) {
	out := outcome{run: run{command: []string{"sh", "-c", "sleep 600 & sleep 600"}}}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	out.follow(ctx, options{patience: 50 * time.Millisecond}, &daemon{}, nil) // would last until both let go of the output
	if !strings.Contains(out.problem, "not done within 50ms") {
		t.Errorf("problem %q", out.problem)
	}
}

func TestStory_HidesTheDaemonsOptionsFromProgramsAndServers(t *testing.T) {
	t.Setenv("REDLOCKD_MASTERS", "someone's")
	out := told(t, `[ -z "$REDLOCKD_MASTERS" ] && [ "$REDLOCKD_ADDR" = here ] || exit 9; `+whole, false, "REDLOCKD_ADDR=here")
	if out.problem != "" {
		t.Errorf("problem %q", out.problem)
	}
}

func TestTable_NamesWhatWasNotPassed(t *testing.T) {
	out := outcome{run: run{library: "lib", as: "default"}, version: "1", protocol: "2", passed: []string{"connect"}, problem: "a|b\nc"}
	got := table([]outcome{out}, "stand")
	for _, wanted := range []string{"| lib | 1 | default RESP2 | 1 of 12, not: ping, password,", `**failed**: a\|b |`} {
		if !strings.Contains(got, wanted) {
			t.Errorf("no %q in\n%s", wanted, got)
		}
	}
}

// Modes of a library share a row only where nothing differs but the mode, and examples of a kind share one.
func TestTable_HasOneRowForWhatPassedTheSame(t *testing.T) {
	of := func(library, as, version string, passed ...string) outcome {
		return outcome{run: run{library: library, as: as, remark: "x", example: version == ""}, version: version, protocol: "3", passed: passed}
	}
	got := table([]outcome{
		of("a", "default", "1", "connect"), of("b", "default", "1", "connect"), of("a", "cluster", "1", "connect"), of("a", "tls", "1", "ping"), of("a", "default", "2", "connect"),
		of("a", "example", "", "granted"), of("b", "example", "", "granted"), of("b", "package", "", "granted"),
	}, "stand")
	for _, wanted := range []string{
		"| a | 1 | default RESP3, cluster RESP3 | 1 of 12, not: ping,", "| b | 1 | default RESP3 | 1 of", "| a | 1 | tls RESP3 | 1 of", "| a | 2 | default RESP3 | 1 of",
		"| a, b |  | example | 1 of", "| b |  | package | 1 of",
	} {
		if !strings.Contains(got, wanted) {
			t.Errorf("no %q in\n%s", wanted, got)
		}
	}
	if n := strings.Count(got, "\n| "); n != 7 {
		t.Errorf("%d lines, want a head and 6 rows:\n%s", n, got)
	}
}

// toldByLocks is told for a lock library.
func toldByLocks(t *testing.T, r run, script string) outcome {
	t.Helper()
	r.locks, r.command = true, []string{"sh", "-c", script}
	out := outcome{run: r}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out.follow(ctx, options{patience: time.Minute}, &daemon{}, nil)
	out.judge(false)
	return out
}

func TestLocks_MayLackOnlyWhatTheirRowSays(t *testing.T) {
	const script = "echo library 1; for s in acquire contention release expiry killed close; do echo ok $s; done"
	if out := toldByLocks(t, run{lacks: "extend"}, script); out.problem != "" {
		t.Errorf("problem %q", out.problem)
	}
	if out := toldByLocks(t, run{}, script); !strings.Contains(out.problem, "no word of step extend") {
		t.Errorf("problem %q", out.problem)
	}
}

func TestLocks_AreRefusedInTheWordsOfTheirRow(t *testing.T) {
	refused := func(text string) string { return "echo library 1; echo 'refused " + text + "'; echo ok close" }
	r := run{refusal: "ERR script 1 is not served: it"}
	if out := toldByLocks(t, r, refused("ERR script 1 is not served: it counts; pin it")); out.problem != "" {
		t.Errorf("problem %q", out.problem)
	}
	for _, script := range []string{refused("ERR script 2 is not served: it counts"), "echo library 1; echo ok close"} {
		if out := toldByLocks(t, r, script); out.problem == "" {
			t.Errorf("passes with %s", script)
		}
	}
	if out := toldByLocks(t, run{}, refused("ERR script 1 is not served: it counts")); out.problem == "" {
		t.Error("a library that should be served passes with a refusal")
	}
}

func TestTable_SaysWhatALibraryHasNotAndWhyItIsRefused(t *testing.T) {
	got := table([]outcome{
		{run: run{library: "a", locks: true, lacks: "extend"}, passed: []string{"acquire"}},
		{run: run{library: "b", locks: true, refusal: "ERR no"}, passed: refusedSteps},
	}, "stand")
	for _, wanted := range []string{"| 1 of 6, not: contention, release, expiry, killed, close | it has no extend |", "| 2 of 2 | refused by name: `ERR no…` |"} {
		if !strings.Contains(got, wanted) {
			t.Errorf("no %q in\n%s", wanted, got)
		}
	}
}

// toldByExample is told for an example, without a daemon.
func toldByExample(script string) outcome {
	out := outcome{run: run{example: true, prints: exampleLines}, passed: []string{"waited", "free"}}
	out.readExample(strings.NewReader(script), nil)
	out.judge(false)
	return out
}

func TestExample_PassesOnlyWithEveryLine(t *testing.T) {
	const lines = `granted fence 1795200558272421, validity 29697 ms
confirmed validity 29690 ms
update UPDATE invoices SET state = 'sent', fence = $1 WHERE id = 7 AND fence <= $1 with fence 1795200558272421
released 1
`
	if out := toldByExample(lines); out.problem != "" {
		t.Errorf("problem %q", out.problem)
	}
	for _, c := range []struct{ name, old, new, problem string }{
		{"a missing step", "released 1\n", "", "no word of step released"},
		{"a step in another place", "confirmed validity 29690 ms\n", "", "step confirmed: the line is"},
		{"a release of nothing", "released 1", "released 0", "step released: the line is"},
		{"another fence", "with fence 1795200558272421", "with fence 1795200558272420", "step update: fence 1795200558272420"},
		{"a statement that does not compare", " AND fence <= $1", "", "step update: the line is"},
		{"no validity", "29690", "0", "step confirmed: validity 0"},
		{"a validity above the ttl", "29697", "30001", "step granted: validity 30001"},
		{"a further line", "released 1\n", "released 1\nreleased 1\n", "a line after the last step"},
	} {
		if out := toldByExample(strings.Replace(lines, c.old, c.new, 1)); !strings.Contains(out.problem, c.problem) {
			t.Errorf("with %s: problem %q, wanted %q", c.name, out.problem, c.problem)
		}
	}
}

// A helper whose work goes on after its lock is lost prints no line, or another one.
func TestExample_MeetsWhatTheDriverDoesAfterALine(t *testing.T) {
	done := 0
	take := func(*daemon) error { done++; return nil }
	for _, c := range []struct {
		lines   string
		take    func(*daemon) error
		problem string
		done    int
	}{
		{"granted fence 1795200558272421\nlost\n", take, "", 1},
		{"granted fence 1795200558272421\nreleased\n", take, `step lost: the line is "released"`, 1},
		{"granted fence 1795200558272421\n", take, "no word of step lost", 1},
		{"lost\n", take, "step granted: the line is", 0},
		{"granted fence 1795200558272421\nlost\n", func(*daemon) error { return errors.New("no daemon") }, "step granted: no daemon", 0},
	} {
		done = 0
		prints := []exampleLine{{"granted", helperGranted, c.take}, {"lost", helperLost, nil}}
		out := outcome{run: run{example: true, prints: prints}, passed: []string{"waited", "free"}}
		out.readExample(strings.NewReader(c.lines), nil)
		out.judge(false)
		if (c.problem == "") != (out.problem == "") || !strings.Contains(out.problem, c.problem) || done != c.done {
			t.Errorf("%q: problem %q after %d deeds, wanted %q after %d", c.lines, out.problem, done, c.problem, c.done)
		}
	}
}

// The page shows every example, with a version that the last run of the table tested.
func TestExamples_AreOnThePageOfClients(t *testing.T) {
	page, err := os.ReadFile("../../../commands/CLIENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	results, err := os.ReadFile("../RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]string{
		"redis-py": "clients/python/redlockd_client/__init__.py", "node-redis": "clients/node/index.js", "go-redis": "clients/go/lock.go",
		"Jedis": "clients/java/src/main/java/redlockd/client/JedisLock.java",
	}
	for _, r := range exampleRuns() {
		if r.as != "example" && r.as != "example, asyncio" && r.as != "package" {
			continue // stands on the page of its subject
		}
		_, file, _ := strings.Cut(strings.TrimSuffix(r.remark, ")"), "(../../commands/")
		source := file
		if r.as == "package" {
			source = packages[r.library]
		}
		program, err := os.ReadFile("../../../commands/" + source)
		if err != nil {
			t.Error(err)
		}
		if limit := regexp.MustCompile(`HOLD["'], *(["']?[1-9][0-9_]+|hold\b|.*(?i:longest|ms\[2\]))`); !limit.Match(program) {
			t.Errorf("%s holds its lock without max-ms", file)
		}
		row := regexp.MustCompile(`(?m)^\| ` + r.library + `\b.*\(` + regexp.QuoteMeta(file) + `\) \| (\S+) \|$`).FindStringSubmatch(string(page))
		if row == nil {
			t.Errorf("commands/CLIENTS.md has no row for %s of %s", file, r.library)
		} else if tested := "| " + r.library + " | " + row[1] + " |"; !strings.Contains(string(results), tested) {
			t.Errorf("commands/CLIENTS.md has %s %s, which RESULTS.md has not", r.library, row[1])
		}
		if r.as != "example" {
			continue
		}
		_, section, found := strings.Cut(string(page), ": "+r.library+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, "- **Timeout**: ") || !strings.Contains(section, "- **HOLD**: ") {
			t.Errorf("commands/CLIENTS.md has no section for %s with its timeout and HOLD", r.library)
		}
		blocks := strings.Split(section, "```")
		for line := range strings.Lines(blocks[max(0, len(blocks)-2)]) {
			if words := strings.TrimSpace(line); strings.Contains(words, " ") && !strings.Contains(string(program), words+"\n") {
				t.Errorf("commands/CLIENTS.md shows a line that %s has not: %s", file, words)
			}
		}
	}
}

// Each recipe is on the page, with a program of its own, and no other is.
func TestRecipes_AreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../../commands/COOKBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`(?m)^## (\d+)\. `).Split(string(page), -1)
	if len(parts) != recipes+1 || len(recipeRuns()) != recipes {
		t.Fatalf("the page has %d recipes, and %d runs play %d", len(parts)-1, len(recipeRuns()), recipes)
	}
	for i, part := range parts[1:] {
		if n := strings.Count(part, "```python\n"); n != 1 {
			t.Errorf("recipe %d has %d programs, want one", i+1, n)
		}
		if strings.Count(part, `"DUNLOCK"`) != strings.Count(part, "!= 1:") {
			t.Errorf("recipe %d does not look at what DUNLOCK replies", i+1)
		}
	}
}

func TestRuns_HaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range runs() {
		if seen[r.name()] {
			t.Errorf("two runs are called %s", r.name())
		}
		seen[r.name()] = true
		if (r.recorded == "") == (len(r.command) == 0) {
			t.Errorf("%s has neither a program nor a transcript, or both", r.name())
		}
	}
}
