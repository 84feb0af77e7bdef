// The effect of a script on one lock: how it changes the key, and which expiry it gives.

package dropin

import (
	"errors"
	"slices"
)

// keyChange is the change of one key.
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
	fixed  int64 // ms, of expiryFixed
}

// findEffects finds the effect for each state. It must be the same for all locks.
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

// checkPaths checks all paths, also those for locks in different states. Each lock must stay
// unchanged, or get the effect for its own state.
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

// effect is the effect on a key that was in one state.
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
