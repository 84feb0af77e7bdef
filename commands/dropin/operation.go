// The operation of a script, by its effects on a lock.

package dropin

import "errors"

// operation returns the Op for the pattern of changes.
func (v *verdict) operation() (Op, error) {
	if err := v.expiries(); err != nil {
		return 0, err
	}
	mine, other, endless := v.effects[stateMine], v.effects[stateOther].change, v.effects[stateEndless].change
	changes := [3]change{v.effects[stateAbsent].change, mine.change, other}
	switch {
	case changes == [3]change{kept, kept, kept} && endless == kept:
		if v.writes && len(v.signals) == 0 {
			return 0, errors.New("it writes, and neither takes, releases nor prolongs anything")
		}
		if len(v.signals) > 0 || v.publishes {
			return 0, errors.New("it wakes or tells others, and neither takes, releases nor prolongs anything")
		}
		return Read, nil
	case changes == [3]change{taken, kept, kept} && endless == kept:
		return Acquire, nil
	case changes == [3]change{taken, renewed, kept} && endless != deleted:
		return Reacquire, nil
	case changes == [3]change{kept, deleted, kept} && (endless == deleted || endless == kept):
		return Release, nil
	case changes == [3]change{kept, renewed, kept} && endless != deleted && mine.expiry == expiryAdded:
		return ExtendAdd, nil
	case changes == [3]change{kept, renewed, kept} && endless != deleted && mine.expiry != expiryNone:
		return Extend, nil
	case other == stolen && changes[0] == taken && mine.change == renewed && (endless == renewed || endless == kept):
		return Overwrite, nil
	case changes == [3]change{kept, deleted, deleted} && endless == deleted:
		return Discard, nil
	case other == deleted:
		return 0, errors.New("it deletes what another token holds, but not what its own does")
	case other == stolen:
		return 0, errors.New("it takes over what another token holds, but not a free key")
	}
	return 0, errors.New("it is neither an acquire, a release, an extension nor a read")
}

// checkExpiries checks that every state takes its expiry from the same source.
func (v *verdict) expiries() error {
	for _, state := range eachState {
		e := v.effects[state]
		if e.change != taken && e.change != renewed && e.change != stolen {
			continue
		}
		ok := false
		switch v.time.Unit {
		case NoTime:
			ok = e.expiry == expiryNone
		case FixedMilliseconds:
			ok = e.expiry == expiryFixed && e.fixed == v.time.Fixed
		default:
			ok = e.expiry == expiryAsked || e.expiry == expiryAdded && e.change == renewed && v.effects[stateAbsent].change == kept
		}
		if !ok {
			return errors.New("it does not always give the expiry that it is asked for")
		}
	}
	if mine, endless := v.effects[stateMine], v.effects[stateEndless]; mine.change == renewed && endless.change == renewed && mine.expiry != endless.expiry {
		return errors.New("it gives a lock without an expiry another one than a lock with one")
	}
	return nil
}
