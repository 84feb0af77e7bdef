// The classifier, which derives the Class of a script from its paths.

package dropin

import (
	"errors"
	"slices"
	"strings"
)

// classOfText parses a script and classifies it for a call.
func classOfText(text string, call ScriptCall) (c *Class, err error) {
	script, err := parseText(text)
	if err != nil {
		return nil, err
	}
	defer func() {
		cause := recover()
		if reason, refused := cause.(refusal); refused {
			c, err = nil, errors.New(string(reason))
		} else if cause != nil {
			panic(cause)
		}
	}()
	s := new(syntax)
	s.block(script)
	v := &classifier{evaluator: evaluate(script, call)}
	c = v.classify()
	for _, n := range s.calls {
		if !v.reached[n] {
			panic(refuseAt(n.Line(), "it calls a command on no path that this call can take, so what it would do is not known"))
		}
	}
	return c, nil
}

// classifier derives the class of one script.
type classifier struct {
	*evaluator
	locks   []int
	uniform map[states]*path  // by the state that every lock was in, with enough time left
	effects map[states]effect // the effect on a lock in that state
}

func (v *classifier) classify() *Class {
	v.findLocks()
	v.findUniform()
	v.findEffects()
	v.checkPaths()
	v.checkExpiries()
	c := &Class{Op: v.operation(), Keys: len(v.call.Keys), Args: len(v.call.Args), Publish: v.publishes, DB: v.db + 1}
	for i := range v.call.Keys {
		if !slices.Contains(v.locks, i) {
			c.Signals = append(c.Signals, i+1)
		}
	}
	if c.Op != Read && c.Op != Release && c.Op != Discard {
		c.Time = v.time
	}
	v.findRoles(c)
	v.findOutcomes(c)
	if c.Op == Read {
		v.checkRead(c)
		c.readOutcomes()
	} else {
		c.checkDecisive(v.outcome(c, v.uniform[stateOtherNoExpiry]).reply)
	}
	return c
}

// findLocks finds the keys that are locks. An unused key is no lock if the script uses
// another one.
func (v *classifier) findLocks() {
	for i := range v.call.Keys {
		if !v.signals[i] && (v.touched[i] || len(v.touched) == 0) {
			v.locks = append(v.locks, i)
		}
	}
}

// findUniform finds the path for each state that all locks can be in. There is exactly one,
// because every condition splits the paths.
func (v *classifier) findUniform() {
	v.uniform = make(map[states]*path)
	for _, state := range eachState {
		for _, p := range v.paths {
			differs := func(i int) bool { return p.keys[i].before&state == 0 || p.keys[i].remainder == remainderBelow }
			if slices.ContainsFunc(v.locks, differs) {
				continue
			}
			if v.uniform[state] != nil {
				panic(refuse("it has two ways to run for one state of its keys"))
			}
			v.uniform[state] = p.withState(state)
		}
		if v.uniform[state] == nil {
			panic(refuse("it has no way to run for one state of its keys"))
		}
	}
}

type keyChange uint8

const (
	unchanged keyChange = iota
	taken
	renewed
	deleted
	overwritten
)

// effect is a change with the expiry that it sets.
type effect struct {
	change keyChange
	expiry expirySource
}

func effectOn(k keyPath, state states) effect {
	mine := state&selfStates != 0
	switch {
	case k.content == contentNone && state != stateFree:
		return effect{change: deleted}
	case k.content == contentNone, !k.changed():
		return effect{}
	case k.content == contentSame && !mine:
		panic(refuse("it changes the expiry of what is not known to be its token's"))
	case k.content == contentToken && state == stateSelfNoExpiry && k.expiry == expiryNone:
		return effect{}
	case state == stateFree:
		return effect{taken, k.expiry}
	case mine:
		return effect{renewed, k.expiry}
	}
	return effect{overwritten, k.expiry}
}

// findEffects finds the effect for each state. It must be the same for all locks.
func (v *classifier) findEffects() {
	v.effects = make(map[states]effect)
	for _, state := range eachState {
		for n, i := range v.locks {
			effect := effectOn(v.uniform[state].keys[i], state)
			if n > 0 && effect != v.effects[state] {
				panic(refuse("it does not treat its keys alike (for the first free one of several, DLOCK has LIMIT n)"))
			}
			v.effects[state] = effect
		}
	}
	if e := v.effects[stateOtherNoExpiry]; e.change != unchanged && e != v.effects[stateOther] {
		panic(refuse("it does something else to another's lock without an expiry"))
	}
}

// checkPaths checks all paths, also those for locks in different states. Each lock must stay
// unchanged, or get the effect for its own state.
func (v *classifier) checkPaths() {
	keys := slices.Clone(v.merged)
	for _, p := range v.paths {
		for _, i := range v.locks {
			keys = append(keys, p.keys[i])
		}
	}
	for _, k := range keys {
		for _, state := range eachState {
			if k.before&state == 0 {
				continue
			}
			if effect := effectOn(k, state); effect.change != unchanged && effect != v.effects[state] {
				panic(refuse("what it does to a key depends on the other keys, or on how much is left of it"))
			}
		}
	}
}

// checkExpiries checks that every state takes its expiry from the same source.
func (v *classifier) checkExpiries() {
	for _, state := range eachState {
		e := v.effects[state]
		if e.change == unchanged || e.change == deleted {
			continue
		}
		ok := e.expiry == expiryGiven || e.expiry == expiryAdded && e.change == renewed && v.effects[stateFree].change == unchanged
		if v.time.Unit == NoTime {
			ok = e.expiry == expiryNone
		}
		if !ok {
			panic(refuse("it does not always give the expiry that it is asked for"))
		}
	}
	if mine, endless := v.effects[stateSelf], v.effects[stateSelfNoExpiry]; mine.change == renewed && endless.change == renewed && mine.expiry != endless.expiry {
		panic(refuse("it gives a lock without an expiry another one than a lock with one"))
	}
}

// operations are the patterns of changes: of a free key, of one that the token holds, and of
// one that another token holds.
var operations = map[[3]keyChange]Op{
	{unchanged, unchanged, unchanged}: Read,
	{taken, unchanged, unchanged}:     Acquire,
	{taken, renewed, unchanged}:       Reacquire,
	{unchanged, deleted, unchanged}:   Release,
	{unchanged, renewed, unchanged}:   Extend,
	{taken, renewed, overwritten}:     Overwrite,
	{unchanged, deleted, deleted}:     Discard,
}

// operation returns the Op for the pattern of changes. A lock without an expiry may stay
// unchanged, unless the script deletes any lock.
func (v *classifier) operation() Op {
	mine, other, endless := v.effects[stateSelf], v.effects[stateOther].change, v.effects[stateSelfNoExpiry].change
	op := operations[[3]keyChange{v.effects[stateFree].change, mine.change, other}]
	switch {
	case endless != mine.change && (endless != unchanged || op == Discard), op == Extend && mine.expiry == expiryNone:
		op = 0
	case op == Extend && mine.expiry == expiryAdded:
		op = ExtendAdd
	}
	switch {
	case op == Read && v.writes && len(v.signals) == 0:
		panic(refuse("it writes, and neither takes, releases nor prolongs anything"))
	case op == Read && (len(v.signals) > 0 || v.publishes):
		panic(refuse("it wakes or tells others, and neither takes, releases nor prolongs anything"))
	case op != 0:
		return op
	case other == deleted:
		panic(refuse("it deletes what another token holds, but not what its own does"))
	case other == overwritten:
		panic(refuse("it takes over what another token holds, but not a free key"))
	}
	panic(refuse("it is neither an acquire, a release, an extension nor a read"))
}

// findRoles finds the role of each argument: token, time, database, number or a word to
// compare with. No argument may have two roles.
func (v *classifier) findRoles(c *Class) {
	role := make(map[int]string)
	name := func(arg int, as string) {
		if before := role[arg]; before != "" && before != as {
			panic(refuse("it takes argument %d both for %s and for %s", arg+1, before, as))
		}
		role[arg] = as
	}
	for _, i := range v.locks {
		if v.tokens[i] >= 0 {
			name(v.tokens[i], "the token")
		}
	}
	v.findTokens(c)
	if v.time.Arg > 0 {
		name(v.time.Arg-1, "a time")
	}
	if v.threshold != nil && v.threshold.arg >= 0 {
		name(v.threshold.arg, "the least time that must be left")
	}
	for arg, value := range v.call.Args { // in their order, so that the error is always the same
		if v.given[arg] {
			name(arg, "a word to compare with")
			c.Given = append(c.Given, Given{Arg: arg + 1, Value: value})
		}
	}
	if v.db >= 0 {
		name(v.db, "a database")
	}
	for arg := range v.call.Args {
		if v.numbers[arg] && role[arg] == "the token" {
			name(arg, "a number")
		}
		if v.numbers[arg] && arg != c.Time.Arg-1 {
			c.Numbers = append(c.Numbers, arg+1)
		}
	}
}

// findTokens finds one token for all locks, or one for each lock that the script takes.
func (v *classifier) findTokens(c *Class) {
	var tokens []int
	for _, i := range v.locks {
		tokens = append(tokens, v.tokens[i]+1)
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

// findOutcomes finds the answers of the script, and whether it did its work.
func (v *classifier) findOutcomes(c *Class) {
	for h := range keyStates {
		c.outcomes = append(c.outcomes, v.outcome(c, v.uniform[1<<h]))
	}
	for _, p := range v.paths {
		o := v.outcome(c, p)
		if !slices.ContainsFunc(c.outcomes, func(known outcome) bool { return o.done == known.done && o.reply.same(known.reply) }) {
			c.outcomes = append(c.outcomes, o)
		}
	}
}

// outcome is the answer of a path, and whether every lock changed on it.
func (v *classifier) outcome(c *Class, p *path) outcome {
	done, common := c.Op != Read && len(v.locks) > 0, allStates
	for _, i := range v.locks {
		before := p.keys[i].before
		common &= before
		for _, state := range eachState {
			// A lock without an expiry counts separately, see checkDecisive.
			if before&state != 0 && (state != stateSelfNoExpiry || before == stateSelfNoExpiry) {
				done = done && effectOn(p.keys[i], state).change != unchanged
			}
		}
	}
	answer := v.answer(p.reply, common)
	if c.Time.Arg > 0 && answer.contains(func(part luaValue) bool { return part.kind == valueArg && part.arg == c.Time.Arg-1 }) {
		panic(refuse("it answers the time argument, which every master is given another one of"))
	}
	return outcome{reply: answer, done: done}
}

// answer is what Redis makes of a value that a path returns: false becomes nil, and a list
// ends at its first nil. common has the states that all locks can have been in.
func (v *classifier) answer(of luaValue, common states) luaValue {
	switch of.kind {
	case valueNil, valueFalse:
		return luaValue{}
	case valueTrue:
		return numberValue(1)
	case valueNumber, valueText, valueStatus, valueArg, valueKey, valueJoined:
		return of
	case valueFailure:
		if strings.HasPrefix(of.text, "NOSCRIPT") || strings.HasPrefix(of.text, "READONLY") {
			panic(refuse("its errors could be taken for a master's"))
		}
		return of
	case valueRemainingMS, valueRemainingS:
		return luaValue{kind: of.kind}
	case valueHeld:
		if v.tokens[of.key] >= 0 && common != 0 && common&^selfStates == 0 {
			return luaValue{kind: valueArg, arg: v.tokens[of.key]}
		}
		return luaValue{kind: valueHeld}
	case valueTable:
		list := luaValue{kind: valueTable}
		for _, item := range of.items {
			if item.kind == valueNil {
				break
			}
			list.items = append(list.items, v.answer(item, common))
		}
		return list
	}
	panic(refuse("its answer differs between masters, or is a number that it is given"))
}

// checkDecisive refuses an answer that means both yes and no: it is no vote. The answer for a
// key without an expiry may equal a refusal. It then counts as a refusal.
func (c *Class) checkDecisive(endless luaValue) {
	for h, yes := range c.outcomes {
		if !yes.done || KeyState(h) == NoExpiry {
			continue
		}
		if yes.reply.kind == valueFailure {
			panic(refuse("it answers with an error where it did something"))
		}
		for h, no := range c.outcomes {
			if !no.done && KeyState(h) != NoExpiry && yes.reply.overlaps(no.reply) {
				panic(refuse("its answer does not tell whether it did anything"))
			}
		}
		if c.Op != Release && c.Op != Overwrite && c.Op != Discard && yes.reply.overlaps(endless) {
			panic(refuse("its answer for a lock that it has taken or prolonged is also that for another's lock without an expiry"))
		}
	}
}

// checkRead checks that the daemon can answer the script itself from the state that a
// quorum holds. For one key it can show all of that state. For several keys it can only
// tell whether all are in the same state.
func (v *classifier) checkRead(c *Class) {
	v.checkExpiring(c)
	other := c.outcomes[HeldByOther].reply
	if endless := v.outcome(c, v.uniform[stateOtherNoExpiry]).reply; !other.withRemaining(-1).same(endless.withRemaining(-1)) {
		panic(refuse("it tells another's lock without an expiry from one with an expiry"))
	}
	if len(v.locks) > 1 {
		if slices.ContainsFunc(c.outcomes, func(o outcome) bool { return o.reply.showsKey() }) {
			panic(refuse("it shows what several keys hold"))
		}
		if slices.ContainsFunc(c.outcomes[keyStates:], func(o outcome) bool { return !o.reply.same(other) }) {
			panic(refuse("its answer depends on which of its keys are held"))
		}
	}
	c.outcomes = c.outcomes[:keyStates]
}

// checkExpiring checks the answers of a read with less than 1 ms left. They must be the
// same as with more time, with 0 for the remaining time. The state that a quorum holds shows
// no other threshold.
func (v *classifier) checkExpiring(c *Class) {
	for _, p := range v.paths {
		for _, i := range v.locks {
			for _, state := range eachState {
				if k := p.keys[i]; k.remainder != remainderBelow || k.before&state == 0 {
					continue
				}
				is, want := v.outcome(c, p.withState(state)).reply, v.outcome(c, v.uniform[state]).reply
				if *v.threshold != (threshold{arg: -1, n: 1}) || !is.withRemaining(0).same(want.withRemaining(0)) {
					panic(refuse("it answers by how much is left, and changes nothing"))
				}
			}
		}
	}
}

// readOutcomes finds the yes of a read: an answer that differs from the one for a free key.
// A read that always gives the same answer is always a yes.
func (c *Class) readOutcomes() {
	differs := func(h KeyState) bool { return !c.outcomes[h].reply.same(c.outcomes[Free].reply) }
	same := !differs(HeldBySelf) && !differs(HeldByOther) && !differs(NoExpiry)
	for h := range c.outcomes {
		c.outcomes[h].done = same || KeyState(h) < keyStates && differs(KeyState(h))
	}
	if c.Token > 0 && !same && !c.outcomes[HeldByOther].reply.same(c.outcomes[HeldBySelf].reply) {
		c.outcomes[HeldByOther].done = false
	}
}
