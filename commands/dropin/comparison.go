// The comparisons ==, ~=, <, <=, > and >=. A comparison splits the path if its result
// depends on the state of a key. It keeps one path if the result is known, and none if it
// cannot be known.

package dropin

// compare evaluates one comparison.
func (e *evaluator) compare(p *path, line int, operator string, l, r luaValue) []branch {
	switch operator {
	case "==", "~=":
		yes, no := e.equal(p, line, l, r)
		return conditionBranches(yes, no, operator == "==")
	case ">":
		return e.less(p, line, r, l, false)
	case ">=":
		return e.less(p, line, r, l, true)
	}
	return e.less(p, line, l, r, operator == "<=")
}

// conditionBranches are the branches of a condition that holds on the path yes.
func conditionBranches(yes, no *path, holds bool) (out []branch) {
	if yes != nil {
		out = append(out, branch{yes, boolValue(holds)})
	}
	if no != nil {
		out = append(out, branch{no, boolValue(!holds)})
	}
	return out
}

// decided returns the path as the one for yes or the one for no.
func decided(p *path, holds bool) (yes, no *path) {
	if holds {
		return p, nil
	}
	return nil, p
}

// equal splits a path by whether two values are equal.
func (e *evaluator) equal(p *path, line int, l, r luaValue) (yes, no *path) {
	if l.kind > r.kind {
		l, r = r, l
	}
	known := func(v luaValue) bool { return v.is(valueNil, valueFalse, valueTrue, valueNumber, valueText) }
	switch {
	case l.kind == valueUnknown || r.kind == valueUnknown:
		e.refuse(line, "a condition depends on a reply that differs between masters")
		return nil, nil
	case known(l) && known(r):
		return decided(p, l.kind == r.kind && l.n == r.n && l.text == r.text)
	case l.is(valueNil, valueFalse, valueTrue): // r is of another kind
		return decided(p, false)
	case l.kind == valueNumber:
		return e.equalNumber(p, line, l.n, r)
	case r.is(valueStatus, valueFailure) && l.is(valueText, valueArg): // a table never equals a text
		return decided(p, false)
	case l.kind == valueText && r.kind == valueArg:
		e.given[r.arg] = true
		return decided(p, e.call.Args[r.arg] == l.text)
	case l.kind == valueArg && r.kind == valueArg && l.arg == r.arg:
		return decided(p, true)
	case l.kind == valueArg && r.kind == valueHeld:
		if !e.token(line, r.key, l.arg) {
			return nil, nil
		}
		return p.split(r.key, selfStates)
	}
	e.refuse(line, "a condition depends on something other than whether a key holds an argument")
	return nil, nil
}

// equalNumber compares a value with a number of the script.
func (e *evaluator) equalNumber(p *path, line int, n int64, r luaValue) (yes, no *path) {
	switch r.kind {
	case valueText, valueArg, valueKey, valueHeld, valueStatus, valueFailure, valueJoined, valueTable:
		return decided(p, false) // of another type
	case valueRemainingMS, valueRemainingS, valueArgNumber:
		if n < 0 {
			return decided(p, false)
		}
	}
	if r.kind == valueArgNumber {
		if value, ok := parseInt(e.call.Args[r.arg]); ok {
			e.given[r.arg] = true
			return decided(p, value == n)
		}
	}
	if r.kind == valueRemainingMS && n == 0 {
		return e.splitRemaining(p, line, r.key, threshold{arg: -1, n: 1})
	}
	e.refuse(line, "a condition depends on how much exactly is left, or on the value of a number")
	return nil, nil
}

// less evaluates l < r, or l <= r.
func (e *evaluator) less(p *path, line int, l, r luaValue, orEqual bool) []branch {
	more := int64(0)
	if orEqual {
		more = 1
	}
	remains := func(v luaValue) bool { return v.is(valueRemainingMS, valueRemainingS) }
	var yes, no *path
	switch {
	case l.kind == valueNumber && r.kind == valueNumber:
		yes, no = decided(p, l.n < r.n+more)
	case l.kind == valueNumber && l.n < 0 && (remains(r) || r.kind == valueArgNumber): // both kinds are 0 or more
		yes, no = decided(p, true)
	case r.kind == valueNumber && r.n+more <= 0 && (remains(l) || l.kind == valueArgNumber):
		yes, no = decided(p, false)
	case l.kind == valueNumber && orEqual && l.n == 0 && (remains(r) || r.kind == valueArgNumber):
		yes, no = decided(p, true)
	case l.kind == valueRemainingMS && r.kind == valueNumber:
		yes, no = e.splitRemaining(p, line, l.key, threshold{arg: -1, n: r.n + more})
	case l.kind == valueRemainingMS && r.kind == valueArgNumber:
		yes, no = e.splitRemaining(p, line, l.key, threshold{arg: r.arg, n: more})
	case l.kind == valueNumber && r.kind == valueRemainingMS: // n < remaining is the opposite of remaining < n+1
		no, yes = e.splitRemaining(p, line, r.key, threshold{arg: -1, n: l.n + 1 - more})
	case l.kind == valueArgNumber && r.kind == valueRemainingMS:
		no, yes = e.splitRemaining(p, line, r.key, threshold{arg: l.arg, n: 1 - more})
	default:
		e.refuse(line, "a condition depends on something other than how much is left of a key")
	}
	return conditionBranches(yes, no, true)
}

// splitRemaining splits a path by whether the remaining time of the key was below a
// threshold. A script has one threshold: of two, the lower one would have to be known.
func (e *evaluator) splitRemaining(p *path, line, key int, than threshold) (yes, no *path) {
	if e.threshold == nil {
		e.threshold = &than
	}
	if *e.threshold != than {
		e.refuse(line, "it compares what is left with two different times")
		return nil, nil
	}
	return p.splitBelow(key)
}
