package sim

// thrifty_test.go: the study of THRIFTY.md. It is the product with another way to send
// requests, built in as the mutants are, so nothing of it is in the product.

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

// thriftyFiles are what the study adds, by the file that it is.
var thriftyFiles = map[string]string{
	"pool/thrifty.go":                      "pool.go",
	"redlock/engine/thrifty.go":            "engine.go",
	"redlock/lease/thrifty.go":             "lease.go",
	"redlock/sim/thriftyworlds_test.go":    "play.go",
	"redlock/sim/thriftyscenarios_test.go": "scenarios.go",
}

// thriftyChanges are what it changes.
var thriftyChanges = []mutants.Change{
	{File: "pool/options.go", Old: "type Options struct {\n", New: "type Options struct {\n\tOrdinary bool\n"},
	{File: "pool/group.go", Old: "\t\tfor _, l := range g.lanes {\n\t\t\tif err := l.queueLocked(e)", New: "\t\tfirst := g.firstLanesLocked(op)\n\t\tfor _, l := range g.lanes {\n\t\t\tif first&(1<<l.index) == 0 {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tif err := l.queueLocked(e)"},
	{File: "redlock/engine/engine.go", Old: "\treturn &Engine{\n", New: "\tone := &Engine{\n"},
	{File: "redlock/engine/engine.go", Old: "\t}, texts, nil\n", New: "\t}\n\tEveryone = append(Everyone, one)\n\treturn one, texts, nil\n"},
	{File: "redlock/engine/ballot.go", Old: "\tfencing   *quorum.Fencing\n}\n", New: "\tfencing   *quorum.Fencing\n\tthrift    thrift\n}\n"},
	{File: "redlock/engine/ballot.go", Old: "\tdefault:\n\t\tb.question.Undecided()\n", New: "\tdefault:\n\t\tb.hedge()\n\t\tb.question.Undecided()\n"},
	{File: "redlock/lease/acquire.go", Old: "\tend = quorum.Expiry(m.Time, request.TTL+request.Delay, ", New: "\tspent, stop := a.later(m.Lane, m.Now)\n\tif stop {\n\t\treturn 0, false\n\t}\n\tend = quorum.Expiry(m.Time, request.TTL+request.Delay-spent, "},
	{File: "redlock/lease/acquire.go", Old: ", copies: a.lanesWithCopy() ", New: ", made: a.maker(), copies: a.lanesWithCopy() "},
	{File: "redlock/lease/acquire.go", Old: "\tl.engine.Counts.Acquired.Add(1)\n", New: "\tl.engine.Counts.Acquired.Add(1)\n\ta.completeSoon()\n"},
	{File: "redlock/lease/acquire.go", Old: "\tl.engine.Leave()\n\tc.done(g, err)\n", New: "\tl.engine.Leave()\n\tc.study(err)\n\tc.done(g, err)\n"},
	{File: "redlock/lease/records.go", Old: "\tnumber uint64\n}\n", New: "\tnumber uint64\n\tmade   *lockBallot\n}\n"},
	{File: "redlock/lease/release.go", Old: "\tdone   UnlockDone\n}\n", New: "\tdone   UnlockDone\n\tfirst  uint16\n}\n"},
	{File: "redlock/lease/release.go", Old: "\tr.ballot.Ask(l.engine, b, ", New: "\tif r.scope == nil {\n\t\tr.first = l.firstLanes(known)\n\t}\n\tr.ballot.Ask(l.engine, b, "},
	{File: "redlock/lease/release.go", Old: "\tr.leases.engine.Leave()\n", New: "\tr.study()\n\tr.leases.engine.Leave()\n"},
	{File: "redlock/lease/extend.go", Old: "(g Grant, err error) {\n\tif err != nil {\n", New: "(g Grant, err error) {\n\te.study(err)\n\tif err != nil {\n"},
	{File: "redlock/sim/link.go", Old: "\t\tw.commands++\n", New: "\t\tw.commands++\n\t\tpool.CountCommand(c)\n"},
	{File: "redlock/sim/daemon.go", Old: "\t\tMaxTTL: s.MaxTTL,", New: "\t\tOrdinary: pool.Thrifty.Mixed && d.index%2 == 1,\n\t\tMaxTTL: s.MaxTTL,"},
}

// thriftyTexts are the files of the product as the study has them.
func thriftyTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, c := range thriftyChanges {
		if texts[c.File] == "" {
			texts[c.File] = source(t, c.File)
		}
		if n := strings.Count(texts[c.File], c.Old); n != 1 {
			t.Fatalf("%s has the text of the study %d times, want once:\n%s", c.File, n, c.Old)
		}
		texts[c.File] = strings.Replace(texts[c.File], c.Old, c.New, 1)
	}
	for file, text := range thriftyFiles {
		texts[file] = source(t, "redlock/sim/testdata/thrifty/"+text)
	}
	return texts
}

// thriftyProgram builds the test program of this package with the study in it.
func thriftyProgram(t *testing.T, texts map[string]string) (program string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, text := range texts {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "thrifty")
	if output, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the study: %v\n%s", err, output)
	}
	return program
}

// thriftyVariants are what is compared.
var thriftyVariants = []struct{ name, words string }{
	{"ordinary", ""},
	{"thrifty", "choice=key hedge=2ms complete=20ms wait"},
	{"without a timer", "choice=key complete=20ms wait"},
	{"at each refusal", "choice=key hedge=2ms complete=20ms"},
	{"never completed", "choice=key hedge=2ms wait"},
	{"releases to all", "choice=key hedge=2ms complete=20ms wait release-all"},
	{"by time", "choice=time hedge=2ms complete=20ms wait"},
	{"mixed fleet", "choice=time hedge=2ms complete=20ms wait all mixed"},
	{"all modes", "choice=time hedge=2ms complete=20ms wait all"},
	{"control", "choice=key hedge=2ms complete=20ms wait uncalled"},
}

// TestThrifty_TheStudyFitsTheProduct plays THRIFTY_WORLDS worlds of each scenario in SIM_ONLY, or of
// the study's own, for each variant whose name begins with THRIFTY_ONLY. It prints what THRIFTY.md shows.
func TestThrifty_TheStudyFitsTheProduct(t *testing.T) {
	texts := thriftyTexts(t)
	worlds := os.Getenv("THRIFTY_WORLDS")
	if worlds == "" && testing.Short() {
		return // the build takes seconds
	}
	program := thriftyProgram(t, texts)
	if worlds == "" {
		return
	}
	var out strings.Builder
	for _, v := range thriftyVariants {
		if !strings.HasPrefix(v.name, os.Getenv("THRIFTY_ONLY")) {
			continue
		}
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestThriftyWorlds$", "-test.timeout", "30m")
		cmd.Env = append(os.Environ(), "THRIFTY="+v.words, "SIM_WORLDS="+worlds)
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", v.name, err, output)
		}
		writeThrifty(&out, v.name, string(output))
	}
	t.Logf("\n%s", out.String())
}

// worldCounts are what a world counted; testdata/thrifty/play.go prints them.
type worldCounts struct {
	Scenario  string
	Violation string
	Counts    map[string]int64
	Spans     map[string][]time.Duration // acquire, release; without the client's way
}

// writeThrifty adds the rows of one variant: its scenarios, and all of them.
func writeThrifty(out *strings.Builder, variant, output string) {
	fmt.Fprintf(out, "\n%s\n| scenario | worlds, executions, violations | granted, held, NOQUORUM | key commands, seals, second seals a grant | splits, undone | acquire p50, p99, p99.9 ms | release p99 ms | lease time with a bare quorum, less | extended, NOQUORUM, repaired | asked the rest: timer, refusal, fault, completion | after a death: extended first, second |\n", variant)
	sums := map[string]*worldCounts{}
	for line := range strings.SplitSeq(output, "\n") {
		text, ok := strings.CutPrefix(line, "world ")
		var w worldCounts
		if !ok || json.Unmarshal([]byte(text), &w) != nil {
			continue
		}
		for _, name := range []string{w.Scenario, "~all"} {
			sum := sums[name]
			if sum == nil {
				sum = &worldCounts{Counts: map[string]int64{}, Spans: map[string][]time.Duration{}}
				sums[name] = sum
			}
			for what, n := range w.Counts {
				sum.Counts[what] += n
			}
			for what, spans := range w.Spans {
				sum.Spans[what] = append(sum.Spans[what], spans...)
			}
			if w.Violation != "" {
				sum.Counts["violations"]++
			}
		}
		if w.Violation != "" {
			fmt.Fprintf(out, "violation in %s: %s\n", w.Scenario, w.Violation)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sums[name].row(out, name)
	}
}

func (w *worldCounts) row(out *strings.Builder, name string) {
	c := w.Counts
	each := func(what string) float64 { return float64(c[what]) / float64(max(1, c["granted"])) }
	looks := func(what string) float64 { return 100 * float64(c[what]) / float64(max(1, c["looks"])) }
	at := func(what string, share float64) float64 {
		all := slices.Sorted(slices.Values(w.Spans[what]))
		if len(all) == 0 {
			return 0
		}
		return ms(all[min(len(all)-1, int(share*float64(len(all))))])
	}
	turn := func(n int) string {
		yes, no := c[fmt.Sprintf("extended at turn %d", n)], c[fmt.Sprintf("not extended at turn %d", n)]
		return fmt.Sprintf("%d/%d", yes, yes+no)
	}
	fmt.Fprintf(out, "| %s | %d, %d, %d | %d, %d, %d | %.2f, %.2f, %.3f | %d, %d | %.2f, %.2f, %.1f | %.2f | %.1f %%, %.2f %% | %d, %d, %d | %d, %d, %d, %d | %s, %s |\n", name,
		c["worlds"], c["executions"], c["violations"], c["granted"], c["held"], c["acquires without quorum"],
		each("keys"), each("seals"), each("second seals"), c["splits"], c["undone"],
		at("acquire", .5), at("acquire", .99), at("acquire", .999), at("release", .99),
		looks("looks at a bare quorum"), looks("looks below a quorum"),
		c["extended"], c["extensions without quorum"], c["repaired"],
		c["sent to the rest: timer"], c["sent to the rest: refusal"], c["sent to the rest: fault"], c["sent to the rest: completion"],
		turn(1), turn(2))
}
