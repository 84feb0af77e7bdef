// The outcomes of a script that changes nothing.

package dropin

import (
	"errors"
	"slices"
)

// readOutcomes: what the daemon answers itself it must be able to make of what a
// quorum holds: of one key all of it, of several only that they are held alike.
func (v *verdict) readOutcomes(c *Class) error {
	if err := v.endsAlike(c); err != nil {
		return err
	}
	endless, err := v.outcome(c, v.uniform[stateOtherEndless].only(stateOtherEndless), stateOtherEndless)
	if err != nil {
		return err
	}
	if !c.cases[Other].reply.withRemaining(-1).same(endless.reply.withRemaining(-1)) {
		return errors.New("it tells another's lock without an expiry from one with an expiry")
	}
	if len(v.locks) > 1 {
		for _, o := range append(c.mixed, c.cases[:]...) {
			if o.reply.looksAtKey() {
				return errors.New("it shows what several keys hold")
			}
		}
		if slices.ContainsFunc(c.mixed, func(o outcome) bool { return !o.reply.same(c.cases[Other].reply) }) {
			return errors.New("its answer depends on which of its keys are held")
		}
	}
	c.mixed = nil
	c.readOutcomes()
	return nil
}

// endsAlike: with less than 1 ms left a read must answer as with more, and 0 for what
// is left. No other threshold can be seen in what a quorum holds.
func (v *verdict) endsAlike(c *Class) error {
	for _, p := range v.paths {
		for _, i := range v.locks {
			for _, state := range eachState {
				if k := p.keys[i]; k.left != remainderBelow || k.before&state == 0 {
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
