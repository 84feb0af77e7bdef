// What can be said of a script without running it? That it calls nothing but
// named commands on the string keys of locks, library functions and functions
// of its own: a probe shows what a script did, this shows what it cannot do for
// any arguments.
package dropin

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// harmlessNames are functions that change nothing outside of the script.
var harmlessNames = map[string]bool{
	"tonumber": true, "tostring": true, "type": true, "ipairs": true, "pairs": true, "next": true, "select": true,
	"unpack": true, "assert": true, "error": true, "rawequal": true,
	"string.sub": true, "string.len": true, "string.lower": true, "string.upper": true, "string.byte": true, "string.char": true,
	"string.format": true, "string.rep": true, "string.find": true, "string.reverse": true,
	"math.floor": true, "math.ceil": true, "math.max": true, "math.min": true, "math.abs": true,
	"table.insert": true, "table.remove": true, "table.concat": true, "table.getn": true,
	"redis.error_reply": true, "redis.status_reply": true, "redis.sha1hex": true, "redis.log": true, "redis.replicate_commands": true,
	"server.error_reply": true, "server.status_reply": true, "server.sha1hex": true, "server.log": true,
}

// tableNames are what a call brings. They stay as they are: elements may be
// read, and these functions may look at all of them.
var (
	tableNames   = map[string]bool{"KEYS": true, "ARGV": true}
	lookingNames = map[string]bool{"unpack": true, "ipairs": true, "pairs": true, "next": true, "type": true}
)

// libraryNames may only be used as library.name.
var libraryNames = map[string]bool{"redis": true, "server": true, "string": true, "math": true, "table": true}

// globalNames are those that a script finds.
var globalNames = map[string]bool{
	"redis": true, "server": true, "string": true, "math": true, "table": true, "KEYS": true, "ARGV": true,
	"tonumber": true, "tostring": true, "type": true, "ipairs": true, "pairs": true, "next": true, "select": true,
	"unpack": true, "assert": true, "error": true, "rawequal": true,
}

// survey is what was seen of a script before it was changed.
type survey struct {
	functions map[string]bool // locals that are functions of the script, and nothing else
	callers   map[string]bool // locals that are redis.call or redis.pcall, and nothing else
	assigned  map[string]bool // names that are given a value after they were made
	fromKeys  map[string]bool // locals and parameters that are elements of KEYS, and nothing else
	fromArgs  map[string]bool // locals that are elements of ARGV, and nothing else
	given     []parameters    // what the functions of the script are told
	aliases   map[ast.Expr]bool
	keys      []place // what stands where commands have their keys
	channels  []place // and where PUBLISH has its channel
	selects   []place // and SELECT its database
	seeks     bool    // it calls KEYS, which finds keys that nobody named
	asTime    map[ast.Expr]bool
	loose     map[string]bool // names that are used for more than the expiry that a command gives
	err       error
}

// examine refuses what a probe could not vouch for.
func examine(script []ast.Stmt) (*survey, error) {
	s := &survey{
		functions: make(map[string]bool), callers: make(map[string]bool), assigned: make(map[string]bool),
		fromKeys: make(map[string]bool), fromArgs: make(map[string]bool), aliases: make(map[ast.Expr]bool),
		asTime: make(map[ast.Expr]bool), loose: make(map[string]bool),
	}
	tree := reflect.ValueOf(script)
	walk(tree, deepest, s.declarations)
	allowed := make(map[ast.Expr]bool) // library names and redis.call in their places
	walk(tree, deepest, func(node any) { s.places(node, allowed) })
	walk(tree, deepest, func(node any) { s.uses(node, allowed) })
	s.followKeys(tree)
	walk(tree, deepest, func(node any) {
		if name, ok := node.(*ast.IdentExpr); ok && !s.asTime[name] {
			s.loose[name.Value] = true
		}
	})
	return s, s.err
}

func (s *survey) refuse(line int, format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("line %d: %s", max(line, 1), fmt.Sprintf(format, args...))
	}
}

// declarations learns what each local is. A name that is made twice is only
// what both of its makings say.
func (s *survey) declarations(node any) {
	for _, name := range declared(node) {
		if globalNames[name] {
			s.refuse(1, "it calls a local %s, which is the name of a global", short(name))
		}
	}
	switch n := node.(type) {
	case *ast.LocalAssignStmt:
		for i, name := range n.Names {
			s.local(name, valueOf(n.Exprs, i))
			if f, ok := valueOf(n.Exprs, i).(*ast.FunctionExpr); ok {
				s.given = append(s.given, parameters{name, f.ParList})
			}
		}
	case *ast.GenericForStmt:
		for i, name := range n.Names {
			s.note(s.fromKeys, name, i == 1 && over(n.Exprs, "KEYS"))
			s.note(s.fromArgs, name, i == 1 && over(n.Exprs, "ARGV"))
			s.note(s.functions, name, false)
			s.note(s.callers, name, false)
		}
	case *ast.ParList: // followKeys has the last word on what they are
		for _, name := range n.Names {
			s.note(s.fromKeys, name, true)
			s.note(s.fromArgs, name, false)
			s.note(s.functions, name, false)
			s.note(s.callers, name, false)
		}
	case *ast.NumberForStmt:
		s.local(n.Name, nil)
	case *ast.FuncDefStmt:
		s.refuse(n.Line(), "it makes a global function, which Redis refuses")
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			s.target(e)
		}
	}
}

func (s *survey) local(name string, value ast.Expr) {
	_, isFunction := value.(*ast.FunctionExpr)
	caller := isCaller(value)
	if caller {
		s.aliases[value] = true
	}
	s.note(s.functions, name, isFunction)
	s.note(s.callers, name, caller)
	s.note(s.fromKeys, name, elementOf("KEYS", value))
	s.note(s.fromArgs, name, elementOf("ARGV", value))
}

func (s *survey) note(set map[string]bool, name string, is bool) {
	if before, known := set[name]; known {
		is = is && before
	}
	set[name] = is
}

// target is the left side of an assignment.
func (s *survey) target(e ast.Expr) {
	switch t := e.(type) {
	case *ast.IdentExpr:
		s.assigned[t.Value] = true
		s.asTime[t] = true // being given a value is no use of the old one
		if globalNames[t.Value] {
			s.refuse(t.Line(), "it replaces the global %s", short(t.Value))
		}
	case *ast.AttrGetExpr:
		root := t.Object
		for {
			deeper, ok := root.(*ast.AttrGetExpr)
			if !ok {
				break
			}
			root = deeper.Object
		}
		if name, ok := root.(*ast.IdentExpr); ok && globalNames[name.Value] {
			s.refuse(t.Line(), "it changes the global %s", short(name.Value))
		}
	}
}

// places collects where library names and redis.call may stand.
func (s *survey) places(node any, allowed map[ast.Expr]bool) {
	switch n := node.(type) {
	case *ast.AttrGetExpr:
		object, field := fieldOf(n)
		if libraryNames[object] && (!isCaller(n) || s.aliases[n]) && field != "" || tableNames[nameOf(n.Object)] {
			allowed[n.Object] = true
		}
	case *ast.UnaryLenOpExpr:
		allowed[n.Expr] = true
	case *ast.FuncCallExpr:
		if get, ok := n.Func.(*ast.AttrGetExpr); ok && isCaller(get) {
			allowed[get.Object] = true
		}
		if object, field := fieldOf(n.Func); lookingNames[nameOf(n.Func)] || object == "table" && (field == "getn" || field == "concat") {
			for _, arg := range n.Args {
				allowed[arg] = true
			}
		}
	}
}

func (s *survey) uses(node any, allowed map[ast.Expr]bool) {
	switch n := node.(type) {
	case *ast.IdentExpr:
		_, local := s.functions[n.Value]
		switch {
		case libraryNames[n.Value] && !allowed[n]:
			s.refuse(n.Line(), "it passes %s or its call on as a value", short(n.Value))
		case tableNames[n.Value] && !allowed[n]:
			s.refuse(n.Line(), "it passes %s on as a whole, so that it could be changed", n.Value)
		case !local && !globalNames[n.Value]:
			s.refuse(n.Line(), "it uses %s, which is not known here", short(n.Value))
		}
	case *ast.FuncCallExpr:
		s.call(n)
	}
}

// call allows the four kinds of callees.
func (s *survey) call(n *ast.FuncCallExpr) {
	if n.Func == nil {
		if !harmlessNames["string."+n.Method] {
			s.refuse(n.Line(), "it calls a method %s", short(n.Method))
		}
		return
	}
	if isCaller(n.Func) {
		s.command(n)
		return
	}
	if object, field := fieldOf(n.Func); object != "" && harmlessNames[object+"."+field] {
		return
	}
	name, ok := n.Func.(*ast.IdentExpr)
	switch {
	case ok && harmlessNames[name.Value]:
	case ok && s.callers[name.Value] && !s.assigned[name.Value]:
		s.command(n)
	case ok && s.functions[name.Value] && !s.assigned[name.Value]:
	case ok:
		s.refuse(n.Line(), "it calls %s, which is not known here", short(name.Value))
	default:
		object, field := fieldOf(n.Func)
		s.refuse(n.Line(), "it calls %s, which is not known here", short(strings.Trim(object+"."+field, ".")))
	}
}

// command must be named in the text, and be one of ours.
func (s *survey) command(n *ast.FuncCallExpr) {
	if len(n.Args) == 0 {
		s.refuse(n.Line(), "it calls no command")
		return
	}
	word, ok := n.Args[0].(*ast.StringExpr)
	if !ok {
		s.refuse(n.Line(), "it computes which command it calls")
		return
	}
	c, known := mockCommands[strings.ToLower(word.Value)]
	if !known {
		s.refuse(n.Line(), "it calls %s, which is no command on the string key of a lock", short(word.Value))
		return
	}
	for i := c.first; i > 0 && i < len(n.Args) && (c.last == 0 || i <= c.last); i += max(c.step, 1) {
		s.keys = append(s.keys, place{n.Line(), n.Args[i]})
	}
	if last := len(n.Args) - 1; c.first > 0 && c.last == 0 && c.step > 1 && last > c.first && isMany(n.Args[last]) {
		s.keys = append(s.keys, place{n.Line(), n.Args[last]}) // every other value of it
	}
	name := strings.ToLower(word.Value)
	if at := valueOf(n.Args, 1); name == "publish" || name == "spublish" {
		s.channels = append(s.channels, place{n.Line(), at})
	} else if name == "select" {
		s.selects = append(s.selects, place{n.Line(), at})
	}
	s.seeks = s.seeks || name == "keys"
	if timeCommands[name] && (name != "set" || !saysIfEqual(n.Args)) {
		for _, e := range n.Args[min(2, len(n.Args)):] {
			s.timed(e)
		}
	}
}

// timeCommands compare nothing: what stands behind their key decides only
// what the key will hold and how long.
var timeCommands = map[string]bool{
	"expire": true, "pexpire": true, "expireat": true, "pexpireat": true, "set": true, "setex": true, "psetex": true,
}

// saysIfEqual: an option of SET that is no word of the text may be IFEQ, unless
// it is the value of an expiry.
func saysIfEqual(args []ast.Expr) bool {
	before := ""
	for i, e := range args {
		word, ok := e.(*ast.StringExpr)
		if i > 2 && before != "EX" && before != "PX" && before != "EXAT" && before != "PXAT" && (!ok || upper(word.Value) == "IFEQ") {
			return true
		}
		if before = ""; ok && i > 2 {
			before = upper(word.Value)
		}
	}
	return false
}

// timed notes the names in a time: the name itself, or sums of it.
func (s *survey) timed(e ast.Expr) {
	switch n := e.(type) {
	case *ast.IdentExpr:
		s.asTime[n] = true
	case *ast.ArithmeticOpExpr:
		s.timed(n.Lhs)
		s.timed(n.Rhs)
	case *ast.FuncCallExpr:
		object, _ := fieldOf(n.Func)
		if name, ok := n.Func.(*ast.IdentExpr); ok && name.Value == "tonumber" || object == "math" {
			for _, arg := range n.Args {
				s.timed(arg)
			}
		}
	}
}

// mayAssign says whether giving a name a value that no probe has seen can do
// no more than change an expiry.
func (s *survey) mayAssign(name string) bool { return name != "" && !s.loose[name] && !s.seeks }

// isCaller is redis.call or redis.pcall.
func isCaller(e ast.Expr) bool {
	object, field := fieldOf(e)
	return (object == "redis" || object == "server") && (field == "call" || field == "pcall")
}
