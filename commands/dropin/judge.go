// Which class do the probes show?
package dropin

import (
	"errors"
	"fmt"
	"slices"
)

// judge makes the class of what was learned, and then tries to refute it.
func (p *prober) judge() (*Class, error) {
	c := &Class{
		Keys: len(p.call.Keys), Args: len(p.call.Args), Token: p.token + 1, Time: p.time,
		Pattern: p.pattern, Publish: p.publish,
	}
	for _, i := range p.signals {
		c.Signals = append(c.Signals, i+1)
	}
	slices.Sort(c.Signals)
	if err := p.checkKeys(); err != nil {
		return nil, err
	}
	if err := p.refute(); err != nil {
		return nil, err
	}
	if p.program.survey.seeks && p.pattern == "" {
		return nil, errors.New("it may look for keys that are not among KEYS")
	}
	if line := p.program.unreached(); line > 0 {
		return nil, fmt.Errorf("line %d may do something that no probe has seen", line)
	}
	var err error
	if c.Op, err = p.operation(); err != nil {
		return nil, err
	}
	if c.Op == Read || c.Op == Release || c.Op == Discard {
		c.Time = Time{}
	}
	c.Slots, c.Prefix = p.slots, p.prefix
	for i, value := range p.call.Args {
		if i != p.token && i != p.time.Arg-1 && i != p.prefix-1 && !p.free[i] {
			c.Given = append(c.Given, Given{Arg: i + 1, Value: value})
		}
	}
	if err := p.database(c); err != nil {
		return nil, err
	}
	p.outcomes(c)
	return c, c.telling()
}

// database: the only one that may be selected is an argument.
func (p *prober) database(c *Class) error {
	if len(p.selects) == 0 {
		return nil
	}
	for i, arg := range p.call.Args {
		if slices.Contains(p.selects, arg) && (c.DB == 0 || i+1 != c.Token) {
			c.DB = i + 1
			return nil
		}
	}
	return errors.New("it selects a database that is not among its arguments")
}

// checkKeys: all locks must be treated alike, or the first free one be taken.
func (p *prober) checkKeys() error {
	p.slots = false
	for h := range p.learned {
		effects := p.learned[h].effects
		if len(effects) < 2 || !slices.ContainsFunc(effects, func(e effect) bool { return e != effects[0] }) {
			continue
		}
		changed := slices.DeleteFunc(slices.Clone(effects), func(e effect) bool { return e.change == kept })
		if Holding(h) != Absent || len(changed) != 1 || effects[0].change != taken {
			return errors.New("it does not treat its keys alike")
		}
		p.slots = true
	}
	return nil
}

// at is what happens to the first lock.
func (p *prober) at(h Holding) effect {
	if len(p.learned[h].effects) == 0 {
		return effect{}
	}
	return p.learned[h].effects[0]
}

// operation names the pattern of changes.
func (p *prober) operation() (Op, error) {
	absent, mine, other, endless := p.at(Absent), p.at(Mine), p.at(Other), p.at(Endless)
	for _, e := range []effect{absent, mine, other, endless} {
		if e.change == odd {
			return 0, errors.New("it stores or prolongs something that is not its token")
		}
	}
	if err := p.expiries(); err != nil {
		return 0, err
	}
	changes := [3]change{absent.change, mine.change, other.change}
	switch {
	case changes == [3]change{kept, kept, kept} && endless.change == kept:
		return Read, nil
	case changes == [3]change{taken, kept, kept} && endless.change == kept:
		return Acquire, nil
	case changes == [3]change{taken, renewed, kept} && endless.change != deleted:
		return Reacquire, nil
	case changes == [3]change{kept, deleted, kept} && (endless.change == deleted || endless.change == kept):
		return Release, nil
	case changes == [3]change{kept, renewed, kept} && endless.change != deleted && mine.ttl == ttlAdded:
		return ExtendAdd, nil
	case changes == [3]change{kept, renewed, kept} && endless.change != deleted && mine.ttl != ttlNone:
		return Extend, nil
	case other.change == stolen && absent.change == taken:
		return Overwrite, nil
	case changes == [3]change{kept, deleted, deleted}:
		return Discard, nil
	case other.change == deleted:
		return 0, errors.New("it deletes what another token holds, but not what its own does")
	case other.change == stolen:
		return 0, errors.New("it takes over what another token holds, but not a free key")
	}
	return 0, errors.New("it is neither an acquire, a release, an extension nor a read")
}

// expiries: all situations that set one must take it from the same place.
func (p *prober) expiries() error {
	for _, e := range []effect{p.at(Absent), p.at(Mine), p.at(Other), p.at(Endless)} {
		if e.change != taken && e.change != renewed && e.change != stolen {
			continue
		}
		ok := false
		switch p.time.Unit {
		case NoTime:
			ok = e.ttl == ttlNone
		case FixedMilliseconds:
			ok = e.ttl == ttlFixed && e.fixed == p.time.Fixed
		default:
			ok = e.ttl == ttlAsked || e.ttl == ttlAdded && e.change == renewed && p.at(Absent).change == kept
		}
		if !ok {
			return errors.New("it does not always give the expiry that it is asked for")
		}
	}
	return nil
}

// outcomes fills in what the script answers, and whether it has done its work.
func (p *prober) outcomes(c *Class) {
	done := func(e []effect) bool {
		return len(e) > 0 && !slices.ContainsFunc(e, func(e effect) bool { return e.change == kept })
	}
	if c.Slots {
		done = func(e []effect) bool {
			return slices.ContainsFunc(e, func(e effect) bool { return e.change == taken })
		}
	}
	if c.Op == Read {
		done = func([]effect) bool { return false }
	}
	for h, s := range p.learned {
		c.cases[h] = outcome{reply: s.shape, done: done(s.effects)}
	}
	for _, s := range p.mixed {
		c.mixed = append(c.mixed, outcome{reply: s.shape, done: done(s.effects)})
	}
	if c.Op == Read {
		c.readOutcomes()
	}
}

// readOutcomes: a read says yes if it sees what it looks for: something other
// than what it says of an absent key. One that always says the same is always right.
func (c *Class) readOutcomes() {
	same := true
	for h := range c.cases {
		differs := !c.cases[h].reply.same(c.cases[Absent].reply)
		c.cases[h].done = differs
		same = same && !differs
	}
	if c.Token > 0 && !c.cases[Other].reply.same(c.cases[Mine].reply) {
		c.cases[Other].done = false
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
func (c *Class) telling() error {
	if c.Op == Read {
		return nil
	}
	var yes, no []Shape
	for h, o := range c.cases {
		switch {
		case o.done && Holding(h) != Endless:
			yes = append(yes, o.reply)
		case !o.done && Holding(h) != Endless:
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
	case s.kind == KindInt && t.kind == KindInt:
		return remaining(s) && (remaining(t) || t.n >= 0) || remaining(t) && s.n >= 0
	case isText(s.kind) && isText(t.kind):
		return s.is(fromMaster) != t.is(fromMaster)
	}
	return false
}
