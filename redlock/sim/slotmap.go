package sim

import (
	"errors"
	"slices"

	"redlockd/redlock"
	"redlockd/redlock/slots"
)

// mover is an operator who moves slots; only one of the commands runs at a time.
type mover struct {
	ranges   slots.Ranges // of the last move
	to       int          // its group
	process  *daemon      // the last one
	running  bool         // it has not ended
	finished bool         // it has succeeded, or is not allowed
}

// firstFiles are the slots of both groups before any move.
func firstFiles() [2]slots.Ranges {
	return [2]slots.Ranges{mustParse("0-8191"), mustParse("8192-16383")}
}

func mustParse(text string) slots.Ranges {
	ranges, err := slots.Parse(text)
	if err != nil {
		panic(err)
	}
	return ranges
}

// refused checks an error: only names in slots that are moved may be frozen.
func (w *World) refused(err error, names ...string) {
	_, isMoving := errors.AsType[*redlock.Moving](err)
	if w.Scenario.Movers > 0 && isMoving && !slices.ContainsFunc(names, func(name string) bool { return w.moved.Has(slots.Of(name)) }) {
		w.violate("frozen", names[0], "no operator has moved its slot: "+err.Error())
	}
}
