// The evaluator, which follows every path of a script for one number of keys and
// arguments.
//
// A condition must depend on the state of the keys, on their remaining time, or on an
// argument that the class then lists as given. Any other condition is refused, so a
// master has no path that the evaluator does not follow. Every path ends because of the
// language, see checkSyntax.

package dropin

import (
	"errors"
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

const (
	// maxKeys and maxArgs bound an evaluated call. No library passes as many.
	maxKeys = 16
	maxArgs = 32
	// maxSteps bounds the work of one evaluation to some 10 ms.
	maxSteps = 100_000
	// maxPaths bounds the paths that are followed at the same time.
	maxPaths = 4096
)

// threshold is the limit that a script compares a remaining time with: less than n, or less
// than argument arg plus n.
type threshold struct {
	arg int // -1: none
	n   int64
}

// evaluator follows one script. Indexes of keys and arguments start at 0.
type evaluator struct {
	call ScriptCall

	err     error
	restart bool // run again: a key is no lock, or paths cannot be merged
	merges  bool
	steps   int
	signals map[int]bool // keys that hold lists
	touched map[int]bool // keys that a command used
	loop    int          // the key of the current loop turn, -1 outside of loops
	// commands has the lastCommand of each block, by its first statement.
	commands map[*ast.Stmt]int

	tokens    []int // by key: the argument that is its token, -1 if unknown
	time      Time  // Arg from 1
	given     map[int]bool
	numbers   map[int]bool // arguments that must be whole numbers, 0 or more
	threshold *threshold
	db        int // the argument that SELECT gets, -1 if none
	publishes bool
	writes    bool
}

// evaluate follows the script for a call.
func evaluate(script []ast.Stmt, call ScriptCall) (*evaluator, []*path, error) {
	if err := checkSyntax(script); err != nil {
		return nil, nil, err
	}
	if len(call.Keys) > maxKeys || len(call.Args) > maxArgs {
		return nil, nil, fmt.Errorf("it is called with %d keys and %d arguments, allowed are %d and %d", len(call.Keys), len(call.Args), maxKeys, maxArgs)
	}
	e := &evaluator{call: call, merges: true, signals: make(map[int]bool), commands: make(map[*ast.Stmt]int)}
	for range len(call.Keys) + 2 { // each further run knows one more signal, or merges nothing
		paths := e.run(script)
		if e.restart && e.err == nil {
			continue
		}
		return e, paths, e.err
	}
	return nil, nil, errors.New("its keys are used as different types")
}

// run follows all paths once.
func (e *evaluator) run(script []ast.Stmt) []*path {
	e.err, e.restart, e.loop = nil, false, -1
	e.touched, e.given, e.numbers = make(map[int]bool), make(map[int]bool), make(map[int]bool)
	e.tokens = make([]int, len(e.call.Keys))
	for i := range e.tokens {
		e.tokens[i] = -1
	}
	e.time, e.threshold, e.db, e.publishes, e.writes = Time{}, nil, -1, false, false
	first := &path{keys: make([]keyPath, len(e.call.Keys))}
	for i := range first.keys {
		first.keys[i].before = allStates
	}
	return e.block([]*path{first}, script, false)
}

// refuse records the first reason.
func (e *evaluator) refuse(line int, format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("line %d: %s", max(line, 1), fmt.Sprintf(format, args...))
	}
}

// stopped reports whether the evaluation goes no further.
func (e *evaluator) stopped() bool { return e.err != nil || e.restart }

// step counts one unit of work. It returns false if the evaluation must stop.
func (e *evaluator) step(line int) bool {
	if e.steps++; e.steps > maxSteps {
		e.refuse(line, "it has too many ways to run, more than %d steps in all", maxSteps)
	}
	return !e.stopped()
}

// block follows statements. moreFollow means that commands may run after them.
func (e *evaluator) block(paths []*path, stmts []ast.Stmt, moreFollow bool) []*path {
	base := -1
	for _, p := range paths {
		if !p.returned {
			base = len(p.locals)
		}
	}
	for i, stmt := range stmts {
		follows := moreFollow || i < e.lastCommand(stmts)
		var next []*path
		for _, p := range paths {
			if e.stopped() {
				return nil
			}
			if p.returned {
				next = append(next, p)
				continue
			}
			next = append(next, e.statement(p, stmt, follows)...)
		}
		if paths = next; len(paths) > maxPaths {
			e.refuse(stmt.Line(), "its keys can be held in more than %d ways that it tells apart", maxPaths)
			return nil
		}
	}
	for _, p := range paths {
		if !p.returned && base >= 0 {
			p.locals = p.locals[:base]
		}
	}
	return paths
}

// lastCommand is the index of the last statement that may call a command, -1 if there is
// none.
func (e *evaluator) lastCommand(stmts []ast.Stmt) int {
	if last, known := e.commands[&stmts[0]]; known {
		return last
	}
	last := len(stmts) - 1
	for last >= 0 && !hasCommand(stmts[last]) {
		last--
	}
	e.commands[&stmts[0]] = last
	return last
}

func (e *evaluator) statement(p *path, stmt ast.Stmt, moreFollow bool) []*path {
	if !e.step(stmt.Line()) {
		return nil
	}
	switch n := stmt.(type) {
	case *ast.LocalAssignStmt:
		return e.declare(p, n)
	case *ast.AssignStmt:
		return e.assign(p, n)
	case *ast.FuncCallStmt:
		return pathsOf(e.expression(p, n.Expr))
	case *ast.DoBlockStmt:
		return e.block([]*path{p}, n.Stmts, moreFollow)
	case *ast.IfStmt:
		return e.choose(p, n, moreFollow)
	case *ast.ReturnStmt:
		return e.answer(p, n)
	case *ast.NumberForStmt:
		return e.countingLoop(p, n, moreFollow)
	case *ast.GenericForStmt:
		return e.listLoop(p, n, moreFollow)
	}
	e.refuse(stmt.Line(), "it has a statement that lock scripts have no use for")
	return nil
}

func (e *evaluator) declare(p *path, n *ast.LocalAssignStmt) []*path {
	return e.each(p, n.Exprs, func(p *path, values []luaValue) []*path {
		for i, name := range n.Names {
			p.locals = append(p.locals, local{name, valueAt(values, i)})
		}
		return []*path{p}
	})
}

// assign sets locals. A script cannot assign to anything else.
func (e *evaluator) assign(p *path, n *ast.AssignStmt) []*path {
	indexes := make([]int, len(n.Lhs))
	for i, target := range n.Lhs {
		if indexes[i] = p.find(nameOf(target)); indexes[i] < 0 {
			e.refuse(n.Line(), "it makes or replaces the global %s", short(nameOf(target)))
			return nil
		}
	}
	return e.each(p, n.Rhs, func(p *path, values []luaValue) []*path {
		for i, index := range indexes {
			p.locals[index].value = valueAt(values, i)
		}
		return []*path{p}
	})
}

func (e *evaluator) choose(p *path, n *ast.IfStmt, moreFollow bool) []*path {
	var out []*path
	for _, b := range e.expression(p, n.Condition) {
		stmts := n.Else
		if e.truth(n.Line(), b.value) {
			stmts = n.Then
		}
		out = append(out, e.block([]*path{b.path}, stmts, moreFollow)...)
	}
	return out
}

// truth reports whether a condition holds. It refuses an unknown condition.
func (e *evaluator) truth(line int, v luaValue) bool {
	if v.kind == valueUnknown {
		e.refuse(line, "a condition depends on a reply that differs between masters")
	}
	return v.truth()
}

// answer ends the path. Redis uses the first of several values.
func (e *evaluator) answer(p *path, n *ast.ReturnStmt) []*path {
	return e.each(p, n.Exprs, func(p *path, values []luaValue) []*path {
		p.returned, p.reply = true, valueAt(values, 0)
		return []*path{p}
	})
}

// countingLoop is for i = 1, #KEYS.
func (e *evaluator) countingLoop(p *path, n *ast.NumberForStmt, moreFollow bool) []*path {
	return e.iterate(p, n.Line(), n.Stmts, moreFollow, func(p *path, i int) {
		p.locals = append(p.locals, local{n.Name, numberValue(int64(i + 1))})
	})
}

// listLoop is for i, key in ipairs(KEYS).
func (e *evaluator) listLoop(p *path, n *ast.GenericForStmt, moreFollow bool) []*path {
	return e.iterate(p, n.Line(), n.Stmts, moreFollow, func(p *path, i int) {
		p.locals = append(p.locals, local{n.Names[0], numberValue(int64(i + 1))})
		if len(n.Names) == 2 {
			p.locals = append(p.locals, local{n.Names[1], luaValue{kind: valueKey, key: i}})
		}
	})
}

// iterate follows the body of a loop once for each key.
func (e *evaluator) iterate(p *path, line int, body []ast.Stmt, moreFollow bool, start func(p *path, i int)) []*path {
	defer func() { e.loop = -1 }()
	paths, base := []*path{p}, len(p.locals)
	for i := range e.call.Keys {
		var next []*path
		for _, p := range paths {
			if e.stopped() {
				return nil
			}
			if p.returned {
				next = append(next, p)
				continue
			}
			e.loop = i
			start(p, i)
			next = append(next, e.block([]*path{p}, body, true)...)
		}
		for _, p := range next {
			if !p.returned {
				p.locals = p.locals[:base]
			}
		}
		if paths = next; len(paths) > maxPaths {
			e.refuse(line, "its keys can be held in more than %d ways that it tells apart", maxPaths)
			return nil
		}
		if e.merges && !moreFollow {
			paths = merge(paths, i)
		}
	}
	return paths
}

// merge keeps one of all paths that have the same rest. Only commands of the same loop may
// follow, each on the key of its own turn (see touch).
func merge(paths []*path, last int) []*path {
	found := make(map[string]*path)
	out := paths[:0:0]
	for _, p := range paths {
		key := ""
		if !p.returned {
			key = p.mergeKey(last)
		}
		if same := found[key]; key != "" && same != nil {
			same.absorb(p)
			continue
		}
		found[key] = p
		out = append(out, p)
	}
	return out
}

// touch records the use of a key. If a command in a loop uses a key other than that of its
// turn, merged paths would differ, so the evaluation starts again without merging.
func (e *evaluator) touch(key int) {
	e.touched[key] = true
	if e.merges && e.loop >= 0 && e.loop != key {
		e.merges, e.restart = false, true
	}
}

// each evaluates expressions from left to right, and calls then with their values.
func (e *evaluator) each(p *path, exprs []ast.Expr, then func(*path, []luaValue) []*path) []*path {
	var out []*path
	for _, l := range e.list(p, exprs) {
		out = append(out, then(l.path, l.values)...)
	}
	return out
}

// valueList has the values of several expressions on a path.
type valueList struct {
	path   *path
	values []luaValue
}

func (e *evaluator) list(p *path, exprs []ast.Expr) []valueList {
	lists := []valueList{{path: p}}
	for _, x := range exprs {
		var next []valueList
		for _, l := range lists {
			for _, b := range e.expression(l.path, x) {
				next = append(next, valueList{b.path, append(slices.Clone(l.values), b.value)})
			}
		}
		lists = next
	}
	if e.stopped() {
		return nil
	}
	return lists
}

func valueAt(values []luaValue, i int) luaValue {
	if i < len(values) {
		return values[i]
	}
	return luaValue{}
}

func pathsOf(branches []branch) []*path {
	paths := make([]*path, len(branches))
	for i, b := range branches {
		paths[i] = b.path
	}
	return paths
}
