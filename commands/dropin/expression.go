// The evaluation of expressions. A comparison with the value of a key splits the path.

package dropin

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// branch is a path with the value of an expression on it.
type branch struct {
	path  *path
	value luaValue
}

func (e *evaluator) one(p *path, v luaValue) []branch { return []branch{{p, v}} }

func (e *evaluator) expression(p *path, x ast.Expr) []branch {
	if !e.step(x.Line()) {
		return nil
	}
	switch n := x.(type) {
	case *ast.NilExpr:
		return e.one(p, luaValue{})
	case *ast.TrueExpr:
		return e.one(p, boolValue(true))
	case *ast.FalseExpr:
		return e.one(p, boolValue(false))
	case *ast.NumberExpr:
		return e.number(p, n)
	case *ast.StringExpr:
		return e.one(p, luaValue{kind: valueText, text: n.Value})
	case *ast.IdentExpr:
		return e.name(p, n)
	case *ast.AttrGetExpr:
		return e.element(p, n)
	case *ast.UnaryLenOpExpr:
		return e.length(p, n)
	case *ast.UnaryNotOpExpr:
		return e.convert(p, n.Line(), n.Expr, e.negation)
	case *ast.UnaryMinusOpExpr:
		return e.convert(p, n.Line(), n.Expr, e.minus)
	case *ast.LogicalOpExpr:
		return e.logic(p, n)
	case *ast.TableExpr:
		return e.table(p, n)
	case *ast.FuncCallExpr:
		return e.function(p, n)
	case *ast.RelationalOpExpr:
		return e.binary(p, n.Lhs, n.Rhs, func(p *path, l, r luaValue) []branch { return e.compare(p, n.Line(), n.Operator, l, r) })
	case *ast.ArithmeticOpExpr:
		return e.binary(p, n.Lhs, n.Rhs, func(p *path, l, r luaValue) []branch { return e.arithmetic(p, n.Line(), n.Operator, l, r) })
	case *ast.StringConcatOpExpr:
		return e.binary(p, n.Lhs, n.Rhs, func(p *path, l, r luaValue) []branch { return e.join(p, n.Line(), l, r) })
	}
	e.refuse(x.Line(), "it has an expression that lock scripts have no use for")
	return nil
}

// binary evaluates both sides, the left one first.
func (e *evaluator) binary(p *path, left, right ast.Expr, then func(*path, luaValue, luaValue) []branch) []branch {
	var out []branch
	for _, l := range e.list(p, []ast.Expr{left, right}) {
		out = append(out, then(l.path, l.values[0], l.values[1])...)
	}
	return out
}

func (e *evaluator) number(p *path, n *ast.NumberExpr) []branch {
	whole, ok := parseInt(n.Value)
	if !ok || whole > maxNumber {
		e.refuse(n.Line(), "it has the number %s, allowed are whole ones up to 2^53", short(n.Value))
		return nil
	}
	return e.one(p, numberValue(whole))
}

func (e *evaluator) name(p *path, n *ast.IdentExpr) []branch {
	if i := p.find(n.Value); i >= 0 {
		return e.one(p, p.locals[i].value)
	}
	e.refuse(n.Line(), "it uses %s, which lock scripts have no use for", short(n.Value))
	return nil
}

// element is KEYS[n] or ARGV[n].
func (e *evaluator) element(p *path, n *ast.AttrGetExpr) []branch {
	list := nameOf(n.Object)
	var out []branch
	for _, b := range e.expression(p, n.Key) {
		if b.value.kind != valueNumber {
			e.refuse(n.Line(), "it takes an element of %s that is not a known one", list)
			return nil
		}
		i := b.value.n - 1
		switch {
		case list == "KEYS" && i >= 0 && i < int64(len(e.call.Keys)):
			b.value = luaValue{kind: valueKey, key: int(i)}
		case list == "ARGV" && i >= 0 && i < int64(len(e.call.Args)):
			b.value = luaValue{kind: valueArg, arg: int(i)}
		default:
			b.value = luaValue{}
		}
		out = append(out, b)
	}
	return out
}

// length is #KEYS or #ARGV.
func (e *evaluator) length(p *path, n *ast.UnaryLenOpExpr) []branch {
	if isLength(n, "KEYS") {
		return e.one(p, numberValue(int64(len(e.call.Keys))))
	}
	return e.one(p, numberValue(int64(len(e.call.Args))))
}

func (e *evaluator) negation(line int, v luaValue) luaValue { return boolValue(!e.truth(line, v)) }

func (e *evaluator) minus(line int, v luaValue) luaValue {
	if v.kind != valueNumber {
		e.refuse(line, "it calculates with something other than numbers of its own")
	}
	v.n = -v.n
	return v
}

// logic evaluates the right side only where Lua does.
func (e *evaluator) logic(p *path, n *ast.LogicalOpExpr) []branch {
	var out []branch
	for _, b := range e.expression(p, n.Lhs) {
		if e.truth(n.Line(), b.value) == (n.Operator == "or") {
			out = append(out, b)
		} else {
			out = append(out, e.expression(b.path, n.Rhs)...)
		}
	}
	return out
}

// table is a list, {ok = text} or {err = text}.
func (e *evaluator) table(p *path, n *ast.TableExpr) []branch {
	exprs := make([]ast.Expr, len(n.Fields))
	kind := valueTable
	for i, field := range n.Fields {
		exprs[i] = field.Value
		if field.Key == nil {
			continue
		}
		name, ok := field.Key.(*ast.StringExpr)
		switch {
		case ok && len(n.Fields) == 1 && name.Value == "ok":
			kind = valueStatus
		case ok && len(n.Fields) == 1 && name.Value == "err":
			kind = valueFailure
		default:
			e.refuse(n.Line(), "it makes a table that is neither a list, nor {ok = text}, nor {err = text}")
			return nil
		}
	}
	var out []branch
	for _, l := range e.list(p, exprs) {
		v := luaValue{kind: kind, items: l.values}
		switch {
		case kind != valueTable:
			v = e.toReply(n.Line(), l.values[0], kind)
		case v.size() > maxItems:
			e.refuse(n.Line(), "it makes a table of more than %d values", maxItems)
			return nil
		}
		out = append(out, branch{l.path, v})
	}
	return out
}

// arithmetic calculates with numbers of the script, and adds an argument to a remaining time.
func (e *evaluator) arithmetic(p *path, line int, operator string, l, r luaValue) []branch {
	if operator == "+" && r.kind == valueRemainingMS {
		l, r = r, l
	}
	if operator == "+" && l.kind == valueRemainingMS && r.is(valueArg, valueArgNumber) {
		e.numbers[r.arg] = true
		return e.one(p, luaValue{kind: valueExtended, key: l.key, arg: r.arg})
	}
	if l.kind != valueNumber || r.kind != valueNumber {
		e.refuse(line, "it calculates with something other than numbers of its own")
		return nil
	}
	var n int64
	switch operator {
	case "+":
		n = l.n + r.n
	case "-":
		n = l.n - r.n
	default:
		e.refuse(line, "it calculates with '%s', allowed are + and -", operator)
		return nil
	}
	if n > maxNumber || n < -maxNumber {
		e.refuse(line, "it counts beyond 2^53")
		return nil
	}
	return e.one(p, numberValue(n))
}

// join is a .. b. A script can only return or publish the result.
func (e *evaluator) join(p *path, line int, l, r luaValue) []branch {
	joined := luaValue{kind: valueJoined}
	literal := 0
	for _, v := range []luaValue{l, r} {
		switch v.kind {
		case valueJoined:
			joined.items = append(joined.items, v.items...)
		case valueText, valueArg, valueKey:
			joined.items = append(joined.items, v)
		case valueNumber:
			joined.items = append(joined.items, luaValue{kind: valueText, text: strconv.FormatInt(v.n, 10)})
		default:
			e.refuse(line, "it puts a text together from something other than texts of its own, KEYS and ARGV")
			return nil
		}
	}
	for _, item := range joined.items {
		literal += len(item.text)
	}
	if len(joined.items) > maxParts || literal > maxLiteral {
		e.refuse(line, "it puts a text together from more than %d parts or %d bytes of its own", maxParts, maxLiteral)
		return nil
	}
	return e.one(p, joined)
}

// function follows the call of a command, or of one of the few functions of the language.
func (e *evaluator) function(p *path, n *ast.FuncCallExpr) []branch {
	_, field := fieldOf(n.Func)
	switch name := nameOf(n.Func); {
	case field == "call", field == "pcall":
		return e.command(p, n)
	case field == "status_reply":
		return e.convert(p, n.Line(), n.Args[0], func(line int, v luaValue) luaValue { return e.toReply(line, v, valueStatus) })
	case field == "error_reply":
		return e.convert(p, n.Line(), n.Args[0], func(line int, v luaValue) luaValue { return e.toReply(line, v, valueFailure) })
	case name == "tonumber":
		return e.convert(p, n.Line(), n.Args[0], e.toNumber)
	}
	return e.convert(p, n.Line(), n.Args[0], e.toText)
}

// convert evaluates an expression and converts its value on every path.
func (e *evaluator) convert(p *path, line int, x ast.Expr, to func(line int, v luaValue) luaValue) []branch {
	out := e.expression(p, x)
	for i := range out {
		out[i].value = to(line, out[i].value)
	}
	return out
}

func (e *evaluator) toNumber(line int, v luaValue) luaValue {
	switch v.kind {
	case valueNumber, valueRemainingMS, valueRemainingS, valueArgNumber, valueExtended:
		return v
	case valueArg:
		e.numbers[v.arg] = true
		return luaValue{kind: valueArgNumber, arg: v.arg}
	case valueText:
		if n, ok := parseInt(v.text); ok && n <= maxNumber && n >= -maxNumber {
			return numberValue(n)
		}
	}
	e.refuse(line, "it takes something for a number that may be none")
	return v
}

func (e *evaluator) toText(line int, v luaValue) luaValue {
	switch v.kind {
	case valueText, valueArg, valueKey, valueHeld, valueJoined:
		return v
	case valueNumber:
		return luaValue{kind: valueText, text: strconv.FormatInt(v.n, 10)}
	}
	e.refuse(line, "it makes a text of something other than a text or a number of its own")
	return v
}

func (e *evaluator) toReply(line int, v luaValue, kind valueKind) luaValue {
	if v.kind != valueText {
		e.refuse(line, "it answers a status or an error that is not written in the script")
	}
	return luaValue{kind: kind, text: v.text}
}
