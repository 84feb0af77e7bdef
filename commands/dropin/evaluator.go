// The evaluator, which follows every path of a script for one number of keys and
// arguments.
//
// It runs each statement as Lua does. Where the state of a key decides, it runs the statement
// once for each way, and goes on with one path more. A condition must depend on the state of
// the keys, on their remaining time, or on an argument that the class then lists as given. Any
// other condition is refused, so a master has no path that the evaluator does not follow.
// Every path ends because of the language, see syntax.

package dropin

import (
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

const (
	// maxKeys and maxArgs bound an evaluated call. No library passes as many.
	maxKeys = 16
	maxArgs = 32
	// maxSteps bounds the work of one evaluation to some tens of ms.
	maxSteps = 300_000
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
	call  ScriptCall
	steps int

	// What makes the evaluator follow all paths anew once it is found.
	signals map[int]bool      // keys that hold lists
	whole   map[ast.Stmt]bool // loops that do not merge paths

	findings
	paths  []*path
	merged []keyPath // of merged paths, the keys whose turns were over

	// The statement that runs.
	path    *path
	line    int
	trail   []bool     // its decisions
	decided int        // how many it has made
	start   []keyPath  // the keys when it began
	other   *path      // the path for its other ways
	stack   []luaValue // operands of the expressions that are not complete
}

// findings are what the paths of a script have in common.
type findings struct {
	touched   map[int]bool // keys that a command used
	tokens    []int        // by key: the argument that is its token, -1 if unknown
	time      Time         // Arg from 1
	given     map[int]bool
	numbers   map[int]bool // arguments that must be whole numbers, 0 or more
	threshold *threshold
	db        int // the argument that SELECT gets, -1 if none
	publishes bool
	writes    bool
}

// again is a panic that makes the evaluator follow all paths anew.
type again struct{}

// evaluate follows a script of the language for a call.
func evaluate(script []ast.Stmt, call ScriptCall) *evaluator {
	if len(call.Keys) > maxKeys || len(call.Args) > maxArgs {
		panic(refuse("it is called with %d keys and %d arguments, allowed are %d and %d", len(call.Keys), len(call.Args), maxKeys, maxArgs))
	}
	e := &evaluator{call: call, signals: make(map[int]bool), whole: make(map[ast.Stmt]bool)}
	for !e.follow(script) { // the next time it knows one more signal, or merges in one loop less
	}
	return e
}

// follow follows all paths. It returns false if it must begin again.
func (e *evaluator) follow(script []ast.Stmt) (done bool) {
	defer func() {
		cause := recover()
		if _, restart := cause.(again); cause != nil && !restart {
			panic(cause)
		}
	}()
	e.findings = findings{
		touched: make(map[int]bool), given: make(map[int]bool), numbers: make(map[int]bool),
		tokens: slices.Repeat([]int{-1}, len(e.call.Keys)), db: -1,
	}
	e.merged = nil
	first := &path{keys: slices.Repeat([]keyPath{{before: allStates}}, len(e.call.Keys)), passed: make(map[ast.Stmt]int)}
	e.paths = e.block(first, script)
	return true
}

// block follows statements on a path, and returns the paths that it becomes.
func (e *evaluator) block(p *path, stmts []ast.Stmt) []*path {
	paths, base := []*path{p}, len(p.locals)
	for _, stmt := range stmts {
		paths = e.advance(paths, func(p *path) []*path { return e.statement(p, stmt) })
	}
	leave(paths, base)
	return paths
}

// leave drops the locals of a block.
func leave(paths []*path, base int) {
	for _, p := range paths {
		if !p.returned {
			p.locals = p.locals[:base]
		}
	}
}

// advance replaces each path that has not returned by those that it becomes.
func (e *evaluator) advance(paths []*path, become func(p *path) []*path) []*path {
	var next []*path
	for _, p := range paths {
		if p.returned {
			next = append(next, p)
		} else {
			next = append(next, become(p)...)
		}
	}
	if len(next) > maxPaths {
		panic(e.refusal("its keys can be held in more than %d ways that it tells apart", maxPaths))
	}
	return next
}

// eachWay runs a part of a statement once for each way that the path can go.
func (e *evaluator) eachWay(p *path, run func()) (paths []*path) {
	e.trail = e.trail[:0]
	for more := true; more; more = e.nextTrail() {
		e.path, e.decided, e.stack, e.start = p, 0, e.stack[:0], append(e.start[:0], p.keys...)
		run()
		paths = append(paths, e.path)
		p = e.other
	}
	return paths
}

// decide returns which of two ways the path goes. The other ways begin with a copy of the
// path: up to the first decision, a statement changes nothing but keys.
func (e *evaluator) decide() bool {
	if e.decided == 0 {
		e.other = e.path.clone()
		copy(e.other.keys, e.start)
	}
	if e.decided == len(e.trail) {
		e.trail = append(e.trail, true)
	}
	e.decided++
	return e.trail[e.decided-1]
}

// nextTrail changes the last decision that can be changed. It returns false if there is none.
func (e *evaluator) nextTrail() bool {
	for n := len(e.trail) - 1; n >= 0; n-- {
		if e.trail[n] {
			e.trail[n] = false
			e.trail = e.trail[:n+1]
			return true
		}
	}
	return false
}

// refusal has the line of what runs.
func (e *evaluator) refusal(format string, args ...any) refusal {
	return refuseAt(e.line, format, args...)
}

// step counts one unit of work.
func (e *evaluator) step(line int) {
	e.line = line
	if e.steps++; e.steps > maxSteps {
		panic(e.refusal("it has too many ways to run, more than %d steps in all", maxSteps))
	}
}

func (e *evaluator) statement(p *path, stmt ast.Stmt) []*path {
	e.step(stmt.Line())
	switch n := stmt.(type) {
	case *ast.DoBlockStmt:
		return e.block(p, n.Stmts)
	case *ast.IfStmt:
		var out []*path
		for _, p := range e.eachWay(p, func() { e.path.holds = e.truth(n.Line(), e.expression(n.Condition)) }) {
			stmts := n.Else
			if p.holds {
				stmts = n.Then
			}
			out = append(out, e.block(p, stmts)...)
		}
		return out
	case *ast.NumberForStmt:
		return e.loop(p, n, n.Stmts, n.Name)
	case *ast.GenericForStmt:
		return e.loop(p, n, n.Stmts, n.Names...)
	}
	return e.eachWay(p, func() { e.simple(stmt) })
}

// simple runs a statement that has no block.
func (e *evaluator) simple(stmt ast.Stmt) {
	switch n := stmt.(type) {
	case *ast.LocalAssignStmt:
		values := e.values(n.Exprs)
		for i, name := range n.Names {
			e.path.declare(name, valueAt(values, i))
		}
	case *ast.AssignStmt:
		e.assign(n)
	case *ast.FuncCallStmt:
		e.expression(n.Expr)
	case *ast.ReturnStmt: // Redis uses the first of several values
		e.path.reply, e.path.returned = valueAt(e.values(n.Exprs), 0), true
	default:
		panic(e.refusal("it has a statement that lock scripts have no use for"))
	}
}

// assign sets locals. A script cannot assign to anything else.
func (e *evaluator) assign(n *ast.AssignStmt) {
	targets := make([]*local, len(n.Lhs))
	for i, target := range n.Lhs {
		if targets[i] = e.path.find(source(target)); targets[i] == nil {
			panic(e.refusal("it makes or replaces the global %s", short(source(target))))
		}
	}
	values := e.values(n.Rhs)
	for i, target := range targets {
		target.value = valueAt(values, i)
	}
}

// truth reports whether a condition holds. It refuses an unknown condition.
func (e *evaluator) truth(line int, v luaValue) bool {
	e.line = line
	if v.kind == valueUnknown {
		panic(e.refusal("a condition depends on a reply that differs between masters"))
	}
	return !v.is(valueNil, valueFalse)
}

// loop follows the body once for each key. Its names are those of the number of the turn, and
// of the key.
func (e *evaluator) loop(p *path, loop ast.Stmt, body []ast.Stmt, names ...string) []*path {
	paths, base := []*path{p}, len(p.locals)
	for i := range e.call.Keys {
		turn := []luaValue{numberValue(int64(i + 1)), {kind: valueKey, key: i}}
		paths = e.advance(paths, func(p *path) []*path {
			for j, name := range names {
				p.declare(name, turn[j])
			}
			return e.block(p, body)
		})
		leave(paths, base)
		if !e.whole[loop] {
			paths = e.merge(paths, loop, i)
		}
	}
	return paths
}

// merge keeps one of all paths whose rest is the same after a turn of a loop, unless a command
// uses one of the keys whose turns are over (see touch).
func (e *evaluator) merge(paths []*path, loop ast.Stmt, turn int) (kept []*path) {
	found := make(map[string]bool)
	for _, p := range paths {
		key := ""
		if !p.returned {
			p.passed[loop] = turn
			key = p.mergeKey(turn)
		}
		if key == "" || !found[key] {
			found[key], kept = true, append(kept, p)
			continue
		}
		for _, k := range p.keys[:turn+1] {
			if !slices.Contains(e.merged, k) {
				e.merged = append(e.merged, k)
			}
		}
	}
	return kept
}

// touch records the use of a key. If its turn is over in a loop that merges paths, the merged
// paths would differ, so the evaluation starts again without merging there.
func (e *evaluator) touch(key int) {
	e.touched[key] = true
	over := false
	for loop, turn := range e.path.passed {
		if key <= turn {
			e.whole[loop], over = true, true
		}
	}
	if over {
		panic(again{})
	}
}

// was reports whether the key was in one of these states before the script.
func (e *evaluator) was(key int, in states) bool {
	before := &e.path.keys[key].before
	switch *before & in {
	case *before:
		return true
	case 0:
		return false
	}
	if e.decide() {
		*before &= in
		return true
	}
	*before &^= in
	return false
}

// free reports whether the key is free now.
func (e *evaluator) free(key int) bool {
	content := e.path.keys[key].content
	return content == contentNone || content == contentSame && e.was(key, stateFree)
}

// owned reports whether the key holds its token now.
func (e *evaluator) owned(key int) bool {
	content := e.path.keys[key].content
	return content == contentToken || content == contentSame && e.was(key, selfStates)
}

// below reports whether the remaining time of the key was below a threshold. A script has one
// threshold: of two, the lower one would have to be known.
func (e *evaluator) below(key int, than threshold) bool {
	if e.threshold == nil {
		e.threshold = &than
	}
	if *e.threshold != than {
		panic(e.refusal("it compares what is left with two different times"))
	}
	k := &e.path.keys[key]
	if k.remainder == remainderAny {
		k.remainder = remainderEnough
		if e.decide() {
			k.remainder = remainderBelow
		}
	}
	return k.remainder == remainderBelow
}

// isToken records that an argument is the token of a key.
func (e *evaluator) isToken(key, arg int) {
	if e.tokens[key] < 0 {
		e.tokens[key] = arg
	}
	if e.tokens[key] != arg {
		panic(e.refusal("it takes arguments %d and %d for the token", e.tokens[key]+1, arg+1))
	}
}

func valueAt(values []luaValue, i int) luaValue {
	if i < len(values) {
		return values[i]
	}
	return luaValue{}
}
