package chaos

// clocks_test.go: what happens to a master's clock.

import (
	"slices"
	"time"
)

// steps that must be noticed: above the master timeout of 100 ms.
var steps = []time.Duration{
	150 * time.Millisecond, 400 * time.Millisecond, maxTTL, 5 * time.Second, time.Hour,
}

// stepClock steps and waits until a daemon has looked, which retires the life
// that the master's memory had: a step that nobody saw is outside of what is
// promised. Nothing else stops this master, and all daemons are not away at
// once, so one of them looks soon.
func stepClock(v *victim) {
	before := v.stand.identity(v.master)
	v.step = steps[v.random.IntN(len(steps))]
	if v.random.IntN(2) == 0 {
		v.step = -v.step
	}
	v.server().Step(v.step)
	if !eventually(func() bool { return !slices.Equal(v.stand.identity(v.master), before) }) {
		v.stand.t.Errorf("the clock of master %s stepped by %v and no daemon noticed within %v", masterName(v.master), v.step, patience)
	}
}

func stepBack(v *victim) { v.server().Step(-v.step) }

// creepClock stays below the master timeout: such steps need not be noticed,
// and do no harm.
func creepClock(v *victim) {
	v.step = time.Duration(v.random.Int64N(int64(160*time.Millisecond))) - 80*time.Millisecond
	v.server().Step(v.step)
}

func creepBack(v *victim) { v.server().Step(-v.step) }
