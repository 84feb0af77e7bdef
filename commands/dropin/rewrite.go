// How is the syntax tree of a script changed? See program.go for why.
package dropin

import (
	"fmt"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// rewriter changes a syntax tree in place.
type rewriter struct {
	p   *program
	at  int // the block we are in
	err error
}

// open starts a block and returns the one around it.
func (rw *rewriter) open(line int) (around int) {
	around = rw.at
	rw.at = len(rw.p.blocks)
	rw.p.blocks = append(rw.p.blocks, block{line: line})
	return around
}

func (rw *rewriter) block(stmts []ast.Stmt) []ast.Stmt {
	line := 0
	if len(stmts) > 0 {
		line = stmts[0].Line()
	}
	around := rw.open(line)
	report := &ast.FuncCallStmt{Expr: call(nameReached, line, &ast.NumberExpr{Value: strconv.Itoa(rw.at)})}
	report.SetLine(line)
	out := append(make([]ast.Stmt, 0, len(stmts)+1), report)
	for _, s := range stmts {
		rw.stmt(s)
		out = append(out, s)
	}
	rw.at = around
	return out
}

func (rw *rewriter) stmt(s ast.Stmt) {
	switch n := s.(type) {
	case *ast.AssignStmt:
		rw.assigns(n)
		rw.exprs(n.Lhs)
		rw.exprs(n.Rhs)
	case *ast.LocalAssignStmt:
		rw.exprs(n.Exprs)
	case *ast.FuncCallStmt:
		n.Expr = rw.expr(n.Expr)
	case *ast.DoBlockStmt:
		n.Stmts = rw.block(n.Stmts)
	case *ast.WhileStmt:
		n.Condition = rw.expr(n.Condition)
		n.Stmts = rw.block(n.Stmts)
	case *ast.RepeatStmt:
		n.Stmts = rw.block(n.Stmts)
		n.Condition = rw.expr(n.Condition)
	case *ast.IfStmt:
		preset := isPreset(n)
		n.Condition = rw.expr(n.Condition)
		then := len(rw.p.blocks)
		n.Then = rw.block(n.Then)
		if preset {
			rw.p.blocks[then].assigns = nil
		}
		if len(n.Else) > 0 {
			n.Else = rw.block(n.Else)
		}
	case *ast.NumberForStmt:
		n.Init, n.Limit, n.Step = rw.expr(n.Init), rw.expr(n.Limit), rw.expr(n.Step)
		n.Stmts = rw.block(n.Stmts)
	case *ast.GenericForStmt:
		rw.exprs(n.Exprs)
		n.Stmts = rw.block(n.Stmts)
	case *ast.FuncDefStmt:
		n.Func.Stmts = rw.block(n.Func.Stmts)
	case *ast.ReturnStmt:
		rw.exprs(n.Exprs)
	case *ast.BreakStmt:
	default:
		rw.err = fmt.Errorf("line %d is no Lua 5.1", s.Line())
	}
}

func (rw *rewriter) assigns(n *ast.AssignStmt) {
	b := &rw.p.blocks[rw.at]
	for _, e := range n.Lhs {
		if name, ok := e.(*ast.IdentExpr); ok {
			b.assigns = append(b.assigns, name.Value)
		} else {
			b.assigns = append(b.assigns, "")
		}
	}
}

// isPreset is "if not x then x = 0 end": a number in place of nil. Scripts
// guard against answers that Redis never gives.
func isPreset(n *ast.IfStmt) bool {
	not, ok := n.Condition.(*ast.UnaryNotOpExpr)
	if !ok || len(n.Then) != 1 || len(n.Else) != 0 {
		return false
	}
	name, ok1 := not.Expr.(*ast.IdentExpr)
	set, ok2 := n.Then[0].(*ast.AssignStmt)
	if !ok1 || !ok2 || len(set.Lhs) != 1 || len(set.Rhs) != 1 {
		return false
	}
	target, ok1 := set.Lhs[0].(*ast.IdentExpr)
	_, ok2 = set.Rhs[0].(*ast.NumberExpr)
	return ok1 && ok2 && target.Value == name.Value
}

func (rw *rewriter) exprs(list []ast.Expr) {
	for i := range list {
		list[i] = rw.expr(list[i])
	}
}

func (rw *rewriter) expr(e ast.Expr) ast.Expr {
	switch n := e.(type) {
	case nil:
		return nil
	case *ast.StringExpr:
		rw.p.literals = append(rw.p.literals, n.Value)
	case *ast.NumberExpr:
		rw.p.literals = append(rw.p.literals, n.Value)
	case *ast.AttrGetExpr:
		n.Object, n.Key = rw.expr(n.Object), rw.index(n.Key)
	case *ast.TableExpr:
		for _, f := range n.Fields {
			if f.Key != nil {
				f.Key = rw.index(f.Key)
			}
			f.Value = rw.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		rw.call(n)
	case *ast.LogicalOpExpr:
		n.Lhs = rw.expr(n.Lhs)
		n.Rhs = rw.guarded(n.Rhs)
	case *ast.RelationalOpExpr:
		n.Lhs, n.Rhs = rw.expr(n.Lhs), rw.expr(n.Rhs)
	case *ast.StringConcatOpExpr:
		return rw.concat(n)
	case *ast.ArithmeticOpExpr:
		n.Lhs, n.Rhs = rw.expr(n.Lhs), rw.expr(n.Rhs)
	case *ast.UnaryMinusOpExpr:
		n.Expr = rw.expr(n.Expr)
	case *ast.UnaryNotOpExpr:
		n.Expr = rw.expr(n.Expr)
	case *ast.UnaryLenOpExpr:
		n.Expr = rw.expr(n.Expr)
	case *ast.FunctionExpr:
		n.Stmts = rw.block(n.Stmts)
	}
	return e
}

// guarded is the right side of "and" or "or": (reached(n) or it), and
// reached answers false.
func (rw *rewriter) guarded(e ast.Expr) ast.Expr {
	around := rw.open(e.Line())
	n := rw.at
	e = rw.expr(e)
	calls := rw.p.blocks[n].calls
	rw.at = around
	if !calls {
		return e
	}
	or := &ast.LogicalOpExpr{Operator: "or", Lhs: call(nameReached, e.Line(), &ast.NumberExpr{Value: strconv.Itoa(n)}), Rhs: e}
	or.SetLine(e.Line())
	return or
}

// concat makes one call of a chain of "..".
func (rw *rewriter) concat(n *ast.StringConcatOpExpr) ast.Expr {
	var operands []ast.Expr
	var e ast.Expr = n
	for {
		chain, more := e.(*ast.StringConcatOpExpr)
		if !more {
			break
		}
		operands = append(operands, rw.expr(chain.Lhs))
		e = chain.Rhs
	}
	last := rw.expr(e)
	switch multi := last.(type) { // an operand is one value, a last argument may be many
	case *ast.FuncCallExpr:
		multi.AdjustRet = true
	case *ast.Comma3Expr:
		multi.AdjustRet = true
	}
	return call(nameConcat, n.Line(), append(operands, last)...)
}

// index lets names and small numbers pass.
func (rw *rewriter) index(key ast.Expr) ast.Expr {
	switch k := key.(type) {
	case *ast.StringExpr:
		return key
	case *ast.NumberExpr:
		if n, err := strconv.Atoi(k.Value); err == nil && n >= 0 && n < smallIndex {
			return key
		}
	}
	rewritten := rw.expr(key)
	if multi, isCall := rewritten.(*ast.FuncCallExpr); isCall {
		multi.AdjustRet = true
	}
	return call(nameIndex, key.Line(), rewritten)
}

func (rw *rewriter) call(n *ast.FuncCallExpr) {
	if !harmless(n) {
		rw.p.blocks[rw.at].calls = true
	}
	if n.Func != nil {
		n.Func = rw.expr(n.Func)
	}
	if n.Receiver != nil {
		n.Receiver = rw.expr(n.Receiver)
	}
	if commandOf(n) != "" { // the name of a command is nothing to compare with
		rw.exprs(n.Args[1:])
		return
	}
	rw.exprs(n.Args)
}

// harmless is a call of a library function. No other name stands for one:
// examine has seen to it.
func harmless(n *ast.FuncCallExpr) bool {
	if n.Func == nil {
		return true // a method of a string
	}
	if name, ok := n.Func.(*ast.IdentExpr); ok {
		return harmlessNames[name.Value]
	}
	object, field := fieldOf(n.Func)
	return harmlessNames[object+"."+field]
}

// call makes a call of one of our functions.
func call(name string, line int, args ...ast.Expr) *ast.FuncCallExpr {
	f := &ast.IdentExpr{Value: name}
	f.SetLine(line)
	c := &ast.FuncCallExpr{Func: f, Args: args}
	c.SetLine(line)
	c.SetLastLine(line)
	for _, arg := range args {
		if arg.Line() == 0 {
			arg.SetLine(line)
		}
	}
	return c
}
