// The outcomes of a script: its answer for each state of the locks, and whether it did
// its work.

package dropin

import (
	"errors"
	"slices"
)

// outcomes fills in the answers of the script, and whether it did its work.
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

// outcome is the answer of a path. state is the state of all locks, 0 if they differ.
func (v *classifier) outcome(c *Class, p *path, state states) (outcome, error) {
	done := c.Op != Read && len(v.locks) > 0
	for _, i := range v.locks {
		for _, state := range eachState {
			// A lock without an expiry counts separately, see checkDecisive.
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

// checkDecisive rejects a class with an answer that means both yes and no: it is no vote. The
// answer for a key without an expiry may equal a refusal. It then counts as a refusal.
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
