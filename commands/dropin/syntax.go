// The closed language of lock scripts. It is checked in the whole text, because another
// call may reach statements that this call does not reach.
//
// The only loops are those over KEYS, which are not nested. There are no functions, and
// the text names every command. So every script of the language ends: it runs each of its
// commands at most once, or once for each key.

package dropin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// reservedNames are the globals of the language. No local may have such a name.
var reservedNames = map[string]bool{
	"redis": true, "server": true, "KEYS": true, "ARGV": true, "tonumber": true, "tostring": true, "ipairs": true,
}

// syntax walks a script once.
type syntax struct {
	err    error
	depth  int
	inLoop bool
}

// checkSyntax returns an error for the first part that is outside of the language.
func checkSyntax(script []ast.Stmt) error {
	s := &syntax{}
	s.block(script)
	return s.err
}

func (s *syntax) refuse(line int, format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("line %d: %s", max(line, 1), fmt.Sprintf(format, args...))
	}
}

// deeper counts nesting. It returns false if the nesting is too deep.
func (s *syntax) deeper(line int) bool {
	if s.depth++; s.depth > maxNesting {
		s.refuse(line, "it is nested more than %d deep", maxNesting)
	}
	return s.err == nil
}

func (s *syntax) block(stmts []ast.Stmt) {
	defer func() { s.depth-- }()
	if !s.deeper(0) {
		return
	}
	for _, stmt := range stmts {
		s.statement(stmt)
	}
}

func (s *syntax) statement(stmt ast.Stmt) {
	switch n := stmt.(type) {
	case *ast.LocalAssignStmt:
		s.names(n.Line(), n.Names)
		s.expressions(n.Exprs)
	case *ast.AssignStmt:
		for _, target := range n.Lhs {
			if _, ok := target.(*ast.IdentExpr); !ok {
				s.refuse(n.Line(), "it changes a table")
			}
		}
		s.expressions(n.Rhs)
	case *ast.FuncCallStmt:
		s.expression(n.Expr)
	case *ast.DoBlockStmt:
		s.block(n.Stmts)
	case *ast.IfStmt:
		s.expression(n.Condition)
		s.block(n.Then)
		s.block(n.Else)
	case *ast.ReturnStmt:
		s.expressions(n.Exprs)
	case *ast.NumberForStmt:
		s.names(n.Line(), []string{n.Name})
		s.loop(n.Line(), isNumber(n.Init, "1") && (n.Step == nil || isNumber(n.Step, "1")) && isLength(n.Limit, "KEYS"), n.Stmts)
	case *ast.GenericForStmt:
		s.names(n.Line(), n.Names)
		s.loop(n.Line(), len(n.Names) <= 2 && isEachKey(n.Exprs), n.Stmts)
	case *ast.WhileStmt, *ast.RepeatStmt:
		s.loop(stmt.Line(), false, nil)
	case *ast.FuncDefStmt:
		s.refuse(stmt.Line(), "it makes a function")
	default:
		s.refuse(stmt.Line(), "it has a statement that lock scripts have no use for: break or goto")
	}
}

// names checks the names of locals.
func (s *syntax) names(line int, names []string) {
	for _, name := range names {
		if reservedNames[name] {
			s.refuse(line, "it calls a local %s, which is the name of a global", short(name))
		}
	}
}

func (s *syntax) loop(line int, overKeys bool, body []ast.Stmt) {
	switch {
	case !overKeys:
		s.refuse(line, "it has a loop that is not over KEYS, allowed are for i = 1, #KEYS and for i, key in ipairs(KEYS)")
	case s.inLoop:
		s.refuse(line, "it has a loop within a loop")
	}
	s.inLoop = true
	s.block(body)
	s.inLoop = false
}

func (s *syntax) expressions(list []ast.Expr) {
	for _, x := range list {
		s.expression(x)
	}
}

func (s *syntax) expression(x ast.Expr) {
	defer func() { s.depth-- }()
	if !s.deeper(x.Line()) {
		return
	}
	switch n := x.(type) {
	case *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NumberExpr, *ast.StringExpr:
	case *ast.IdentExpr:
		if reservedNames[n.Value] {
			s.refuse(n.Line(), "it passes %s on as a value", short(n.Value))
		}
	case *ast.AttrGetExpr:
		if list := nameOf(n.Object); list != "KEYS" && list != "ARGV" {
			s.refuse(n.Line(), "it uses %s, which lock scripts have no use for", calleeName(n))
			return
		}
		s.expression(n.Key)
	case *ast.UnaryLenOpExpr:
		if !isLength(n, "KEYS") && !isLength(n, "ARGV") {
			s.refuse(n.Line(), "it takes the length of something other than KEYS and ARGV")
		}
	case *ast.UnaryNotOpExpr:
		s.expression(n.Expr)
	case *ast.UnaryMinusOpExpr:
		s.expression(n.Expr)
	case *ast.LogicalOpExpr:
		s.expressions([]ast.Expr{n.Lhs, n.Rhs})
	case *ast.RelationalOpExpr:
		s.expressions([]ast.Expr{n.Lhs, n.Rhs})
	case *ast.ArithmeticOpExpr:
		s.expressions([]ast.Expr{n.Lhs, n.Rhs})
	case *ast.StringConcatOpExpr:
		s.expressions([]ast.Expr{n.Lhs, n.Rhs})
	case *ast.TableExpr:
		for _, field := range n.Fields {
			s.expression(field.Value)
		}
	case *ast.FuncCallExpr:
		s.call(n)
	case *ast.FunctionExpr:
		s.refuse(n.Line(), "it makes a function")
	default:
		s.refuse(x.Line(), "it uses '...', which lock scripts have no use for")
	}
}

// call admits redis.call and redis.pcall with a known command, redis.status_reply,
// redis.error_reply, tonumber and tostring.
func (s *syntax) call(n *ast.FuncCallExpr) {
	s.expressions(n.Args)
	object, field := fieldOf(n.Func)
	switch name := nameOf(n.Func); {
	case n.Func == nil:
		s.refuse(n.Line(), "it calls the method %s", short(n.Method))
	case isRedis(object) && (field == "call" || field == "pcall"):
		s.command(n, field == "pcall")
	case (isRedis(object) && (field == "status_reply" || field == "error_reply") || name == "tonumber" || name == "tostring") && len(n.Args) == 1:
	default:
		s.refuse(n.Line(), "it calls %s, which lock scripts have no use for", calleeName(n.Func))
	}
}

func isRedis(object string) bool { return object == "redis" || object == "server" }

// command checks one call of a command. After redis.pcall a script continues if the command
// fails, for example on a master that is out of memory or cannot write to its disk.
func (s *syntax) command(n *ast.FuncCallExpr, protected bool) {
	if len(n.Args) == 0 {
		s.refuse(n.Line(), "it calls no command")
		return
	}
	word, ok := n.Args[0].(*ast.StringExpr)
	if !ok {
		s.refuse(n.Line(), "it computes which command it calls")
		return
	}
	c, known := evaluatedCommands[strings.ToLower(word.Value)]
	switch words := len(n.Args) - 1; {
	case strings.EqualFold(word.Value, "time"):
		s.err = cmp.Or(s.err, errors.New("it asks for the TIME, so no two masters answer alike"))
	case !known:
		s.refuse(n.Line(), "it calls %s, which is no command on the string key of a lock", short(word.Value))
	case words < c.minWords || c.maxWords > 0 && words > c.maxWords:
		s.refuse(n.Line(), "it calls %s with %d arguments", short(word.Value), words)
	case c.effect == writes && protected:
		s.refuse(n.Line(), "it goes on if %s fails: redis.call ends the script then", short(word.Value))
	}
}

// hasCommand reports whether a statement of the language may call a command.
func hasCommand(stmt ast.Stmt) bool {
	switch n := stmt.(type) {
	case *ast.LocalAssignStmt:
		return slices.ContainsFunc(n.Exprs, calls)
	case *ast.AssignStmt:
		return slices.ContainsFunc(n.Rhs, calls)
	case *ast.ReturnStmt:
		return slices.ContainsFunc(n.Exprs, calls)
	case *ast.IfStmt:
		return calls(n.Condition) || slices.ContainsFunc(n.Then, hasCommand) || slices.ContainsFunc(n.Else, hasCommand)
	case *ast.DoBlockStmt:
		return slices.ContainsFunc(n.Stmts, hasCommand)
	}
	return true
}

// calls reports whether an expression of the language may call a command.
func calls(x ast.Expr) bool {
	switch n := x.(type) {
	case *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NumberExpr, *ast.StringExpr, *ast.IdentExpr, *ast.UnaryLenOpExpr:
		return false
	case *ast.AttrGetExpr:
		return calls(n.Key)
	case *ast.UnaryNotOpExpr:
		return calls(n.Expr)
	case *ast.UnaryMinusOpExpr:
		return calls(n.Expr)
	case *ast.LogicalOpExpr:
		return calls(n.Lhs) || calls(n.Rhs)
	case *ast.RelationalOpExpr:
		return calls(n.Lhs) || calls(n.Rhs)
	case *ast.ArithmeticOpExpr:
		return calls(n.Lhs) || calls(n.Rhs)
	case *ast.StringConcatOpExpr:
		return calls(n.Lhs) || calls(n.Rhs)
	case *ast.TableExpr:
		return slices.ContainsFunc(n.Fields, func(f *ast.Field) bool { return calls(f.Value) })
	}
	return true
}

func isNumber(x ast.Expr, text string) bool {
	n, ok := x.(*ast.NumberExpr)
	return ok && n.Value == text
}

// isLength is #name.
func isLength(x ast.Expr, name string) bool {
	n, ok := x.(*ast.UnaryLenOpExpr)
	return ok && nameOf(n.Expr) == name
}

// isEachKey is ipairs(KEYS).
func isEachKey(list []ast.Expr) bool {
	if len(list) != 1 {
		return false
	}
	n, ok := list[0].(*ast.FuncCallExpr)
	return ok && nameOf(n.Func) == "ipairs" && len(n.Args) == 1 && nameOf(n.Args[0]) == "KEYS"
}

// calleeName is the name or name.field of a callee, for an error.
func calleeName(x ast.Expr) string {
	object, field := fieldOf(x)
	if object == "" {
		return short(nameOf(x))
	}
	return short(object + "." + field)
}

// nameOf returns the name of an identifier, "" for any other expression.
func nameOf(x ast.Expr) string {
	if name, ok := x.(*ast.IdentExpr); ok {
		return name.Value
	}
	return ""
}

// fieldOf splits name.field.
func fieldOf(x ast.Expr) (object, field string) {
	get, ok := x.(*ast.AttrGetExpr)
	if !ok {
		return "", ""
	}
	key, ok := get.Key.(*ast.StringExpr)
	if !ok || nameOf(get.Object) == "" {
		return "", ""
	}
	return nameOf(get.Object), key.Value
}
