// What can the commands of a script reach, whatever its arguments are? Nothing
// but the keys that it is called with, the database of its connection, and
// channels that are no business of the daemon's. A probe cannot show this: what
// is behind "and" and "or" may wait for a value that no probe has.
package dropin

import (
	"reflect"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// place is an argument of a command; e is nil if there is none.
type place struct {
	line int
	e    ast.Expr
}

// parameters of a function that the script has made under a name.
type parameters struct {
	function string
	list     *ast.ParList
}

// followKeys learns which parameters are only ever given elements of KEYS. All are
// taken for such until a call says otherwise; functions are called by their names
// alone, uses has seen to it.
func (s *survey) followKeys(tree reflect.Value) {
	named := make(map[*ast.ParList]bool)
	for _, g := range s.given {
		named[g.list] = true
	}
	calls := make(map[string][][]ast.Expr)
	walk(tree, deepest, func(node any) {
		switch n := node.(type) {
		case *ast.ParList:
			for _, name := range n.Names {
				s.fromKeys[name] = s.fromKeys[name] && named[n]
			}
		case *ast.FuncCallExpr:
			name := nameOf(n.Func)
			calls[name] = append(calls[name], n.Args)
		}
	})
	for changed := true; changed; {
		changed = false
		for _, g := range s.given {
			for i, name := range g.list.Names {
				for _, args := range calls[g.function] {
					if e := valueOf(args, i); s.fromKeys[name] && e != nil && !s.keyed(e) {
						s.fromKeys[name], changed = false, true
					}
				}
			}
		}
	}
}

// keyed says whether an expression is an element of KEYS, or several.
func (s *survey) keyed(e ast.Expr) bool {
	name := nameOf(e)
	return elementOf("KEYS", e) || name != "" && s.fromKeys[name] && !s.assigned[name]
}

// reach says what else than its keys the script may reach, or nil.
func (s *survey) reach() error {
	for _, key := range s.keys {
		if !s.seeks && !s.keyed(key.e) {
			s.refuse(key.line, "a key is not taken from KEYS as it is, and may be one that is not among KEYS")
		}
	}
	for _, channel := range s.channels {
		if !s.harmlessChannel(channel.e) {
			s.refuse(channel.line, "a channel is neither taken from KEYS or ARGV as it is nor written in the script, or is the daemon's own")
		}
	}
	for _, db := range s.selects {
		if selected := argument(db.e); selected == "" || selected != argument(s.selects[0].e) {
			s.refuse(db.line, "the database that it selects is not one of its arguments as it is")
		}
	}
	return s.err
}

// reserved is in the names of what belongs to the daemon.
const reserved = "redlockd:"

// harmlessChannel: what comes with the call is looked at when it comes.
func (s *survey) harmlessChannel(e ast.Expr) bool {
	if text, ok := e.(*ast.StringExpr); ok {
		return !strings.Contains(text.Value, reserved)
	}
	name := nameOf(e)
	return s.keyed(e) || elementOf("ARGV", e) || name != "" && s.fromArgs[name] && !s.assigned[name]
}

// argument is the number in ARGV[n] or tonumber(ARGV[n]), "" for anything else.
func argument(e ast.Expr) string {
	if n, ok := e.(*ast.FuncCallExpr); ok && nameOf(n.Func) == "tonumber" && len(n.Args) == 1 {
		e = n.Args[0]
	}
	get, ok := e.(*ast.AttrGetExpr)
	if !ok || nameOf(get.Object) != "ARGV" {
		return ""
	}
	n, ok := get.Key.(*ast.NumberExpr)
	if !ok {
		return ""
	}
	return n.Value
}

// valueOf is what the i-th name of a list is given: the last expression of the
// other side may be several values. It is nil if that is nothing.
func valueOf(list []ast.Expr, i int) ast.Expr {
	if i < len(list) {
		return list[i]
	}
	if len(list) > 0 && isMany(list[len(list)-1]) {
		return list[len(list)-1]
	}
	return nil
}

// isMany says whether an expression at the end of a list may be several values.
func isMany(e ast.Expr) bool {
	switch e.(type) {
	case *ast.FuncCallExpr, *ast.Comma3Expr:
		return true
	}
	return false
}

// nameOf is the name that an expression is, "" if it is none.
func nameOf(e ast.Expr) string {
	if name, ok := e.(*ast.IdentExpr); ok {
		return name.Value
	}
	return ""
}

// elementOf is table[…] or unpack(table).
func elementOf(table string, e ast.Expr) bool {
	switch n := e.(type) {
	case *ast.AttrGetExpr:
		return nameOf(n.Object) == table
	case *ast.FuncCallExpr:
		return nameOf(n.Func) == "unpack" && len(n.Args) == 1 && nameOf(n.Args[0]) == table
	}
	return false
}

// over is pairs(table) or ipairs(table).
func over(list []ast.Expr, table string) bool {
	if len(list) != 1 {
		return false
	}
	n, ok := list[0].(*ast.FuncCallExpr)
	if !ok {
		return false
	}
	name := nameOf(n.Func)
	return (name == "pairs" || name == "ipairs") && len(n.Args) == 1 && nameOf(n.Args[0]) == table
}
