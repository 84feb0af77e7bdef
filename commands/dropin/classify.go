// classify names what a script does by what its paths do.
package dropin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// classOfText reads a script and classifies it for a call.
func classOfText(text string, call Call) (*Class, error) {
	script, err := parseText(text)
	if err != nil {
		return nil, err
	}
	e, paths, err := evaluate(script, call)
	if err != nil {
		return nil, err
	}
	v := &classifier{evaluator: e, paths: paths}
	return v.classify()
}

// change is what became of one key.
type keyChange uint8

const (
	unchanged keyChange = iota
	taken
	renewed
	deleted
	overwritten
)

// effect is a change with the expiry it gave.
type effect struct {
	change keyChange
	expiry expirySource
	fixed  int64 // ms, of expiryFixed
}

// verdict is about one script.
type classifier struct {
	*evaluator
	paths   []*path
	locks   []int
	uniform map[states]*path  // where every lock was held in one way, with enough left
	effects map[states]effect // what becomes of a lock that was held so
}

func (v *classifier) classify() (*Class, error) {
	v.findLocks()
	for _, step := range []func() error{v.findUniform, v.findEffects, v.checkPaths} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c := &Class{Keys: len(v.call.Keys), Args: len(v.call.Args), Publish: v.publishes, DB: v.db + 1}
	for i := range v.call.Keys {
		if !slices.Contains(v.locks, i) {
			c.Signals = append(c.Signals, i+1)
		}
	}
	var err error
	if c.Op, err = v.operation(); err != nil {
		return nil, err
	}
	if c.Op != Read && c.Op != Release && c.Op != Discard {
		c.Time = v.time
	}
	if err := v.roles(c); err != nil {
		return nil, err
	}
	if err := v.outcomes(c); err != nil {
		return nil, err
	}
	return c, c.checkDecisive()
}

// findLocks: a key that no command uses is no lock, if another one is.
func (v *classifier) findLocks() {
	v.locks = nil
	for i := range v.call.Keys {
		if !v.signals[i] && (v.touched[i] || len(v.touched) == 0) {
			v.locks = append(v.locks, i)
		}
	}
}

// findUniform finds the path of each way in which all locks can be held alike. There
// is exactly one, as every condition parts the ways.
func (v *classifier) findUniform() error {
	v.uniform = make(map[states]*path)
	for _, state := range eachState {
		for _, p := range v.paths {
			alike := func(i int) bool { return p.keys[i].before&state != 0 && p.keys[i].remainder != remainderBelow }
			if slices.ContainsFunc(v.locks, func(i int) bool { return !alike(i) }) {
				continue
			}
			if v.uniform[state] != nil {
				return errors.New("it has two ways to run for one state of its keys")
			}
			v.uniform[state] = p
		}
		if v.uniform[state] == nil {
			return errors.New("it has no way to run for one state of its keys")
		}
	}
	return nil
}

// findEffects: all locks must be treated alike.
func (v *classifier) findEffects() error {
	v.effects = make(map[states]effect)
	for _, state := range eachState {
		for n, i := range v.locks {
			effect, err := v.effect(v.uniform[state].keys[i], state)
			if err != nil {
				return err
			}
			if n > 0 && effect != v.effects[state] {
				return errors.New("it does not treat its keys alike (for the first free one of several, DLOCK has LIMIT n)")
			}
			v.effects[state] = effect
		}
	}
	if e := v.effects[stateOtherNoExpiry]; e.change != unchanged && e != v.effects[stateOther] {
		return errors.New("it does something else to another's lock without an expiry")
	}
	return nil
}

// checkPaths: whatever way the keys are held, a lock is left as it is, or what becomes
// of it is what becomes of one that is held so.
func (v *classifier) checkPaths() error {
	for _, p := range v.paths {
		keys := slices.Clone(p.merged)
		for _, i := range v.locks {
			keys = append(keys, p.keys[i])
		}
		for _, k := range keys {
			for _, state := range eachState {
				if k.before&state == 0 {
					continue
				}
				effect, err := v.effect(k, state)
				if err != nil {
					return err
				}
				if effect.change != unchanged && effect != v.effects[state] {
					return errors.New("what it does to a key depends on the other keys, or on how much is left of it")
				}
			}
		}
	}
	return nil
}

// effect is what becomes of a key that was held in one way.
func (v *classifier) effect(k keyPath, state states) (effect, error) {
	held, mine := state != stateFree, state&selfStates != 0
	switch {
	case k.content == contentNone && held:
		return effect{change: deleted}, nil
	case k.content == contentNone, !k.changed():
		return effect{}, nil
	case k.content == contentSame && !mine:
		return effect{}, errors.New("it changes the expiry of what is not known to be its token's")
	case k.content == contentToken && state == stateSelfNoExpiry && k.expiry == expiryNone:
		return effect{}, nil
	}
	e := effect{expiry: k.expiry, fixed: k.fixed}
	switch {
	case !held:
		e.change = taken
	case mine:
		e.change = renewed
	default:
		e.change = overwritten
	}
	return e, nil
}

// operation names the pattern of changes.
func (v *classifier) operation() (Op, error) {
	if err := v.checkExpiries(); err != nil {
		return 0, err
	}
	mine, other, endless := v.effects[stateSelf], v.effects[stateOther].change, v.effects[stateSelfNoExpiry].change
	changes := [3]keyChange{v.effects[stateFree].change, mine.change, other}
	switch {
	case changes == [3]keyChange{unchanged, unchanged, unchanged} && endless == unchanged:
		if v.writes && len(v.signals) == 0 {
			return 0, errors.New("it writes, and neither takes, releases nor prolongs anything")
		}
		if len(v.signals) > 0 || v.publishes {
			return 0, errors.New("it wakes or tells others, and neither takes, releases nor prolongs anything")
		}
		return Read, nil
	case changes == [3]keyChange{taken, unchanged, unchanged} && endless == unchanged:
		return Acquire, nil
	case changes == [3]keyChange{taken, renewed, unchanged} && endless != deleted:
		return Reacquire, nil
	case changes == [3]keyChange{unchanged, deleted, unchanged} && (endless == deleted || endless == unchanged):
		return Release, nil
	case changes == [3]keyChange{unchanged, renewed, unchanged} && endless != deleted && mine.expiry == expiryAdded:
		return ExtendAdd, nil
	case changes == [3]keyChange{unchanged, renewed, unchanged} && endless != deleted && mine.expiry != expiryNone:
		return Extend, nil
	case other == overwritten && changes[0] == taken && mine.change == renewed && (endless == renewed || endless == unchanged):
		return Overwrite, nil
	case changes == [3]keyChange{unchanged, deleted, deleted} && endless == deleted:
		return Discard, nil
	case other == deleted:
		return 0, errors.New("it deletes what another token holds, but not what its own does")
	case other == overwritten:
		return 0, errors.New("it takes over what another token holds, but not a free key")
	}
	return 0, errors.New("it is neither an acquire, a release, an extension nor a read")
}

// expiries: every way to set one must take it from the same place.
func (v *classifier) checkExpiries() error {
	for _, state := range eachState {
		e := v.effects[state]
		if e.change != taken && e.change != renewed && e.change != overwritten {
			continue
		}
		ok := false
		switch v.time.Unit {
		case NoTime:
			ok = e.expiry == expiryNone
		case FixedMilliseconds:
			ok = e.expiry == expiryFixed && e.fixed == v.time.Fixed
		default:
			ok = e.expiry == expiryFromArg || e.expiry == expiryAdded && e.change == renewed && v.effects[stateFree].change == unchanged
		}
		if !ok {
			return errors.New("it does not always give the expiry that it is asked for")
		}
	}
	if mine, endless := v.effects[stateSelf], v.effects[stateSelfNoExpiry]; mine.change == renewed && endless.change == renewed && mine.expiry != endless.expiry {
		return errors.New("it gives a lock without an expiry another one than a lock with one")
	}
	return nil
}

// roles names what each argument is for. None may be two things.
func (v *classifier) roles(c *Class) error {
	role := make(map[int]string)
	take := func(arg int, as string) error {
		if before := role[arg]; before != "" && before != as {
			return fmt.Errorf("it takes argument %d both for %s and for %s", arg+1, before, as)
		}
		role[arg] = as
		return nil
	}
	var err error
	name := func(arg int, as string) {
		if err == nil {
			err = take(arg, as)
		}
	}
	if err := v.tokenRoles(c, name); err != nil {
		return err
	}
	if v.time.Arg > 0 {
		name(v.time.Arg-1, "a time")
	}
	if v.threshold != nil && v.threshold.arg >= 0 {
		name(v.threshold.arg, "the least time that must be left")
	}
	for arg := range v.given {
		name(arg, "a word to compare with")
		c.Given = append(c.Given, Given{Arg: arg + 1, Value: v.call.Args[arg]})
	}
	if v.db >= 0 {
		name(v.db, "a database")
	}
	for arg := range v.numbers {
		if role[arg] == "the token" {
			name(arg, "a number")
		}
		if arg != c.Time.Arg-1 {
			c.Numbers = append(c.Numbers, arg+1)
		}
	}
	slices.Sort(c.Numbers)
	slices.SortFunc(c.Given, func(a, b Given) int { return a.Arg - b.Arg })
	return err
}

// tokenRoles: one token holds all locks, or each lock that is taken has its own.
func (v *classifier) tokenRoles(c *Class, name func(arg int, as string)) error {
	var tokens []int
	for _, i := range v.locks {
		tokens = append(tokens, v.tokens[i]+1)
		if v.tokens[i] >= 0 {
			name(v.tokens[i], "the token")
		}
	}
	if len(tokens) == 0 {
		return nil
	}
	c.Token = tokens[0]
	if !slices.ContainsFunc(tokens, func(t int) bool { return t != tokens[0] }) {
		return nil
	}
	if c.Op != Acquire || slices.Contains(tokens, 0) {
		return errors.New("its keys have different tokens, which only a script that takes free keys may give them")
	}
	c.Tokens = tokens
	return nil
}

// outcomes fills in what the script answers, and whether it has done its work.
func (v *classifier) outcomes(c *Class) error {
	for h, state := range map[KeyState]states{Free: stateFree, HeldBySelf: stateSelf, HeldByOther: stateOther, NoExpiry: stateSelfNoExpiry} {
		o, err := v.outcome(c, v.uniform[state].withState(state), state)
		if err != nil {
			return err
		}
		c.cases[h] = o
	}
	for _, p := range v.paths {
		states := allStates
		for _, i := range v.locks {
			states &= p.keys[i].before
		}
		o, err := v.outcome(c, p, states)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(append(c.mixed, c.cases[:]...), o.same) {
			c.mixed = append(c.mixed, o)
		}
	}
	if c.Op == Read {
		return v.readOutcomes(c)
	}
	return nil
}

func (o outcome) same(other outcome) bool { return o.done == other.done && o.reply.same(other.reply) }

// only is the path for keys that were all held in one way.
func (p *path) withState(state states) *path {
	alike := p.clone()
	for i := range alike.keys {
		alike.keys[i].before = state
	}
	return alike
}

// outcome is what a path answers; state is how all locks were held, 0 if differently.
func (v *classifier) outcome(c *Class, p *path, state states) (outcome, error) {
	done := c.Op != Read && len(v.locks) > 0
	for _, i := range v.locks {
		for _, state := range eachState {
			// A lock without an expiry counts for itself, see telling.
			before := p.keys[i].before
			if before&state == 0 || state == stateSelfNoExpiry && before != stateSelfNoExpiry {
				continue
			}
			effect, err := v.effect(p.keys[i], state)
			if err != nil {
				return outcome{}, err
			}
			done = done && effect.change != unchanged
		}
	}
	shape, err := v.shape(p.reply, c, state)
	if err == nil && c.Time.Arg > 0 && shape.containsArg(c.Time.Arg) {
		err = errors.New("it answers the time argument, which every master is given another one of")
	}
	return outcome{reply: shape, done: done}, err
}

// shows tells whether the answer has an argument in it.
func (s Shape) containsArg(arg int) bool {
	return slices.ContainsFunc(s.parts, func(p replyPart) bool { return p.from == fromArgument && p.n == arg }) ||
		slices.ContainsFunc(s.items, func(item Shape) bool { return item.containsArg(arg) })
}

// readOutcomes: what the daemon answers itself it must be able to make of what a
// quorum holds: of one key all of it, of several only that they are held alike.
func (v *classifier) readOutcomes(c *Class) error {
	if err := v.checkExpiring(c); err != nil {
		return err
	}
	endless, err := v.outcome(c, v.uniform[stateOtherNoExpiry].withState(stateOtherNoExpiry), stateOtherNoExpiry)
	if err != nil {
		return err
	}
	if !c.cases[HeldByOther].reply.withRemaining(-1).same(endless.reply.withRemaining(-1)) {
		return errors.New("it tells another's lock without an expiry from one with an expiry")
	}
	if len(v.locks) > 1 {
		for _, o := range append(c.mixed, c.cases[:]...) {
			if o.reply.showsKey() {
				return errors.New("it shows what several keys hold")
			}
		}
		if slices.ContainsFunc(c.mixed, func(o outcome) bool { return !o.reply.same(c.cases[HeldByOther].reply) }) {
			return errors.New("its answer depends on which of its keys are held")
		}
	}
	c.mixed = nil
	c.readOutcomes()
	return nil
}

// endsAlike: with less than 1 ms left a read must answer as with more, and 0 for what
// is left. No other threshold can be seen in what a quorum holds.
func (v *classifier) checkExpiring(c *Class) error {
	for _, p := range v.paths {
		for _, i := range v.locks {
			for _, state := range eachState {
				if k := p.keys[i]; k.remainder != remainderBelow || k.before&state == 0 {
					continue
				}
				is, err := v.outcome(c, p, state)
				if err != nil {
					return err
				}
				want, err := v.outcome(c, v.uniform[state], state)
				if err != nil {
					return err
				}
				if *v.threshold != (threshold{arg: -1, n: 1}) || !is.reply.withRemaining(0).same(want.reply.withRemaining(0)) {
					return errors.New("it answers by how much is left, and changes nothing")
				}
			}
		}
	}
	return nil
}

// looksAtKey tells whether the answer shows what a key holds or how long.
func (s Shape) showsKey() bool {
	return s.is(fromMaster) || s.is(remainingMS) || s.is(remainingS) || slices.ContainsFunc(s.items, Shape.showsKey)
}

// withRemaining is the answer with n for what is left.
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

// shape is an answer as Redis makes it of a value: false is nil, and a list ends at
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

// readOutcomes: a read says yes if it sees what it looks for: something other
// than what it says of an absent key. One that always says the same is always right.
func (c *Class) readOutcomes() {
	same := true
	for h := range c.cases {
		differs := !c.cases[h].reply.same(c.cases[Free].reply)
		c.cases[h].done = differs
		same = same && !differs
	}
	if c.Token > 0 && !c.cases[HeldByOther].reply.same(c.cases[HeldBySelf].reply) {
		c.cases[HeldByOther].done = false
	}
	for h := range c.cases {
		c.cases[h].done = c.cases[h].done || same
	}
	for i := range c.mixed {
		c.mixed[i].done = same
	}
}

// telling: an answer that means both yes and no is no vote. What a key without
// expiry answers may look like a refusal: it is then counted as one.
func (c *Class) checkDecisive() error {
	if c.Op == Read {
		return nil
	}
	var yes, no []Shape
	for h, o := range c.cases {
		switch {
		case o.done && KeyState(h) != NoExpiry:
			yes = append(yes, o.reply)
		case !o.done && KeyState(h) != NoExpiry:
			no = append(no, o.reply)
		}
	}
	for _, o := range c.mixed {
		if o.done {
			yes = append(yes, o.reply)
		} else {
			no = append(no, o.reply)
		}
	}
	for _, y := range yes {
		if y.kind == KindError {
			return errors.New("it answers with an error where it did something")
		}
		if slices.ContainsFunc(no, y.overlaps) {
			return errors.New("its answer does not tell whether it did anything")
		}
	}
	return nil
}

// overlaps says whether some answer is of both shapes.
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
