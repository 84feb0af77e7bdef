package daemon

// evidence_test.go: the table of redlock/EVIDENCE.md, which names the evidence for each command
// and each option: every row is there, and everything that it names exists.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"redlockd/commands"
	"redlockd/commands/conn"
	"redlockd/commands/counter"
	"redlockd/commands/inspect"
	"redlockd/commands/lock"
	"redlockd/commands/rediscompat"
	"redlockd/commands/work"
	"redlockd/redlock/mutants"
)

const (
	evidencePage = "redlock/EVIDENCE.md"
	proofPage    = "redlock/PROOF.md"
	// mostOpen is how many cells of the first table lack evidence. It only ever shrinks.
	mostOpen = 7
)

// columns of the two tables, behind what they are about.
const (
	directedCell = iota
	mastersCell
	simulationCell
	seededCell
	chaosCell
	proofCell
)

var columnNames = []string{"directed test", "real masters", "simulation", "seeded bug", "chaos", "PROOF"}

// evidence is one row: commands or options with the same evidence.
type evidence struct {
	subjects []string
	cells    []string
	changes  bool // when copies end, who may hold, fences, ids or attempts
}

const (
	openMark = "**open**: " // evidence that is missing, and why
	noneMark = "– "         // evidence that there is no need for, and why
)

// rows returns the names in the first cells and the cells of a Markdown table below a heading.
func tableBelow(t *testing.T, page, heading string, changes bool) (rows []evidence) {
	t.Helper()
	_, part, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no heading %q", heading)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		row := evidence{subjects: inTicks(cells[0]), changes: changes}
		for _, cell := range cells[1:] {
			row.cells = append(row.cells, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	return rows
}

var ticked = regexp.MustCompile("`([^`]+)`")

func inTicks(text string) (all []string) {
	for _, match := range ticked.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// rowsOfTheTable are the commands that can be called, and their options.
func rowsOfTheTable() (names []string) {
	deps := commands.Deps{RedisCompat: struct{ commands.RedisCompat }{}, Masters: struct{ commands.Masters }{}, Inspect: struct{ commands.Inspect }{},
		Connections: struct{ commands.Connections }{}, Clients: func() (none commands.ClientCounts) { return none }, Config: func(string) [][2]string { return nil }}
	for _, rows := range []commands.Rows{lock.Rows, counter.Rows, work.Rows, inspect.Rows, rediscompat.Rows, conn.Rows} {
		for _, row := range rows(deps) {
			names = append(names, namesOf(row, strings.ToUpper(row.Name))...)
			for _, part := range row.Parts {
				names = append(names, namesOf(part, strings.ToUpper(row.Name+" "+part.Name))...)
			}
		}
	}
	return names
}

func namesOf(row *commands.Command, name string) (names []string) {
	if row.Handle == nil {
		return nil
	}
	names = []string{name}
	for open := slices.Clone(row.Args); len(open) > 0; {
		option := open[0]
		if open = append(open[1:], option.Parts...); option.Word != "" {
			names = append(names, name+" "+option.Word)
		}
	}
	return names
}

func TestEvidence_OfEveryCommandAndOptionIsThere(t *testing.T) {
	text, err := os.ReadFile(evidencePage)
	if err != nil {
		t.Fatal(err)
	}
	rows := slices.Concat(tableBelow(t, string(text), "## What changes locks, ids and work", true), tableBelow(t, string(text), "## What changes none of them", false))
	look := newReferences(t)
	seen, open := map[string]bool{}, 0
	for _, row := range rows {
		for _, subject := range row.subjects {
			if seen[subject] {
				t.Errorf("%s has two rows", subject)
			}
			seen[subject] = true
		}
		open += look.row(t, row)
	}
	used := map[string]bool{}
	for _, name := range rowsOfTheTable() {
		family, _, _ := strings.Cut(name, " ")
		switch family += " *"; {
		case seen[name]:
			used[name] = true
		case seen[family]:
			used[family] = true
		default:
			t.Errorf("%s has no row in EVIDENCE.md: name its evidence, or say why it needs none", name)
		}
	}
	for name := range seen {
		if !used[name] {
			t.Errorf("EVIDENCE.md has a row of %s, which the commands do not have", name)
		}
	}
	if open != mostOpen {
		t.Errorf("%d cells of the first table are open, want %d", open, mostOpen)
	}
}

// references are what cells may name.
type references struct {
	tests     map[string][]*testFunction
	scenarios map[string]bool
	trades    map[string]string // what the clients of each name send: the text of their file
	proof     string
}

// testFunction is one function of test files.
type testFunction struct {
	dir, text string
	uses      map[string]bool // identifiers
	starts    bool            // real masters
}

func newReferences(t *testing.T) *references {
	t.Helper()
	proof, err := os.ReadFile(proofPage)
	if err != nil {
		t.Fatal(err)
	}
	r := &references{tests: testFunctions(t), scenarios: map[string]bool{}, proof: string(proof)}
	for _, text := range textsOf(t, "redlock/sim/*.go") {
		for _, row := range scenarioRow.FindAllStringSubmatch(text, -1) {
			r.scenarios[row[1]+"-3"], r.scenarios[row[1]+"-5"] = true, true
		}
	}
	r.trades = tradesOfMixes(t)
	return r
}

// row checks the cells of a row, and counts those that are open.
func (r *references) row(t *testing.T, row evidence) (open int) {
	t.Helper()
	if len(row.cells) != len(columnNames) {
		t.Errorf("%q: %d cells, want %d", row.subjects, len(row.cells), len(columnNames))
		return 0
	}
	for i, cell := range row.cells {
		wrong := ""
		switch reason, isOpen := strings.CutPrefix(cell, openMark); {
		case isOpen && row.changes && len(reason) > 10:
			open++
		case strings.HasPrefix(cell, noneMark) && len(cell) > 10 && !row.changes:
		case cell == "–" && !row.changes && i >= simulationCell && i < proofCell:
		case i == proofCell && !row.changes && len(cell) > 10: // why no more
		default:
			wrong = r.cell(i, cell, row.subjects)
		}
		if wrong != "" {
			t.Errorf("%s, %s: %s", strings.Join(row.subjects, ", "), columnNames[i], wrong)
		}
	}
	return open
}

// cell returns what is wrong with a cell.
func (r *references) cell(column int, cell string, subjects []string) string {
	if column == proofCell {
		if !strings.Contains(r.proof, "\n- **"+cell+"**") && !strings.Contains(r.proof, "\n| "+cell+" |") && !strings.Contains(r.proof, "\n## "+cell+"\n") {
			return fmt.Sprintf("PROOF.md has no point, promise or chapter %q", cell)
		}
		return ""
	}
	names := inTicks(cell)
	if len(names) == 0 {
		return fmt.Sprintf("%q names nothing", cell)
	}
	for _, name := range names {
		wrong := ""
		switch column {
		case directedCell, mastersCell:
			wrong = r.test(name, subjects, column == mastersCell)
		case simulationCell:
			if !r.scenarios[name] {
				wrong = "no scenario of the simulation"
			}
		case seededCell:
			if mutants.Find(name) == nil {
				wrong = "no seeded bug"
			}
		case chaosCell:
			wrong = r.trade(name, subjects)
		}
		if wrong != "" {
			return fmt.Sprintf("%s: %s", name, wrong)
		}
	}
	return ""
}

// test wants a test function that is about one of the subjects.
func (r *references) test(name string, subjects []string, masters bool) string {
	found := r.tests[name]
	if len(found) == 0 {
		return "no test of this name"
	}
	for _, f := range found {
		text := strings.ToLower(f.text)
		about := slices.ContainsFunc(subjects, func(subject string) bool {
			return slices.ContainsFunc(wordsOf(subject), func(word string) bool { return strings.Contains(text, word) })
		})
		if about && (!masters || r.onMasters(f, map[*testFunction]bool{})) {
			return ""
		}
	}
	if masters {
		return "it starts no master, or its text names none of the options or commands"
	}
	return "its text names none of the options or commands"
}

// alsoCalled are words of packages below the commands.
var alsoCalled = map[string][]string{
	"dunlock": {"release"}, "dmunlock": {"release"}, "dmlock": {"multi"}, "dmextend": {"extend"}, "dworkextend": {"extend"}, "didreseed": {"reseed", "operator"},
	"shared": {"share", "reader"}, "limit": {"permit"}, "expire": {"retime"}, "get": {"view"},
}

// wordsOf are what tests call a command or an option.
func wordsOf(subject string) []string {
	words := strings.Fields(strings.ToLower(strings.TrimSuffix(subject, " *")))
	word := words[len(words)-1]
	if len(words) > 1 {
		return append(alsoCalled[word], word)
	}
	return append(alsoCalled[word], strings.TrimPrefix(word, "d"))
}

// onMasters reports whether a test starts masters, by itself or by a function of its package.
func (r *references) onMasters(f *testFunction, visited map[*testFunction]bool) bool {
	if f.starts {
		return true
	}
	visited[f] = true
	for name := range f.uses {
		for _, g := range r.tests[name] {
			if g.dir == f.dir && !visited[g] && r.onMasters(g, visited) {
				return true
			}
		}
	}
	return false
}

// trade wants clients of a mix that send one of the subjects.
func (r *references) trade(name string, subjects []string) string {
	text, found := r.trades[name]
	if !found {
		return "no clients of a mix have this name"
	}
	for _, subject := range subjects {
		words := strings.Fields(subject)
		if strings.Contains(text, `"`+words[len(words)-1]+`"`) {
			return ""
		}
	}
	return "they send none of the options or commands"
}

var tradeRow = regexp.MustCompile(`func (\w+)\(\) trade +\{ return trade\{"([^"]+)", \w+, (\w+)\} \}`)

// tradesOfMixes reads the rows of clients that a mix of chaos has, with the file of their
// constructor and the one that builds requests for several of them.
func tradesOfMixes(t *testing.T) map[string]string {
	t.Helper()
	texts := textsOf(t, "redlock/chaos/*_test.go")
	trades, requests, mixes := map[string]string{}, texts["requests_test.go"], texts["chaos_test.go"]+texts["workloads_test.go"]
	for _, text := range texts {
		for _, row := range tradeRow.FindAllStringSubmatch(text, -1) {
			call := regexp.MustCompile(`\b` + row[1] + `\(\)[,)}]`)
			for _, from := range texts {
				if call.MatchString(mixes) && strings.Contains(from, "func "+row[3]+"(") {
					trades[row[2]] = from + requests
				}
			}
		}
	}
	return trades
}

// scenarioRow is how the tables of the simulation begin a scenario, which is played with 3 and 5 masters.
var scenarioRow = regexp.MustCompile(`\b[a-z]\w*\("([a-z]+)", (?:func\(s \*Scenario\)|\d)`)

func textsOf(t *testing.T, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(pattern, files, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// testFunctions reads all test files of the module.
func testFunctions(t *testing.T) map[string][]*testFunction {
	t.Helper()
	all := map[string][]*testFunction{}
	var mu sync.Mutex
	var files sync.WaitGroup
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 1 || entry.Name() == "bench" || entry.Name() == "examples" || entry.Name() == "interop"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files.Go(func() {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
				return
			}
			functions := functionsOf(t, path, string(text))
			mu.Lock()
			defer mu.Unlock()
			for name, f := range functions {
				all[name] = append(all[name], f)
			}
		})
		return nil
	})
	files.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func functionsOf(t *testing.T, path, text string) map[string]*testFunction {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	functions := map[string]*testFunction{}
	for _, declared := range file.Decls {
		function, is := declared.(*ast.FuncDecl)
		if !is {
			continue
		}
		f := &testFunction{dir: filepath.Dir(path), uses: map[string]bool{}}
		f.text = text[positions.Position(function.Pos()).Offset:positions.Position(function.End()).Offset]
		ast.Inspect(function, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				from, is := n.X.(*ast.Ident)
				f.starts = f.starts || is && (from.Name == "faulty" && strings.HasPrefix(n.Sel.Name, "Start") || from.Name == "redlocktest" && n.Sel.Name == "NewCluster")
				f.starts = f.starts || n.Sel.Name == "StartGroup"
			case *ast.Ident:
				f.uses[n.Name] = true
			}
			return true
		})
		functions[function.Name.Name] = f
	}
	return functions
}
