// The classifier, which derives the Class of a script from its paths.

package dropin

import (
	"errors"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// classOfText parses a script and classifies it for a call. given is what the outcome depends on beside
// the numbers of keys and arguments.
func classOfText(text string, call ScriptCall) (c *Class, given []Given, err error) {
	script, err := parseText(text)
	if err != nil {
		return nil, nil, err
	}
	v := &classifier{evaluator: newEvaluator(call, nil)}
	defer func() {
		cause := recover()
		given = v.givenArgs()
		if reason, refused := cause.(refusal); refused {
			c, err = nil, errors.New(string(reason))
		} else if cause != nil {
			panic(cause)
		}
	}()
	new(syntax).block(script)
	v.evaluate(script)
	return v.classify(script), nil, nil
}

// classifier derives the class of one script.
type classifier struct {
	*evaluator
	locks   []int
	effects map[states]effect // what can happen to a lock in that state; no entry: nothing
}

func (cr *classifier) classify(script []ast.Stmt) *Class {
	cr.findLocks()
	cr.findEffects()
	cr.checkExpiries()
	c := &Class{Op: cr.operation(), Keys: len(cr.call.Keys), Args: len(cr.call.Args), DB: cr.db + 1, Time: cr.time, Typed: cr.typed, script: script, run: run}
	for i := range cr.call.Keys {
		if !slices.Contains(cr.locks, i) {
			c.Others = append(c.Others, i+1)
		}
	}
	cr.findRoles(c)
	cr.checkAnswers(c)
	c.EndlessToo = cr.effects[stateSelfNoExpiry].change == Renewed
	c.Looks = c.looksByOp() || cr.threshold != nil || !cr.wholeOrNothing(c)
	for _, p := range cr.paths {
		shows := cr.answer(p).showsKey()
		c.Shows = c.Shows || shows && !cr.holdsAll(p)
		c.Looks = c.Looks || shows && cr.changed(p) > 0
		for _, k := range p.keys {
			c.Longer = c.Longer || k.remainder == remainderBelow && cr.changed(p) > 0
		}
	}
	return c
}

// findLocks finds the keys that are locks: those that a command uses.
func (cr *classifier) findLocks() {
	for i := range cr.call.Keys {
		if cr.touched[i] {
			cr.locks = append(cr.locks, i)
		}
	}
	if len(cr.locks) == 0 {
		panic(refuse("it uses no key"))
	}
}

// effect is a change with the expiry that it sets.
type effect struct {
	change Change
	expiry expirySource
}

func effectOn(k keyPath, state states) effect {
	mine := state&selfStates != 0
	switch {
	case k.content == contentNone && state != stateFree:
		return effect{change: Deleted}
	case k.content == contentNone, !k.changed():
		return effect{}
	case k.content == contentSame && !mine:
		panic(refuse("it changes the expiry of what is not known to be its token's"))
	case k.content == contentToken && state == stateSelfNoExpiry && k.expiry == expiryNone:
		return effect{}
	case state == stateFree:
		return effect{Taken, k.expiry}
	case mine:
		return effect{Renewed, k.expiry}
	}
	return effect{Overwritten, k.expiry}
}

// findEffects finds the effect for each state: there is one at most, on any path and for any lock.
// On other paths the lock stays as it is.
func (cr *classifier) findEffects() {
	cr.effects = make(map[states]effect)
	keys := slices.Clone(cr.merged)
	for _, p := range cr.paths {
		for _, i := range cr.locks {
			keys = append(keys, p.keys[i])
		}
	}
	for _, k := range keys {
		for _, state := range eachState {
			if k.before&state == 0 {
				continue
			}
			e, known := effectOn(k, state), cr.effects[state]
			if e.change == Unchanged || e == known {
				continue
			}
			if known.change != Unchanged {
				panic(refuse("it can do two different things to a key that is held in one way"))
			}
			cr.effects[state] = e
		}
	}
	if e := cr.effects[stateOtherNoExpiry]; e.change != Unchanged && e != cr.effects[stateOther] {
		panic(refuse("it does something else to another's lock without an expiry"))
	}
}

// doable are the states in which something can happen.
func (cr *classifier) doable() (s states) {
	for state := range cr.effects {
		s |= state
	}
	return s
}

// changed counts the locks that a path changes.
func (cr *classifier) changed(p *path) (n int) {
	for _, i := range cr.locks {
		if p.keys[i].changed() && slices.ContainsFunc(eachState, func(s states) bool {
			return p.keys[i].before&s != 0 && effectOn(p.keys[i], s).change != Unchanged
		}) {
			n++
		}
	}
	return n
}

// wholeOrNothing reports whether each path does its work on all locks, where that is possible for
// all of them, and else on none. Then one operation decides which.
func (cr *classifier) wholeOrNothing(c *Class) bool {
	doable := cr.doable()
	for _, p := range cr.paths {
		possible, impossible := true, false
		for _, i := range cr.locks {
			before := p.keys[i].before
			possible, impossible = possible && before&^doable == 0, impossible || before&doable == 0
		}
		n := cr.changed(p)
		if n == len(cr.locks) && !possible || n == 0 && !impossible || n > 0 && n < len(cr.locks) {
			return false
		}
	}
	return len(cr.merged) == 0
}

// checkExpiries checks that every state takes its expiry from the same source.
func (cr *classifier) checkExpiries() {
	for _, state := range eachState {
		e := cr.effects[state]
		if e.change == Unchanged || e.change == Deleted {
			continue
		}
		ok := e.expiry == expiryGiven || e.expiry == expiryAdded && e.change == Renewed && cr.effects[stateFree].change == Unchanged
		if cr.time.Unit == NoTime {
			ok = e.expiry == expiryNone
		}
		if !ok {
			panic(refuse("it does not always give the expiry that it is asked for"))
		}
	}
	if mine, endless := cr.effects[stateSelf], cr.effects[stateSelfNoExpiry]; mine.change == Renewed && endless.change == Renewed && mine.expiry != endless.expiry {
		panic(refuse("it gives a lock without an expiry another one than a lock with one"))
	}
}

// operations are the patterns of changes: of a free key, of one that the token holds, and of
// one that another token holds.
var operations = map[[3]Change]Op{
	{Unchanged, Unchanged, Unchanged}: Read,
	{Taken, Unchanged, Unchanged}:     Acquire,
	{Taken, Renewed, Unchanged}:       Reacquire,
	{Unchanged, Deleted, Unchanged}:   Release,
	{Unchanged, Renewed, Unchanged}:   Extend,
	{Taken, Renewed, Overwritten}:     Overwrite,
	{Unchanged, Deleted, Deleted}:     Discard,
}

// operation returns the Op for the pattern of changes. A lock without an expiry may stay
// Unchanged, unless the script deletes any lock.
func (cr *classifier) operation() Op {
	mine, other, endless := cr.effects[stateSelf], cr.effects[stateOther].change, cr.effects[stateSelfNoExpiry].change
	op := operations[[3]Change{cr.effects[stateFree].change, mine.change, other}]
	switch {
	case endless != mine.change && (endless != Unchanged || op == Discard), op == Extend && mine.expiry == expiryNone:
		op = 0
	case op == Extend && mine.expiry == expiryAdded:
		op = ExtendAdd
	}
	switch {
	case op != 0:
		return op
	case other == Deleted:
		panic(refuse("it deletes what another token holds, but not what its own does"))
	case other == Overwritten:
		panic(refuse("it takes over what another token holds, but not a free key"))
	}
	panic(refuse("it is neither an acquire, a release, an extension nor a read"))
}

// findRoles finds the role of each argument: token, time, database, number or a word to
// compare with. No argument may have two roles.
func (cr *classifier) findRoles(c *Class) {
	role := make(map[int]string)
	name := func(arg int, as string) {
		if before := role[arg]; before != "" && before != as {
			panic(refuse("it takes argument %d both for %s and for %s", arg+1, before, as))
		}
		role[arg] = as
	}
	for _, i := range cr.locks {
		if cr.tokens[i] >= 0 {
			name(cr.tokens[i], "the token")
		}
	}
	cr.findTokens(c)
	if cr.time.Arg > 0 {
		name(cr.time.Arg-1, "a time")
	}
	if cr.threshold != nil && cr.threshold.arg >= 0 && cr.threshold.arg != cr.time.Arg-1 {
		name(cr.threshold.arg, "the least time that must be left")
	}
	c.Given = cr.givenArgs()
	if cr.db >= 0 {
		name(cr.db, "a database")
	}
	for arg := range len(cr.call.Args) + len(cr.call.Keys) {
		if cr.numbers[arg] && role[arg] == "the token" {
			name(arg, "a number")
		}
		if cr.numbers[arg] && arg != c.Time.Arg-1 {
			c.Numbers = append(c.Numbers, arg+1)
		}
	}
}

// findTokens finds one token for all locks, or one for each lock that the script takes.
func (cr *classifier) findTokens(c *Class) {
	var tokens []int
	for _, i := range cr.locks {
		tokens = append(tokens, cr.tokens[i]+1)
	}
	if len(tokens) == 0 {
		return
	}
	c.Token = tokens[0]
	if !slices.ContainsFunc(tokens, func(t int) bool { return t != tokens[0] }) {
		return
	}
	if c.Op != Acquire || slices.Contains(tokens, 0) {
		panic(refuse("its keys have different tokens, which only a script that takes free keys may give them"))
	}
	c.Tokens = tokens
}

// checkAnswers refuses an acquire or an extension whose answer does not tell whether the caller holds
// the lock afterwards: what it answers where it has taken or prolonged the locks may not be an
// answer where the caller has not all of them. A release may answer as it likes.
func (cr *classifier) checkAnswers(c *Class) {
	var refusals []luaValue
	for _, p := range cr.paths {
		if n := cr.changed(p); n > 0 && c.Op == Acquire {
			cr.checkTurns(p)
		} else if n == 0 {
			refusals = append(refusals, cr.answer(p))
		}
		if len(cr.merged) > 0 {
			refusals = append(refusals, cr.answer(p))
		}
	}
	c.refusal = onlyOne(refusals)
	if c.Op == Read || c.Op == Release || c.Op == Overwrite || c.Op == Discard {
		for _, p := range cr.paths {
			cr.answer(p) // it must have one
		}
		return
	}
	for _, p := range cr.paths {
		if !cr.holdsAll(p) || cr.changed(p) == 0 {
			continue
		}
		yes := cr.answer(p)
		if yes.kind == valueFailure {
			panic(refuse("it answers with an error where it did something"))
		}
		for _, q := range cr.paths {
			if no := cr.answer(q); !cr.holdsAll(q) && !cr.apart(yes, no) && yes.overlaps(no) {
				panic(refuse("its answer does not tell whether the caller holds the lock: it is the same where another one does, or nobody"))
			}
		}
	}
}

// checkTurns refuses a script that takes one of its keys and leaves others that may be free.
func (cr *classifier) checkTurns(p *path) {
	for _, i := range cr.locks {
		if k := p.keys[i]; !k.changed() && k.before&stateFree != 0 {
			panic(refuse("it does not treat its keys alike (for the first free one of several, DLOCK has LIMIT n)"))
		}
	}
}

// holdsAll reports whether the caller holds all locks after a path.
func (cr *classifier) holdsAll(p *path) bool {
	for _, i := range cr.locks {
		k := p.keys[i]
		if k.content != contentToken && (k.content == contentNone || k.before&^selfStates != 0) {
			return false
		}
	}
	return true
}

// apart reports whether a token differs from what another one holds.
func (cr *classifier) apart(yes, no luaValue) bool {
	return yes.kind == valueArg && no.kind == valueHeld && cr.tokens[no.key] == yes.arg
}

// answer converts the value that a path returns, as Redis does: false becomes nil, and a list
// ends at its first nil.
func (cr *classifier) answer(p *path) luaValue { return cr.redisAnswer(p.reply, p) }

func (cr *classifier) redisAnswer(of luaValue, p *path) luaValue {
	switch of.kind {
	case valueNil, valueFalse:
		return luaValue{}
	case valueTrue:
		return numberValue(1)
	case valueNumber, valueText, valueStatus, valueArg, valueKey, valueJoined, valueFailure, valueRemainingMS, valueRemainingS:
		return of
	case valueHeld:
		if cr.tokens[of.key] >= 0 && p.keys[of.key].before&^selfStates == 0 {
			return luaValue{kind: valueArg, arg: cr.tokens[of.key]}
		}
		return of
	case valueTable:
		list := luaValue{kind: valueTable}
		for _, item := range of.items {
			if item.kind == valueNil {
				break
			}
			if item.kind != valueFalse { // which is a nil that does not end it
				item = cr.redisAnswer(item, p)
			}
			list.items = append(list.items, item)
		}
		return list
	}
	panic(refuse("its answer is the time that it has just set, or a number that it is given"))
}

// run evaluates a script for keys that are held so, and returns what it does to each of its locks,
// and its answer.
func run(c *Class, call ScriptCall, views []KeyView) (change []Change, r ScriptReply, err error) {
	defer func() {
		cause := recover()
		if reason, refused := cause.(refusal); refused {
			err = errors.New(string(reason))
		} else if cause != nil {
			panic(cause)
		}
	}()
	held := make([]*KeyView, len(call.Keys))
	all := make([]KeyView, len(call.Keys))
	var locks []int
	for i := range call.Keys {
		if !slices.Contains(c.Others, i+1) {
			held[i], all[i] = &views[len(locks)], views[len(locks)]
			locks = append(locks, i)
		}
	}
	v := &classifier{evaluator: newEvaluator(call, held), locks: locks}
	v.evaluate(c.script)
	if len(v.paths) != 1 {
		return nil, r, errors.New("it has several ways to run for one state of its keys")
	}
	p := v.paths[0]
	for _, i := range locks {
		change = append(change, effectOn(p.keys[i], 1<<held[i].State).change)
	}
	return change, v.answer(p).reply(call, all), nil
}
