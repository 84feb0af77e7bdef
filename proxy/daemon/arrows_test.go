package daemon

// Tests that imports point one way: main → proxy/daemon → proxy → commands → redlock → pool.
// Skipping a package on the way down is fine; going up or sideways is not.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "redlockd"

// arrows lists what each package may import of this module. A new package gets
// a line here and a word about it in CONTRIBUTING.md.
var arrows = map[string][]string{
	"":                        {"proxy/daemon"},
	"proxy/daemon":            {"proxy", "proxy/admin", "proxy/tlsconf", "commands", "commands/access", "commands/cli", "commands/conn", "commands/counter", "commands/dropin", "commands/glob", "commands/inspect", "commands/lock", "commands/rediscompat", "commands/tracing", "commands/work", "redlock", "redlock/groups", "redlock/homes", "redlock/slots", "pool", "pool/embedded", "pool/setup", "configs"},
	"proxy":                   {"proxy/guard", "proxy/preauth", "proxy/resp", "proxy/tlsconf", "commands", "redlock", "pool"},
	"proxy/guard":             {"proxy/preauth", "proxy/resp"},
	"proxy/preauth":           {"proxy/resp"},
	"proxy/resp":              {},
	"proxy/tlsconf":           {},
	"proxy/admin":             {"proxy/preauth", "commands", "commands/access", "commands/diagnosis", "commands/dropin", "redlock", "pool"},
	"commands":                {"commands/access", "commands/arg", "commands/dropin", "redlock", "redlock/slots", "pool"},
	"commands/conn":           {"commands", "commands/access", "commands/arg", "commands/glob", "redlock", "redlock/slots", "pool"},
	"commands/counter":        {"commands", "commands/access", "commands/arg", "redlock"},
	"commands/inspect":        {"commands", "commands/access", "commands/arg", "commands/glob", "redlock"},
	"commands/lock":           {"commands", "commands/access", "commands/arg", "redlock"},
	"commands/work":           {"commands", "commands/access", "commands/arg", "redlock"},
	"commands/arg":            {"proxy/resp", "commands/access", "redlock"},
	"commands/access":         {"commands/glob", "redlock"},
	"commands/glob":           {},
	"commands/diagnosis":      {"redlock", "pool"},
	"commands/dropin":         {"proxy/resp"},
	"commands/dropin/textgen": {}, // tests only
	"commands/rediscompat":    {"commands", "commands/access", "commands/arg", "commands/dropin", "redlock", "pool"},
	"commands/tracing":        {"commands", "redlock", "pool"},
	"commands/cli":            {"proxy/resp", "proxy/tlsconf", "commands/diagnosis", "redlock", "configs"},
	"redlock":                 {"redlock/engine", "redlock/events", "redlock/ids", "redlock/inspect", "redlock/lease", "redlock/maxhold", "redlock/quorum", "redlock/renew", "redlock/scripts", "redlock/track", "redlock/wait", "redlock/work", "pool"},
	"redlock/engine":          {"redlock/quorum", "redlock/scripts", "redlock/stored", "pool"},
	"redlock/inspect":         {"redlock/engine", "redlock/lease", "redlock/quorum", "pool"},
	"redlock/lease":           {"redlock/engine", "redlock/events", "redlock/quorum", "redlock/scripts", "pool"},
	"redlock/renew":           {"redlock/due", "redlock/engine", "redlock/events", "redlock/lease", "pool"},
	"redlock/maxhold":         {"redlock/engine", "redlock/events", "redlock/inspect", "redlock/lease", "redlock/quorum", "pool"},
	"redlock/wait":            {"redlock/engine", "redlock/lease", "redlock/quorum", "redlock/work", "pool"},
	"redlock/track":           {"redlock/engine", "redlock/lease", "redlock/quorum", "pool"},
	"redlock/events":          {"redlock/due", "redlock/engine", "pool"},
	"redlock/due":             {},
	"redlock/groups":          {"redlock", "redlock/slots", "pool"},
	"redlock/scripts":         {},
	"redlock/homes":           {"redlock/engine", "redlock/slots", "pool"},
	"redlock/slots":           {},
	"redlock/stored":          {},
	"redlock/work":            {"redlock/engine", "redlock/quorum", "redlock/stored", "pool"},
	"redlock/ids":             {"redlock/engine", "redlock/quorum", "redlock/stored", "pool"},
	"redlock/quorum":          {},
	"pool":                    {"pool/admission", "pool/clock", "pool/embedded", "pool/masterlog", "pool/notify", "pool/wire"},
	"pool/masterlog":          {"pool/wire"},
	"pool/admission":          {"pool/clock", "pool/wire"},
	"pool/clock":              {},
	"pool/notify":             {"pool/clock", "pool/wire"},
	"pool/setup":              {"pool", "pool/admission", "pool/clock", "pool/wire", "redlock/slots", "redlock/stored"},
	"pool/wire":               {},
	"pool/embedded":           {"redlock/due"},
	"configs":                 {"redlock/slots", "proxy/tlsconf"},
	"proxy/contract":          {"proxy/daemon"}, // tests only
	"pool/faulty":             {"proxy/resp"},
	"redlock/checker":         {},
	"redlock/mutants":         {},
	"redlock/redlocktest":     {"redlock/engine", "redlock/events", "redlock/lease", "redlock/mutants", "redlock/scripts", "pool", "pool/embedded", "pool/faulty", "pool/setup"}, // tests only
	"redlock/sim":             {"redlock", "redlock/groups", "redlock/slots", "redlock/sim/fake", "pool", "pool/setup"},
	"redlock/sim/fake":        {"pool/wire"},
	"redlock/spec":            {},
	"redlock/chaos":           {},
}

// testSupport may be imported by any test, and of what is shipped only where arrows has it.
var testSupport = []string{"commands/dropin/textgen", "proxy/resp", "pool/faulty", "pool/embedded", "pool/setup", "redlock/checker", "redlock/mutants", "redlock/redlocktest"}

// testArrows lists what only the tests of a package import: what they talk to.
var testArrows = map[string][]string{
	"redlock":         {"redlock/slots"},
	"redlock/chaos":   {"redlock/slots"},
	"redlock/groups":  {"redlock/engine"},
	"redlock/inspect": {"redlock/events"},
	"redlock/maxhold": {"redlock/renew", "redlock/wait"},
	"redlock/renew":   {"redlock/inspect"},
	"redlock/scripts": {"redlock/engine"}, // what a token says of its lock
	"proxy":           {"commands/access", "commands/conn"},
	"proxy/admin":     {"commands/inspect"},
	"commands":        {"commands/conn", "commands/counter", "commands/inspect", "commands/lock", "commands/rediscompat", "commands/work"},
}

// listed is one package as `go list -json` describes it.
type listed struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
}

// wrongArrows lists the imports that point where they should not.
func wrongArrows(packages []listed) []string {
	var wrong []string
	for _, p := range packages {
		from := packagePath(p.ImportPath)
		allowed, known := arrows[from]
		if !known {
			wrong = append(wrong, fmt.Sprintf("%q is unknown: give it a line in arrows", p.ImportPath))
			continue
		}
		for _, to := range inside(p.Imports) {
			if !slices.Contains(allowed, to) {
				wrong = append(wrong, fmt.Sprintf("%q imports %q", from, to))
			}
		}
		for _, to := range inside(slices.Concat(p.TestImports, p.XTestImports)) {
			itself := to == from // a test from outside the package imports it
			if !itself && !slices.Contains(allowed, to) && !slices.Contains(testArrows[from], to) && !slices.Contains(testSupport, to) {
				wrong = append(wrong, fmt.Sprintf("a test of %q imports %q", from, to))
			}
		}
	}
	return wrong
}

// packagePath is the path below the module's, "" for main.
func packagePath(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// inside keeps the imports of this module, each once.
func inside(imports []string) []string {
	var paths []string
	for _, path := range imports {
		if path == module || strings.HasPrefix(path, module+"/") {
			paths = append(paths, packagePath(path))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	command := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Imports,TestImports,XTestImports", "./...")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func TestImports_PointOneWay(t *testing.T) {
	packages := listPackages(t)
	for _, p := range packages {
		// Looking at the directory here makes go test forget a cached result
		// when one of its files changes; it does not track what go list reads.
		if _, err := os.ReadDir(p.Dir); err != nil {
			t.Error(err)
		}
	}
	arrowsSeen := 0
	for _, p := range packages {
		arrowsSeen += len(inside(p.Imports))
	}
	if arrowsSeen < len(arrows) {
		t.Errorf("go list shows %d arrows only: it did not read the imports", arrowsSeen)
	}
	for _, wrong := range wrongArrows(packages) {
		t.Errorf("%s, against main → proxy → commands → redlock → pool", wrong)
	}
}

// New directories change the listing of the root alone.
func TestImports_EveryGoFileIsInAKnownPackage(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && ownModule(path):
			return filepath.SkipDir // bench is a module of its own
		case entry.IsDir() && (entry.Name() == "testdata" || len(entry.Name()) > 1 && entry.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(path) == ".go":
			dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), ".")
			if _, known := arrows[dir]; !known {
				t.Errorf("%s is unknown: give %q a line in arrows", path, dir)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func ownModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func TestArrows_LeadDownwardsOnly(t *testing.T) {
	for from, allowed := range arrows {
		for _, to := range allowed {
			if slices.Contains(arrows[to], from) {
				t.Errorf("%q and %q may import one another", from, to)
			}
		}
	}
}

func TestWrongArrows_AreFound(t *testing.T) {
	for _, c := range []struct {
		name string
		p    listed
		want int
	}{
		{"down", listed{ImportPath: "redlockd/commands", Imports: []string{"fmt", "redlockd/redlock", "redlockd/pool"}}, 0},
		{"main", listed{ImportPath: "redlockd", Imports: []string{"redlockd/proxy/daemon"}}, 0},
		{"main past the daemon", listed{ImportPath: "redlockd", Imports: []string{"redlockd/pool"}}, 1},
		{"up", listed{ImportPath: "redlockd/pool", Imports: []string{"redlockd/redlock"}}, 1},
		{"skipping up", listed{ImportPath: "redlockd/pool", Imports: []string{"redlockd/commands"}}, 1},
		{"sideways", listed{ImportPath: "redlockd/proxy", Imports: []string{"redlockd/configs"}}, 1},
		{"from the leaf", listed{ImportPath: "redlockd/configs", Imports: []string{"redlockd/pool"}}, 1},
		{"to main", listed{ImportPath: "redlockd/pool", Imports: []string{"redlockd"}}, 1},
		{"test support shipped", listed{ImportPath: "redlockd/redlock", Imports: []string{"redlockd/pool/faulty"}}, 1},
		{"test support in a test", listed{ImportPath: "redlockd/redlock", XTestImports: []string{"redlockd/redlock", "redlockd/pool/faulty"}}, 0},
		{"up in a test", listed{ImportPath: "redlockd/redlock", TestImports: []string{"redlockd/commands"}}, 1},
		{"a package without a line", listed{ImportPath: "redlockd/utils"}, 1},
		{"another module of a similar name", listed{ImportPath: "redlockd/pool", Imports: []string{"redlockdx/commands"}}, 0},
	} {
		if got := wrongArrows([]listed{c.p}); len(got) != c.want {
			t.Errorf("%s: %q, want %d", c.name, got, c.want)
		}
	}
}
