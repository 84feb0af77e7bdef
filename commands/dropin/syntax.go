// The closed language of lock scripts. It is checked in the whole text, because another
// call may reach statements that this call does not reach.
//
// The only loops are those over KEYS, which are not nested. There are no functions, and
// the text names every command. So every script of the language ends: it runs each of its
// commands at most once, or once for each key.

package dropin

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// reservedNames are the globals of the language. No local may have such a name.
var reservedNames = map[string]bool{
	"redis": true, "server": true, "KEYS": true, "ARGV": true, "tonumber": true, "tostring": true, "ipairs": true,
}

// syntax walks a script once. It refuses the first part that is outside of the language.
type syntax struct {
	depth  int
	inLoop bool
}

// deeper counts nesting.
func (s *syntax) deeper(line int) {
	if s.depth++; s.depth > maxNesting {
		panic(refuseAt(line, "it is nested more than %d deep", maxNesting))
	}
}

func (s *syntax) block(stmts []ast.Stmt) {
	s.deeper(0)
	for _, stmt := range stmts {
		s.statement(stmt)
	}
	s.depth--
}

func (s *syntax) statement(stmt ast.Stmt) {
	switch n := stmt.(type) {
	case *ast.LocalAssignStmt:
		s.names(n.Line(), n.Names...)
		s.expressions(n.Exprs...)
	case *ast.AssignStmt:
		for _, target := range n.Lhs {
			if _, ok := target.(*ast.IdentExpr); !ok {
				panic(refuseAt(n.Line(), "it changes a table"))
			}
		}
		s.expressions(n.Rhs...)
	case *ast.FuncCallStmt:
		s.expressions(n.Expr)
	case *ast.DoBlockStmt:
		s.block(n.Stmts)
	case *ast.IfStmt:
		s.expressions(n.Condition)
		s.block(n.Then)
		s.block(n.Else)
	case *ast.ReturnStmt:
		s.expressions(n.Exprs...)
	case *ast.NumberForStmt:
		s.names(n.Line(), n.Name)
		s.loop(n.Line(), source(n.Init) == "1" && (n.Step == nil || source(n.Step) == "1") && source(n.Limit) == "#KEYS", n.Stmts)
	case *ast.GenericForStmt:
		s.names(n.Line(), n.Names...)
		s.loop(n.Line(), len(n.Names) <= 2 && isEachKey(n.Exprs), n.Stmts)
	case *ast.WhileStmt, *ast.RepeatStmt:
		s.loop(stmt.Line(), false, nil)
	case *ast.FuncDefStmt:
		panic(refuseAt(stmt.Line(), "it makes a function"))
	default:
		panic(refuseAt(stmt.Line(), "it has a statement that lock scripts have no use for: break or goto"))
	}
}

// names checks the names of locals.
func (s *syntax) names(line int, names ...string) {
	for _, name := range names {
		if reservedNames[name] {
			panic(refuseAt(line, "it calls a local %s, which is the name of a global", short(name)))
		}
	}
}

func (s *syntax) loop(line int, overKeys bool, body []ast.Stmt) {
	switch {
	case !overKeys:
		panic(refuseAt(line, "it has a loop that is not over KEYS, allowed are for i = 1, #KEYS and for i, key in ipairs(KEYS)"))
	case s.inLoop:
		panic(refuseAt(line, "it has a loop within a loop"))
	}
	s.inLoop = true
	s.block(body)
	s.inLoop = false
}

func (s *syntax) expressions(list ...ast.Expr) {
	for _, x := range list {
		s.deeper(x.Line())
		s.expression(x)
		s.depth--
	}
}

func (s *syntax) expression(x ast.Expr) {
	switch n := x.(type) {
	case *ast.IdentExpr:
		if reservedNames[n.Value] {
			panic(refuseAt(n.Line(), "it passes %s on as a value", short(n.Value)))
		}
	case *ast.AttrGetExpr:
		field, _ := n.Key.(*ast.StringExpr)
		_, local := n.Object.(*ast.IdentExpr)
		ofReply := local && field != nil && (field.Value == "ok" || field.Value == "err")
		if list := source(n.Object); list != "KEYS" && list != "ARGV" && (!ofReply || reservedNames[list]) {
			if source(n) == "" {
				panic(refuseAt(n.Line(), "it takes an element of something other than KEYS and ARGV"))
			}
			panic(refuseAt(n.Line(), "it uses %s, which lock scripts have no use for", short(source(n))))
		}
	case *ast.UnaryLenOpExpr:
		if list := source(n); list != "#KEYS" && list != "#ARGV" {
			panic(refuseAt(n.Line(), "it takes the length of something other than KEYS and ARGV"))
		}
	}
	if n, ok := x.(*ast.TableExpr); ok {
		for _, field := range n.Fields { // a key of another kind would be evaluated on the masters alone
			if name, isText := field.Key.(*ast.StringExpr); field.Key != nil && (!isText || name.Value != "ok" && name.Value != "err") {
				panic(refuseAt(n.Line(), "it makes a table that is neither a list, nor {ok = text}, nor {err = text}"))
			}
		}
	}
	s.expressions(operands(x)...)
	if n, ok := x.(*ast.FuncCallExpr); ok {
		s.call(n)
	}
}

// call admits redis.call and redis.pcall with a known command, redis.status_reply,
// redis.error_reply, tonumber and tostring.
func (s *syntax) call(n *ast.FuncCallExpr) {
	if n.Func == nil {
		panic(refuseAt(n.Line(), "it calls the method %s", short(n.Method)))
	}
	callee := source(n.Func)
	switch strings.Replace(callee, "server.", "redis.", 1) {
	case "redis.call", "redis.pcall":
		s.command(n)
		return
	case "redis.status_reply", "redis.error_reply", "tonumber", "tostring":
		if len(n.Args) == 1 {
			return
		}
	}
	panic(refuseAt(n.Line(), "it calls %s, which lock scripts have no use for", short(callee)))
}

// command checks that a call names its command.
func (s *syntax) command(n *ast.FuncCallExpr) {
	if len(n.Args) == 0 {
		panic(refuseAt(n.Line(), "it calls no command"))
	}
	if _, ok := n.Args[0].(*ast.StringExpr); !ok {
		panic(refuseAt(n.Line(), "it computes which command it calls"))
	}
}

// isEachKey is ipairs(KEYS).
func isEachKey(list []ast.Expr) bool {
	if len(list) != 1 {
		return false
	}
	n, ok := list[0].(*ast.FuncCallExpr)
	return ok && source(n.Func) == "ipairs" && len(n.Args) == 1 && source(n.Args[0]) == "KEYS"
}
