// Which scripts are the same but for their looks? The normal form of a script
// leaves out comments, spacing, semicolons, kinds of quotes, the names of
// locals and the case of command and option words.
package dropin

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"reflect"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Form is the hash of a normal form.
type Form [sha256.Size]byte

// deepest nesting of a script: what is made of it is walked recursively. Lua
// itself gives up at 200.
const deepest = 100

// former writes a normal form into a hash.
type former struct {
	out   hash.Hash
	names map[string]int // what locals are called instead; by first declaration
	depth int
}

// formOf is the normal form of a parsed script. ok is false if it is nested
// too deeply to be looked at.
func formOf(script []ast.Stmt) (form Form, ok bool) {
	f := &former{out: sha256.New(), names: make(map[string]int)}
	if !f.declare(reflect.ValueOf(script)) || !f.write(reflect.ValueOf(script)) {
		return form, false
	}
	f.out.Sum(form[:0])
	return form, true
}

// declare collects the names of all locals. One that is also the name of a
// global stays as it is: renaming it could make different scripts alike.
func (f *former) declare(v reflect.Value) bool {
	return walk(v, deepest, func(node any) {
		for _, name := range declared(node) {
			if _, known := f.names[name]; !known && !globalNames[name] {
				f.names[name] = len(f.names)
			}
		}
	})
}

// declared is the locals that a node makes.
func declared(node any) []string {
	switch n := node.(type) {
	case *ast.LocalAssignStmt:
		return n.Names
	case *ast.GenericForStmt:
		return n.Names
	case *ast.NumberForStmt:
		return []string{n.Name}
	case *ast.ParList:
		return n.Names
	}
	return nil
}

// walk visits every node of a tree; false if it is deeper than allowed.
func walk(v reflect.Value, depth int, visit func(node any)) bool {
	if depth < 0 {
		return false
	}
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || walk(v.Elem(), depth, visit)
	case reflect.Pointer:
		if v.IsNil() {
			return true
		}
		visit(v.Interface())
		return walk(v.Elem(), depth-1, visit)
	case reflect.Slice:
		for i := range v.Len() {
			if !walk(v.Index(i), depth, visit) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).Anonymous && !walk(v.Field(i), depth, visit) {
				return false
			}
		}
	}
	return true
}

// write puts a value into the hash so that no two trees give the same bytes.
// The embedded fields of a node are its place in the text.
func (f *former) write(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			f.put("nil")
			return true
		}
		return f.write(v.Elem())
	case reflect.Pointer:
		if v.IsNil() {
			f.put("nil")
			return true
		}
		return f.node(v)
	case reflect.Slice:
		f.put("list" + strconv.Itoa(v.Len()))
		for i := range v.Len() {
			if !f.write(v.Index(i)) {
				return false
			}
		}
	case reflect.String:
		f.name(v.String())
	case reflect.Bool:
		f.put(strconv.FormatBool(v.Bool()))
	}
	return true
}

// name writes a name: a local's number or the name itself.
func (f *former) name(name string) {
	if n, local := f.names[name]; local {
		f.put("$" + strconv.Itoa(n))
		return
	}
	f.put("=" + name)
}

func (f *former) node(v reflect.Value) bool {
	if f.depth++; f.depth > deepest {
		return false
	}
	defer func() { f.depth-- }()
	f.put(v.Elem().Type().Name())
	switch n := v.Interface().(type) {
	case *ast.StringExpr:
		f.put("'" + n.Value)
		return true
	case *ast.NumberExpr:
		f.put("#" + n.Value)
		return true
	case *ast.FuncCallExpr:
		return f.call(n)
	}
	for i := range v.Elem().NumField() {
		if !v.Elem().Type().Field(i).Anonymous && !f.write(v.Elem().Field(i)) {
			return false
		}
	}
	return true
}

// call: the command word and SET's option words mean the same in every case.
func (f *former) call(n *ast.FuncCallExpr) bool {
	command := commandOf(n)
	for i, value := range []any{n.Func, n.Receiver, n.AdjustRet} {
		if value == nil {
			f.put("none" + strconv.Itoa(i))
		} else if !f.write(reflect.ValueOf(value)) {
			return false
		}
	}
	f.put("." + n.Method)
	f.put(fmt.Sprint("args", len(n.Args)))
	for i, arg := range n.Args {
		word, isText := arg.(*ast.StringExpr)
		switch {
		case isText && command != "" && (i == 0 || command == "SET" && i > 2 && setWords[upper(word.Value)]):
			f.put("!" + upper(word.Value))
		case !f.write(reflect.ValueOf(arg)):
			return false
		}
	}
	return true
}

var setWords = map[string]bool{"NX": true, "XX": true, "EX": true, "PX": true, "EXAT": true, "PXAT": true, "GET": true, "KEEPTTL": true, "IFEQ": true}

// commandOf is the upper-case command of redis.call("command", …), "" if the
// expression is something else.
func commandOf(n *ast.FuncCallExpr) string {
	if object, field := fieldOf(n.Func); (object != "redis" && object != "server") || (field != "call" && field != "pcall") || len(n.Args) == 0 {
		return ""
	}
	if word, ok := n.Args[0].(*ast.StringExpr); ok {
		return upper(word.Value)
	}
	return ""
}

// fieldOf takes name.field apart.
func fieldOf(e ast.Expr) (object, field string) {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok {
		return "", ""
	}
	name, ok1 := get.Object.(*ast.IdentExpr)
	key, ok2 := get.Key.(*ast.StringExpr)
	if !ok1 || !ok2 {
		return "", ""
	}
	return name.Value, key.Value
}

// put writes a word with its length in front.
func (f *former) put(word string) {
	fmt.Fprintf(f.out, "%d:%s", len(word), word)
}
