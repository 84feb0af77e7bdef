package daemon

// structure_test.go: how far files depend on one another. A knot is a set of files each of
// which needs all others, directly or by way of further ones: none can be read alone.

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	mostKnotLines = 2000 // of the files of one knot
	mostMethods   = 45   // of one type
	mostWalkFiles = 18   // of the walk of CONTRIBUTING.md; what bounds a hold stands before the leases
)

// knotLimits and methodLimits are limits of their own, which packages and types have. They
// shrink, unless what a package does by one more part of the same machine has grown. No file of a
// package with the limit 0 needs one that needs it.
var (
	knotLimits = map[string]int{
		"pool":          2450, // the state machine of the lanes: lane, window, flush, verify, group, dial; epoch, follow
		"proxy":         1900, // the server and its sessions, which a drain closes one by one
		"redlock/lease": 1250, // the ballot, the extension and the release of a lock; the modes are outside

		"redlock/sim":    2220, // the world: its links, servers and daemons
		"redlock/engine": 0, "redlock/events": 0, "redlock/groups": 0, "redlock/ids": 0, "redlock/inspect": 0, "redlock/work": 0, "redlock/wait": 0, "commands": 0, "commands/counter": 0, "commands/dropin": 0, "commands/inspect": 0, "commands/lock": 0, "commands/rediscompat": 0, "commands/work": 0,
		"commands/access": 900, "commands/arg": 0, "commands/cli": 300, "commands/conn": 360, "commands/tracing": 290,
		"proxy/admin": 0, "proxy/daemon": 0, "proxy/guard": 670, "proxy/preauth": 210, "proxy/resp": 0, "configs": 0,
	}
	methodLimits = map[string]int{"commands.Table": 3, "redlock.Locker": 29, "redlock/lease.Leases": 39, "pool.lane": 30}
)

// mostOperations is how many types implement pool.Operation. It only ever shrinks.
const mostOperations = 3

// source is the product's code with its types.
type source struct {
	files    *token.FileSet
	packages map[string]*sourcePackage // by path below the module's
	uses     graph
	calls    graph // uses, and what calls of interfaces' methods and of handlers may run
}

// graph is which file refers to which, by paths from the root.
type graph map[string]map[string]bool

func (g graph) add(from, to string) {
	if to == "" || from == to {
		return
	}
	if g[from] == nil {
		g[from] = map[string]bool{}
	}
	g[from][to] = true
}

type sourcePackage struct {
	types *types.Package
	lines map[string]int // by file
	info  *types.Info
	files []*ast.File
}

// typedSource reads the product once for all tests of the package.
var typedSource = sync.OnceValues(readSource)

type exported struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

func readSource() (*source, error) {
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	s := &source{files: token.NewFileSet(), packages: map[string]*sourcePackage{}, uses: graph{}, calls: graph{}}
	exports := map[string]string{}
	foreign := importer.ForCompiler(s.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p exported
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Module == nil || !p.Module.Main || len(p.GoFiles) == 0 {
			continue
		}
		if err := s.check(p, foreign); err != nil { // what it imports came before
			return nil, err
		}
	}
	s.refer()
	return s, nil
}

// check adds a package, whose imports have been added.
func (s *source) check(p exported, foreign types.Importer) error {
	add := &sourcePackage{lines: map[string]int{}, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}}
	for _, name := range p.GoFiles {
		name = filepath.Join(p.Dir, name)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(s.files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		add.files = append(add.files, file)
		add.lines[s.path(file.Pos())] = strings.Count(string(text), "\n")
	}
	config := types.Config{Importer: importFunc(func(path string) (*types.Package, error) {
		if own := s.packages[packagePath(path)]; own != nil && (path == module || strings.HasPrefix(path, module+"/")) {
			return own.types, nil
		}
		return foreign.Import(path)
	})}
	var err error
	add.types, err = config.Check(p.ImportPath, s.files, add.files, add.info)
	s.packages[packagePath(p.ImportPath)] = add
	return err
}

type importFunc func(path string) (*types.Package, error)

func (f importFunc) Import(path string) (*types.Package, error) { return f(path) }

// path is the file at a position, from the root; "" if it is not the product's.
func (s *source) path(at token.Pos) string {
	root, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	path, err := filepath.Rel(root, s.files.Position(at).Filename)
	if err != nil || strings.HasPrefix(path, "..") {
		return ""
	}
	return filepath.ToSlash(path)
}

// refer notes which file refers to which.
func (s *source) refer() {
	byName, found := s.methods(), map[types.Object][]*types.Func{}
	for _, p := range s.packages {
		for id, object := range p.info.Uses {
			variable, ok := object.(*types.Var)
			if !object.Pos().IsValid() || object.Pkg() == nil || ok && !variable.IsField() && variable.Parent() != object.Pkg().Scope() {
				continue // a local variable, or one of the language
			}
			from := s.path(id.Pos())
			s.uses.add(from, s.path(object.Pos()))
			s.calls.add(from, s.path(object.Pos()))
			if _, known := found[object]; !known {
				found[object] = s.implementations(object, byName)
			}
			for _, implementation := range found[object] {
				s.calls.add(from, s.path(implementation.Pos()))
			}
		}
	}
}

// methods are the methods of all named types, by name.
func (s *source) methods() map[string][]*types.Func {
	byName := map[string][]*types.Func{}
	for _, p := range s.packages {
		for _, name := range p.types.Scope().Names() {
			named, ok := types.Unalias(p.types.Scope().Lookup(name).Type()).(*types.Named)
			if !ok || named.Obj().Pkg() != p.types || types.IsInterface(named) {
				continue
			}
			for method := range named.Methods() {
				byName[method.Name()] = append(byName[method.Name()], method)
			}
		}
	}
	return byName
}

// implementations are the methods that a call of an interface's method, or of a field of a
// named type of functions, may run, also of what a type embeds.
func (s *source) implementations(object types.Object, byName map[string][]*types.Func) (found []*types.Func) {
	if field, ok := object.(*types.Var); ok {
		return handlersOf(field, byName)
	}
	method, ok := object.(*types.Func)
	if !ok || method.Signature().Recv() == nil {
		return nil
	}
	required, ok := method.Signature().Recv().Type().Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	for _, p := range s.packages {
		for _, name := range p.types.Scope().Names() {
			named, ok := types.Unalias(p.types.Scope().Lookup(name).Type()).(*types.Named)
			if !ok || named.Obj().Pkg() != p.types || named.TypeParams().Len() > 0 || types.IsInterface(named) || !types.Implements(types.NewPointer(named), required) {
				continue
			}
			if of, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), true, method.Pkg(), method.Name()); of != nil {
				found = append(found, of.(*types.Func))
			}
		}
	}
	return found
}

// handlersOf are the methods that a field of a named type of functions may have as value.
func handlersOf(field *types.Var, byName map[string][]*types.Func) (found []*types.Func) {
	if _, named := types.Unalias(field.Type()).(*types.Named); !named {
		return nil
	}
	signature, ok := field.Type().Underlying().(*types.Signature)
	if !ok {
		return nil
	}
	for _, methods := range byName {
		for _, method := range methods {
			if types.Identical(method.Signature(), signature) {
				found = append(found, method)
			}
		}
	}
	return found
}

func product(t *testing.T) *source {
	t.Helper()
	s, err := typedSource()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStructure_NoPackageIsOneKnot(t *testing.T) {
	s := product(t)
	for path, p := range s.packages {
		limit, own := knotLimits[path]
		if !own {
			limit = mostKnotLines
		}
		files := largestKnot(p.lines, s.uses)
		lines := 0
		for _, file := range files {
			lines += p.lines[file]
		}
		t.Logf("%s: %d files, the largest knot has %d files with %d lines", path, len(p.lines), len(files), lines)
		if lines > limit {
			t.Errorf("%s: %d files with %d lines need one another, at most %d lines are allowed: %s", path, len(files), lines, limit, strings.Join(files, " "))
		}
	}
}

func TestStructure_NoTypeDoesEverything(t *testing.T) {
	for path, p := range product(t).packages {
		for _, name := range p.types.Scope().Names() {
			named, ok := types.Unalias(p.types.Scope().Lookup(name).Type()).(*types.Named)
			if !ok || named.Obj().Pkg() != p.types {
				continue
			}
			id := path + "." + name
			limit, own := methodLimits[id]
			if !own {
				limit = mostMethods
			}
			if named.NumMethods() > limit {
				t.Errorf("%s has %d methods, at most %d are allowed", id, named.NumMethods(), limit)
			}
		}
	}
}

func TestStructure_FewTypesAreQueriesToAllMasters(t *testing.T) {
	s := product(t)
	operation := s.packages["pool"].types.Scope().Lookup("Operation").Type().Underlying().(*types.Interface)
	var found []string
	for path, p := range s.packages {
		for _, name := range p.types.Scope().Names() {
			object, ok := p.types.Scope().Lookup(name).(*types.TypeName)
			if !ok || object.IsAlias() || types.IsInterface(object.Type()) {
				continue
			}
			if named, ok := object.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
				continue
			}
			if types.Implements(types.NewPointer(object.Type()), operation) {
				found = append(found, path+"."+name)
			}
		}
	}
	slices.Sort(found)
	if len(found) == 0 || len(found) > mostOperations {
		t.Errorf("%d types implement pool.Operation, 1 to %d are allowed: %s", len(found), mostOperations, strings.Join(found, " "))
	}
}

// mostInterfaces is how many interfaces of the commands are implemented by redlock. It only
// ever shrinks.
const mostInterfaces = 6

// An interface without a name, or inside a function, counts, too.
func TestStructure_CommandsNeedFewInterfacesOfRedlock(t *testing.T) {
	s := product(t)
	locker := types.NewPointer(s.packages["redlock"].types.Scope().Lookup("Locker").Type())
	var found []string
	for path, p := range s.packages {
		if path != "commands" && !strings.HasPrefix(path, "commands/") {
			continue
		}
		for expression, of := range p.info.Types {
			one, ok := of.Type.(*types.Interface)
			if _, literal := expression.(*ast.InterfaceType); !ok || !literal || one.NumMethods() == 0 {
				continue
			}
			if types.Implements(locker, one) || hasMethodWithTypesOf(one, "redlock", "pool") {
				position := s.files.Position(expression.Pos())
				found = append(found, fmt.Sprintf("%s:%d", s.path(expression.Pos()), position.Line))
			}
		}
	}
	slices.Sort(found)
	if len(found) == 0 || len(found) > mostInterfaces {
		t.Errorf("%d interfaces of the commands are implemented by redlock, 1 to %d are allowed: %s", len(found), mostInterfaces, strings.Join(found, " "))
	}
}

// hasMethodWithTypesOf reports whether a parameter or a result of a method, its own or one
// of an embedded interface, has a type of the packages or of those below them.
func hasMethodWithTypesOf(one *types.Interface, packages ...string) bool {
	for method := range one.Methods() {
		if mentions(method.Signature(), packages) {
			return true
		}
	}
	return false
}

// mentions reports whether a type is made of a named type of the packages.
func mentions(of types.Type, packages []string) bool {
	switch of := types.Unalias(of).(type) {
	case *types.Named:
		pkg := of.Obj().Pkg()
		for arg := range of.TypeArgs().Types() {
			if mentions(arg, packages) {
				return true
			}
		}
		return pkg != nil && slices.ContainsFunc(packages, func(name string) bool {
			return pkg.Path() == module+"/"+name || strings.HasPrefix(pkg.Path(), module+"/"+name+"/")
		})
	case *types.Signature:
		return mentions(of.Params(), packages) || mentions(of.Results(), packages)
	case *types.Tuple:
		for part := range of.Variables() {
			if mentions(part.Type(), packages) {
				return true
			}
		}
	case *types.Map:
		return mentions(of.Key(), packages) || mentions(of.Elem(), packages)
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		return mentions(of.Elem(), packages)
	case *types.Struct:
		for field := range of.Fields() {
			if mentions(field.Type(), packages) {
				return true
			}
		}
	case *types.Interface:
		return hasMethodWithTypesOf(of, packages...)
	}
	return false
}

// walkFile is a file of the walk through one DLOCK in CONTRIBUTING.md.
var walkFile = regexp.MustCompile("`([a-z/]+\\.go)`")

// The reader of the walk finds a way from each file to the next ones.
func TestStructure_TheWalkFollowsTheCalls(t *testing.T) {
	s := product(t)
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, found := strings.Cut(string(text), "\n1. The client's bytes become a command: ")
	walk, _, ended := strings.Cut(walk, "\n\n")
	if !found || !ended {
		t.Fatal("CONTRIBUTING.md has no list that begins with \"1. The client's bytes\"")
	}
	var seen []string
	for _, match := range walkFile.FindAllStringSubmatch(walk, -1) {
		file := match[1]
		from := func(earlier string) bool { return s.calls[earlier][file] }
		switch {
		case slices.Contains(seen, file):
			continue
		case s.packages[filepath.Dir(file)] == nil || s.packages[filepath.Dir(file)].lines[file] == 0:
			t.Errorf("the walk names %s, which is not a file of the product", file)
		case len(seen) > 0 && !slices.ContainsFunc(seen, from):
			t.Errorf("the walk goes to %s, but none of %s refers to it", file, strings.Join(seen, " "))
		}
		seen = append(seen, file)
	}
	if len(seen) < 8 || len(seen) > mostWalkFiles {
		t.Errorf("the walk has %d files, 8 to %d are allowed: %s", len(seen), mostWalkFiles, strings.Join(seen, " "))
	}
}

func TestLargestKnot_IsTheSetWithTheMostLines(t *testing.T) {
	lines := map[string]int{"a": 1, "b": 2, "c": 4, "d": 8, "e": 16, "f": 100}
	uses := func(all ...string) graph {
		g := graph{}
		for _, one := range all {
			g.add(one[:1], one[1:])
		}
		return g
	}
	for _, c := range []struct {
		uses graph
		want string
	}{
		{uses(), ""},
		{uses("ab", "bc", "cd", "af", "bf"), ""},
		{uses("ab", "ba"), "a b"},
		{uses("ab", "ba", "bc", "cd", "dc"), "c d"},
		{uses("ab", "bc", "ca", "cd", "de"), "a b c"},
		{uses("ab", "bc", "ca", "cd", "de", "ed"), "d e"},
		{uses("ab", "bc", "cd", "de", "ea", "xa", "ax"), "a b c d e"}, // x is another package's
	} {
		if got := strings.Join(largestKnot(lines, c.uses), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.uses, got, c.want)
		}
	}
}

// largestKnot is the strongly connected set of at least two files with the most lines
// (Tarjan 1972).
func largestKnot(lines map[string]int, uses graph) (largest []string) {
	order, low, stack, most := map[string]int{}, map[string]int{}, []string(nil), 0
	var visit func(file string)
	visit = func(file string) {
		order[file] = len(order) + 1
		low[file] = order[file]
		stack = append(stack, file)
		for next := range uses[file] {
			if _, own := lines[next]; !own {
				continue
			}
			if order[next] == 0 {
				visit(next)
				low[file] = min(low[file], low[next])
			} else if slices.Contains(stack, next) {
				low[file] = min(low[file], order[next])
			}
		}
		if low[file] != order[file] {
			return
		}
		at := slices.Index(stack, file)
		knot, sum := slices.Clone(stack[at:]), 0
		stack = stack[:at]
		for _, one := range knot {
			sum += lines[one]
		}
		if len(knot) > 1 && sum > most {
			slices.Sort(knot)
			largest, most = knot, sum
		}
	}
	for _, file := range slices.Sorted(maps.Keys(lines)) {
		if order[file] == 0 {
			visit(file)
		}
	}
	return largest
}
