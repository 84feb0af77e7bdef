// The text of a script. Only texts that Redis reads in the same way, byte for byte, are
// parsed.

package dropin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

const (
	// maxScript is in bytes. The longest lock script in use has 3 KB.
	maxScript = 16 << 10
	// maxNesting bounds nested statements and expressions. Lua itself allows 200.
	maxNesting = 100
)

// parseText reads a text. Its errors describe what is wrong in the script.
func parseText(text string) (script []ast.Stmt, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it is not Lua: %v", cause)
		}
	}()
	if len(text) > maxScript {
		return nil, fmt.Errorf("it has %d bytes, allowed are 1 to %d", len(text), maxScript)
	}
	if strings.HasPrefix(text, "#!") {
		line, rest, _ := strings.Cut(text, "\n")
		if line = strings.TrimSuffix(line, "\r"); line != "#!lua" && !strings.HasPrefix(line, "#!lua ") {
			return nil, errors.New("its first line names another engine than lua")
		}
		if err := checkFlags(strings.TrimPrefix(line, "#!lua")); err != nil {
			return nil, err
		}
		text = "\n" + rest
	}
	if err := checkBytes(text); err != nil {
		return nil, err
	}
	script, err = parse.Parse(bytes.NewReader([]byte(text)), "script")
	if err != nil {
		reason, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		return nil, fmt.Errorf("it is not Lua: %s", strings.Trim(short(reason), "'"))
	}
	return script, nil
}

// scriptFlags has the flags that Redis knows. None of them changes what a lock script does.
var scriptFlags = []string{"allow-oom", "allow-stale", "no-cluster", "no-writes", "allow-cross-slot-keys"}

// checkFlags rejects a first line that Redis rejects, in its words.
func checkFlags(words string) error {
	for _, word := range strings.Fields(words) {
		flags, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return fmt.Errorf("unknown lua shebang option: %s", short(word))
		}
		for _, flag := range strings.Split(flags, ",") {
			if flag != "" && !slices.Contains(scriptFlags, flag) {
				return fmt.Errorf("unexpected flag in script shebang: %s", strings.Trim(short(flag), "'"))
			}
		}
	}
	return nil
}

// checkBytes rejects bytes that this parser and the one of Redis could read differently:
// escapes in strings, and control characters other than a tab and the end of a line. In
// Redis, a carriage return alone ends a line, and so a comment.
func checkBytes(text string) error {
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\\':
			return fmt.Errorf("line %d: it has a backslash, which no known lock script has", lineAt(text, i))
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n', c == '\n', c == '\t':
		case c < ' ' || c == 0x7f:
			return fmt.Errorf("line %d: it has the control character 0x%02x, allowed are tabs and ends of lines", lineAt(text, i), c)
		}
	}
	return nil
}

func lineAt(text string, i int) int { return 1 + strings.Count(text[:i], "\n") }

// short quotes a word of a script for an error. It replaces characters that could break the
// line.
func short(word string) string {
	const maxLength = 32
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '\'' {
			return '?'
		}
		return r
	}, word[:min(len(word), maxLength)])
	return "'" + clean + "'"
}

// refusal is a panic that ends the examination of a script: why it is no lock script.
// classOfText turns it into an error.
type refusal string

func refuse(format string, args ...any) refusal { return refusal(fmt.Sprintf(format, args...)) }

func refuseAt(line int, format string, args ...any) refusal {
	return refuse("line %d: %s", max(line, 1), fmt.Sprintf(format, args...))
}

// operands are the expressions within an expression of the language, in the order in which
// Lua evaluates them.
func operands(x ast.Expr) []ast.Expr {
	switch n := x.(type) {
	case *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NumberExpr, *ast.StringExpr, *ast.IdentExpr, *ast.UnaryLenOpExpr:
		return nil
	case *ast.AttrGetExpr:
		return []ast.Expr{n.Key}
	case *ast.UnaryNotOpExpr:
		return []ast.Expr{n.Expr}
	case *ast.UnaryMinusOpExpr:
		return []ast.Expr{n.Expr}
	case *ast.LogicalOpExpr:
		return []ast.Expr{n.Lhs, n.Rhs}
	case *ast.RelationalOpExpr:
		return []ast.Expr{n.Lhs, n.Rhs}
	case *ast.ArithmeticOpExpr:
		return []ast.Expr{n.Lhs, n.Rhs}
	case *ast.StringConcatOpExpr:
		return []ast.Expr{n.Lhs, n.Rhs}
	case *ast.TableExpr:
		values := make([]ast.Expr, len(n.Fields))
		for i, field := range n.Fields {
			values[i] = field.Value
		}
		return values
	case *ast.FuncCallExpr:
		return n.Args
	case *ast.FunctionExpr:
		panic(refuseAt(n.Line(), "it makes a function"))
	}
	panic(refuseAt(x.Line(), "it uses '...', which lock scripts have no use for"))
}

// source is the text of a name, name.field, #name or a number, and "" for any other expression.
func source(x ast.Expr) string {
	switch n := x.(type) {
	case *ast.IdentExpr:
		return n.Value
	case *ast.NumberExpr:
		return n.Value
	case *ast.UnaryLenOpExpr:
		return "#" + source(n.Expr)
	case *ast.AttrGetExpr:
		object, isName := n.Object.(*ast.IdentExpr)
		if field, isText := n.Key.(*ast.StringExpr); isName && isText {
			return object.Value + "." + field.Value
		}
	}
	return ""
}
