package sim

// thrifty_test.go: the study of THRIFTY.md. It is the product with another way to send
// requests, built in as the mutants are, so nothing of it is in the product.

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	{File: "redlock/lease/acquire.go", Old: "\tend := quorum.Expiry(m.Time, request.TTL+request.Delay, ", New: "\tspent, stop := a.later(m.Lane, m.Now)\n\tif stop {\n\t\treturn false\n\t}\n\tend := quorum.Expiry(m.Time, request.TTL+request.Delay-spent, "},
	{File: "redlock/lease/acquire.go", Old: "\t\tcopies: a.lanesWithCopy(), ", New: "\t\tmade: a.maker(), copies: a.lanesWithCopy(), "},
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

// thriftyProgram builds the test program of this package with the study in it.
func thriftyProgram(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
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

// The study must fit the product as it is now.
func TestThrifty_Fits(t *testing.T) {
	program := thriftyProgram(t)
	if to := os.Getenv("THRIFTY_KEEP"); to != "" {
		text, err := os.ReadFile(program)
		if err == nil {
			err = os.WriteFile(to, text, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = slices.Sorted[string]
}
