// The evaluator, which follows every path of a script for one number of keys and
// arguments.
//
// It runs each statement as Lua does, once for each way. A condition must depend on the state of
// the keys, on their remaining time, or on an argument that the class then lists as given. Any
// other condition is refused. Where it is known what the keys hold, one way is left.
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
	// maxPaths bounds the paths that are followed at the same time.
	maxPaths = 4096
	// maxLocals is Lua's own bound.
	maxLocals = 200
)

// evaluator follows one script.
type evaluator struct {
	evaluation
	paths  []*path
	merged []keyPath // of merged paths, the keys whose turns were over
}

// newEvaluator prepares for a call, and for keys that are held so, nil = in any way.
func newEvaluator(call ScriptCall, held []*KeyView) *evaluator {
	return &evaluator{evaluation: evaluation{call: call, held: held, whole: make(map[ast.Stmt]bool), given: make(map[int]bool)}}
}

// evaluate follows a script of the language.
func (e *evaluator) evaluate(script []ast.Stmt) {
	if len(e.call.Keys) > maxKeys || len(e.call.Args) > maxArgs {
		panic(refuse("it is called with %d keys and %d arguments, allowed are %d and %d", len(e.call.Keys), len(e.call.Args), maxKeys, maxArgs))
	}
	for !e.follow(script) { // the next run merges in one loop less
	}
}

// follow follows all paths. It returns false if it must begin again.
func (e *evaluator) follow(script []ast.Stmt) (done bool) {
	defer func() {
		cause := recover()
		if _, restart := cause.(again); cause != nil && !restart {
			panic(cause)
		}
	}()
	e.evaluation = evaluation{
		call: e.call, held: e.held, steps: e.steps, whole: e.whole,
		touched: make(map[int]bool), given: e.given, numbers: make(map[int]bool),
		tokens: slices.Repeat([]int{-1}, len(e.call.Keys)), db: -1,
	}
	e.merged = nil
	first := &path{keys: slices.Repeat([]keyPath{{before: allStates}}, len(e.call.Keys)), passed: make(map[ast.Stmt]int)}
	for i, k := range e.held {
		if k != nil {
			first.keys[i].before = 1 << k.State
		}
	}
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
		if len(e.path.locals)+len(n.Names) > maxLocals {
			panic(e.refusal("it has more than %d locals, as Lua allows", maxLocals))
		}
		e.work(len(n.Names))
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
