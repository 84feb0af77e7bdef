// The outcomes of a script that changes nothing.

package dropin

import (
	"errors"
	"slices"
)

// readOutcomes checks that the daemon can answer the script itself from the state that a
// quorum holds. For one key it can show all of that state. For several keys it can only
// tell whether all are in the same state.
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

// checkExpiring checks the answers of a read with less than 1 ms left. They must be the
// same as with more time, with 0 for the remaining time. The state that a quorum holds shows
// no other threshold.
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

// readOutcomes finds the yes of a read: an answer that differs from the one for a free key.
// A read that always gives the same answer is always a yes.
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
