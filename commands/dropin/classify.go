// The classifier, which derives the Class of a script from its paths.

package dropin

import (
	"errors"
	"slices"
)

// classOfText parses a script and classifies it for a call.
func classOfText(text string, call ScriptCall) (*Class, error) {
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

// classifier derives the class of one script.
type classifier struct {
	*evaluator
	paths   []*path
	locks   []int
	uniform map[states]*path  // by the state that every lock was in, with enough time left
	effects map[states]effect // the effect on a lock in that state
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

// findLocks finds the keys that are locks. An unused key is no lock if the script uses
// another one.
func (v *classifier) findLocks() {
	v.locks = nil
	for i := range v.call.Keys {
		if !v.signals[i] && (v.touched[i] || len(v.touched) == 0) {
			v.locks = append(v.locks, i)
		}
	}
}

// findUniform finds the path for each state that all locks can be in. There is exactly one,
// because every condition splits the paths.
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
