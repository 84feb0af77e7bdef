// The evaluation of expressions. The result of a comparison is known, or depends on the state
// of a key, which then decides the way of the run.

package dropin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

func (e *evaluation) values(list []ast.Expr) []luaValue {
	values := make([]luaValue, len(list))
	for i, x := range list {
		values[i] = e.expression(x)
	}
	return values
}

func (e *evaluation) expression(x ast.Expr) luaValue {
	e.step(x.Line())
	if n, ok := x.(*ast.LogicalOpExpr); ok { // it evaluates its right side only where Lua does
		if left := e.expression(n.Lhs); e.truth(n.Line(), left) == (n.Operator == "or") {
			return left
		}
		return e.expression(n.Rhs)
	}
	base := len(e.stack)
	for _, operand := range operands(x) {
		v := e.expression(operand)
		e.stack = append(e.stack, v)
	}
	e.line = x.Line()
	v := e.apply(x, e.stack[base:])
	e.stack = e.stack[:base]
	return v
}

func (e *evaluation) apply(x ast.Expr, values []luaValue) luaValue {
	switch n := x.(type) {
	case *ast.NilExpr:
		return luaValue{}
	case *ast.TrueExpr:
		return boolValue(true)
	case *ast.FalseExpr:
		return boolValue(false)
	case *ast.NumberExpr:
		return e.number(n.Value)
	case *ast.StringExpr:
		return luaValue{kind: valueText, text: n.Value}
	case *ast.IdentExpr:
		return e.name(n.Value)
	case *ast.AttrGetExpr:
		return e.element(source(n.Object), values[0])
	case *ast.UnaryLenOpExpr:
		if source(n.Expr) == "KEYS" {
			return numberValue(int64(len(e.call.Keys)))
		}
		return numberValue(int64(len(e.call.Args)))
	case *ast.UnaryNotOpExpr:
		return boolValue(!e.truth(n.Line(), values[0]))
	case *ast.UnaryMinusOpExpr:
		return e.arithmetic("-", numberValue(0), values[0])
	case *ast.TableExpr:
		return e.table(n.Fields, values)
	case *ast.FuncCallExpr:
		return e.function(n.Func, values)
	case *ast.RelationalOpExpr:
		return boolValue(e.compare(n.Operator, values[0], values[1]))
	case *ast.ArithmeticOpExpr:
		return e.arithmetic(n.Operator, values[0], values[1])
	case *ast.StringConcatOpExpr:
		return e.join(values[0], values[1])
	}
	panic(e.refusal("it has an expression that lock scripts have no use for"))
}

func (e *evaluation) number(text string) luaValue {
	whole, ok := wholeNumber(text)
	if !ok {
		panic(e.refusal("it has the number %s, allowed are whole ones up to 2^53", short(text)))
	}
	return numberValue(whole)
}

func (e *evaluation) name(name string) luaValue {
	if l := e.path.find(name); l != nil {
		return l.value
	}
	panic(e.refusal("it uses %s, which lock scripts have no use for", short(name)))
}

// element is KEYS[n] or ARGV[n].
func (e *evaluation) element(list string, at luaValue) luaValue {
	if list != "KEYS" && list != "ARGV" {
		return e.field(list, at.text)
	}
	if at.kind != valueNumber {
		panic(e.refusal("it takes an element of %s that is not a known one", list))
	}
	i := at.n - 1
	switch {
	case list == "KEYS" && i >= 0 && i < int64(len(e.call.Keys)):
		return luaValue{kind: valueKey, key: int(i)}
	case list == "ARGV" && i >= 0 && i < int64(len(e.call.Args)):
		return luaValue{kind: valueArg, arg: int(i)}
	}
	return luaValue{}
}

// field is reply.ok or reply.err.
func (e *evaluation) field(name, field string) luaValue {
	v := e.name(name)
	switch {
	case v.kind == valueStatus && field == "ok", v.kind == valueFailure && field == "err":
		return luaValue{kind: valueText, text: v.text}
	case v.is(valueStatus, valueFailure):
		return luaValue{}
	}
	panic(e.refusal("it takes %s.%s of something that is no status and no error", short(name), field))
}

// table is a list, {ok = text} or {err = text}.
func (e *evaluation) table(fields []*ast.Field, values []luaValue) luaValue {
	for _, field := range fields {
		if field.Key == nil {
			continue
		}
		name, ok := field.Key.(*ast.StringExpr)
		switch {
		case ok && len(fields) == 1 && name.Value == "ok":
			return e.toReply(valueStatus, values[0])
		case ok && len(fields) == 1 && name.Value == "err":
			return e.toReply(valueFailure, values[0])
		}
		panic(e.refusal("it makes a table that is neither a list, nor {ok = text}, nor {err = text}"))
	}
	v := luaValue{kind: valueTable, items: slices.Clone(values)}
	if v.size() > maxItems {
		panic(e.refusal("it makes a table of more than %d values", maxItems))
	}
	return v
}

// arithmetic calculates with numbers of the script, and adds an argument to a remaining time.
func (e *evaluation) arithmetic(operator string, l, r luaValue) luaValue {
	remains := func(v luaValue) bool { return v.is(valueRemainingMS, valueRemainingS) }
	if operator == "+" && remains(r) {
		l, r = r, l
	}
	if operator == "+" && remains(l) && r.is(valueArg, valueArgNumber) {
		e.numbers[r.arg] = true
		return luaValue{kind: valueExtended, key: l.key, arg: r.arg, unit: l.unit}
	}
	if l.kind != valueNumber || r.kind != valueNumber {
		panic(e.refusal("it calculates with something other than numbers of its own"))
	}
	if operator == "-" && l.n == 0 && r.n == 0 {
		panic(e.refusal("it has a zero below zero, which Lua prints as -0"))
	}
	n := l.n + r.n
	switch operator {
	case "+":
	case "-":
		n = l.n - r.n
	default:
		panic(e.refusal("it calculates with '%s', allowed are + and -", operator))
	}
	if n > maxNumber || n < -maxNumber {
		panic(e.refusal("it counts beyond 2^53"))
	}
	return numberValue(n)
}

// join is a .. b. A script can only return or publish the result.
func (e *evaluation) join(sides ...luaValue) luaValue {
	joined, literal := luaValue{kind: valueJoined}, 0
	for _, v := range sides {
		switch v.kind {
		case valueJoined:
			joined.items = append(joined.items, v.items...)
		case valueText, valueArg, valueKey, valueNumber:
			joined.items = append(joined.items, e.toText(v))
		default:
			panic(e.refusal("it puts a text together from something other than texts of its own, KEYS and ARGV"))
		}
	}
	for _, item := range joined.items {
		literal += len(item.text)
	}
	if len(joined.items) > maxParts || literal > maxLiteral {
		panic(e.refusal("it puts a text together from more than %d parts or %d bytes of its own", maxParts, maxLiteral))
	}
	return joined
}

// function is the call of a command, or of one of the few functions of the language.
func (e *evaluation) function(callee ast.Expr, args []luaValue) luaValue {
	name := ""
	if field, ok := callee.(*ast.AttrGetExpr); ok { // of redis or server
		name = field.Key.(*ast.StringExpr).Value
	} else {
		name = source(callee)
	}
	switch name {
	case "call", "pcall":
		return e.command(args)
	case "status_reply":
		return e.toReply(valueStatus, args[0])
	case "error_reply":
		v := e.toReply(valueFailure, args[0])
		v.text = strings.TrimPrefix(v.text, "-")
		if !strings.Contains(v.text, " ") {
			v.text = "ERR " + v.text // as Redis 7 does without a code
		}
		return v
	case "tonumber":
		return e.toNumber(args[0])
	}
	return e.toText(args[0])
}

func (e *evaluation) toNumber(v luaValue) luaValue {
	switch v.kind {
	case valueNumber, valueRemainingMS, valueRemainingS, valueArgNumber, valueExtended:
		return v
	case valueNil:
		return v
	case valueArg:
		if _, ok := wholeNumber(e.call.word(v.arg)); !ok && !looksNumeric(e.call.word(v.arg)) {
			e.look(v.arg)
			return luaValue{}
		}
		e.numbers[v.arg] = true
		return luaValue{kind: valueArgNumber, arg: v.arg}
	case valueText:
		if n, ok := wholeNumber(v.text); ok {
			return numberValue(n)
		}
	}
	panic(e.refusal("it takes something for a number that may be none"))
}

func (e *evaluation) toText(v luaValue) luaValue {
	switch v.kind {
	case valueText, valueArg, valueKey, valueHeld, valueJoined:
		return v
	case valueTrue, valueFalse, valueNil:
		return luaValue{kind: valueText, text: map[valueKind]string{valueTrue: "true", valueFalse: "false", valueNil: "nil"}[v.kind]}
	case valueNumber:
		if v.n > maxPrinted || v.n < -maxPrinted {
			panic(e.refusal("it makes a text of a number of more than 14 digits, which Lua rounds"))
		}
		return luaValue{kind: valueText, text: strconv.FormatInt(v.n, 10)}
	}
	panic(e.refusal("it makes a text of something other than a text or a number of its own"))
}

// looksNumeric reports whether Lua may read a word as a number that is no whole one up to 2^53.
func looksNumeric(word string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	return err == nil || strings.ContainsAny(word, "xXnN") && strings.ContainsAny(word, "0123456789")
}

func (e *evaluation) toReply(kind valueKind, v luaValue) luaValue {
	if v.kind != valueText {
		panic(e.refusal("it answers a status or an error that is not written in the script"))
	}
	return luaValue{kind: kind, text: v.text}
}

func (e *evaluation) compare(operator string, l, r luaValue) bool {
	switch operator {
	case "==":
		return e.equal(l, r)
	case "~=":
		return !e.equal(l, r)
	case "<":
		return e.less(l, r, 0)
	case "<=":
		return e.less(l, r, 1)
	case ">":
		return e.less(r, l, 0)
	}
	return e.less(r, l, 1)
}

func (e *evaluation) equal(l, r luaValue) bool {
	if l.kind > r.kind {
		l, r = r, l
	}
	known := func(v luaValue) bool { return v.is(valueNil, valueFalse, valueTrue, valueNumber, valueText) }
	switch {
	case r.kind == valueUnknown:
		panic(e.refusal("a condition depends on a reply that differs between masters"))
	case known(l) && known(r):
		return l.same(r)
	case l.is(valueNil, valueFalse, valueTrue): // r is of another kind
		return false
	case l.kind == valueNumber:
		return e.equalNumber(l.n, r)
	case r.is(valueStatus, valueFailure) && l.is(valueText, valueArg): // a table never equals a text
		return false
	case l.is(valueArg, valueKey) && r.kind == valueHeld:
		e.isToken(r.key, e.argOf(l))
		return e.was(r.key, selfStates)
	case l.kind == valueHeld && r.kind == valueKey:
		return e.equal(r, l)
	case l.is(valueText, valueArg, valueKey) && r.is(valueText, valueArg, valueKey):
		if l.same(r) {
			return true
		}
		return e.lookAt(l) == e.lookAt(r)
	}
	panic(e.refusal("a condition depends on something other than whether a key holds an argument"))
}

// argOf is the index of an argument, or of a key that stands for a value.
func (e *evaluation) argOf(v luaValue) int {
	if v.kind == valueKey {
		return len(e.call.Args) + v.key
	}
	return v.arg
}

// lookAt is a text of the script, or an argument as it is in this call.
func (e *evaluation) lookAt(v luaValue) string {
	if v.kind == valueText {
		return v.text
	}
	return e.look(e.argOf(v))
}

// equalNumber compares a value with a number of the script.
func (e *evaluation) equalNumber(n int64, v luaValue) bool {
	switch v.kind {
	case valueText, valueArg, valueKey, valueHeld, valueStatus, valueFailure, valueJoined, valueTable:
		return false // of another type
	case valueArgNumber:
		return e.numberAt(v) == n
	case valueRemainingMS, valueRemainingS:
		if n < 0 {
			return false
		}
	}
	if v.kind == valueRemainingMS && n == 0 {
		return e.below(v.key, threshold{arg: -1, n: 1})
	}
	panic(e.refusal("a condition depends on how much exactly is left, or on the value of a number"))
}

// numberAt is a number of this call, or of the script.
func (e *evaluation) numberAt(v luaValue) int64 {
	if v.kind == valueNumber {
		return v.n
	}
	n, ok := wholeNumber(e.look(v.arg))
	if !ok {
		panic(e.refusal("it compares argument %d, which is not a whole number up to 2^53", v.arg+1))
	}
	return n
}

// less is l < r + more. l <= r is l < r + 1: all numbers are whole.
func (e *evaluation) less(l, r luaValue, more int64) bool {
	remains := func(v luaValue) bool { return v.is(valueRemainingMS, valueRemainingS) }
	known := func(v luaValue) bool { return v.is(valueNumber, valueArgNumber) }
	switch {
	case l.kind == valueNumber && l.n < more && r.kind == valueArgNumber, r.kind == valueNumber && r.n+more <= 0 && l.kind == valueArgNumber:
		return l.kind == valueNumber // Fits admits no argument below 0
	case known(l) && known(r):
		return e.numberAt(l) < e.numberAt(r)+more
	case l.kind == valueNumber && l.n < more && remains(r):
		return true
	case r.kind == valueNumber && r.n+more <= 0 && remains(l):
		return false
	case remains(l) && known(r):
		return e.below(l.key, e.limit(l, r, more))
	case known(l) && remains(r): // n < remaining is the opposite of remaining < n+1
		return !e.below(r.key, e.limit(r, l, 1-more))
	}
	panic(e.refusal("a condition depends on something other than how much is left of a key"))
}

// limit converts "less than n + more" of a remaining time to a threshold. TTL rounds to the nearest second: less
// than n of them are less than 1000 n - 500 ms.
func (e *evaluation) limit(remaining, n luaValue, more int64) threshold {
	t := threshold{arg: -1, scale: 1, n: more}
	if remaining.kind == valueRemainingS {
		t.scale, t.n = 1000, 1000*more-500
	}
	if n.kind == valueNumber {
		t.n += t.scale * n.n
		t.scale = 0
		return t
	}
	t.arg = n.arg
	return t
}

func valueAt(values []luaValue, i int) luaValue {
	if i < len(values) {
		return values[i]
	}
	return luaValue{}
}
