// The operation of a script, by its effects on a lock.

package dropin

import "errors"

// operation returns the Op for the pattern of changes.
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

// checkExpiries checks that every state takes its expiry from the same source.
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
