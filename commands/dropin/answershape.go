// The shape of an answer, from the value that a path returns.

package dropin

import (
	"errors"
	"slices"
	"strings"
)

// containsArg reports whether the answer contains an argument.
func (s Shape) containsArg(arg int) bool {
	return slices.ContainsFunc(s.parts, func(p replyPart) bool { return p.from == fromArgument && p.n == arg }) ||
		slices.ContainsFunc(s.items, func(item Shape) bool { return item.containsArg(arg) })
}

// showsKey reports whether the answer shows the value of a key or its remaining time.
func (s Shape) showsKey() bool {
	return s.is(fromMaster) || s.is(remainingMS) || s.is(remainingS) || slices.ContainsFunc(s.items, Shape.showsKey)
}

// withRemaining returns the shape with n for the remaining time.
func (s Shape) withRemaining(n int64) Shape {
	if s.is(remainingMS) || s.is(remainingS) {
		return Shape{kind: KindInt, n: n}
	}
	items := s.items
	s.items = nil
	for _, item := range items {
		s.items = append(s.items, item.withRemaining(n))
	}
	return s
}

// shape is the answer that Redis makes from a value: false becomes nil, and a list ends at
// its first nil.
func (v *classifier) shape(of luaValue, c *Class, state states) (Shape, error) {
	switch of.kind {
	case valueNil, valueFalse:
		return Shape{}, nil
	case valueTrue:
		return Shape{kind: KindInt, n: 1}, nil
	case valueNumber:
		return Shape{kind: KindInt, n: of.n}, nil
	case valueText:
		return Shape{kind: KindBulk, parts: []replyPart{{text: of.text}}}, nil
	case valueStatus:
		return Shape{kind: KindStatus, parts: []replyPart{{text: of.text}}}, nil
	case valueFailure:
		if strings.HasPrefix(of.text, "NOSCRIPT") || strings.HasPrefix(of.text, "READONLY") {
			return Shape{}, errors.New("its errors could be taken for a master's")
		}
		return Shape{kind: KindError, parts: []replyPart{{text: of.text}}}, nil
	case valueArg, valueKey, valueJoined:
		return Shape{kind: KindBulk, parts: partsOf(of)}, nil
	case valueRemainingMS:
		return Shape{kind: KindInt, parts: []replyPart{{from: remainingMS}}}, nil
	case valueRemainingS:
		return Shape{kind: KindInt, parts: []replyPart{{from: remainingS}}}, nil
	case valueHeld:
		if v.tokens[of.key] >= 0 && state != 0 && state&^selfStates == 0 {
			return Shape{kind: KindBulk, parts: []replyPart{{from: fromArgument, n: v.tokens[of.key] + 1}}}, nil
		}
		return Shape{kind: KindBulk, parts: []replyPart{{from: fromMaster}}}, nil
	case valueTable:
		list := Shape{kind: KindArray}
		for _, item := range of.items {
			if item.kind == valueNil {
				break
			}
			shape, err := v.shape(item, c, state)
			if err != nil {
				return Shape{}, err
			}
			list.items = append(list.items, shape)
		}
		return list, nil
	}
	return Shape{}, errors.New("its answer differs between masters, or is a number that it is given")
}

func partsOf(of luaValue) []replyPart {
	switch of.kind {
	case valueArg:
		return []replyPart{{from: fromArgument, n: of.arg + 1}}
	case valueKey:
		return []replyPart{{from: fromKey, n: of.key + 1}}
	case valueJoined:
		var parts []replyPart
		for _, item := range of.items {
			parts = append(parts, partsOf(item)...)
		}
		return parts
	}
	return []replyPart{{text: of.text}}
}

// overlaps reports whether some answer has both shapes.
func (s Shape) overlaps(t Shape) bool {
	remaining := func(s Shape) bool { return s.is(remainingMS) || s.is(remainingS) }
	switch {
	case s.same(t):
		return true
	case s.kind == KindArray && t.kind == KindArray:
		if len(s.items) != len(t.items) {
			return false
		}
		for i := range s.items {
			if !s.items[i].overlaps(t.items[i]) {
				return false
			}
		}
		return true
	case s.kind == KindInt && t.kind == KindInt:
		return remaining(s) && (remaining(t) || t.n >= 0) || remaining(t) && s.n >= 0
	case isText(s.kind) && isText(t.kind):
		return !s.is(fromScript) || !t.is(fromScript)
	}
	return false
}
