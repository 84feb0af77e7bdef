package chaos

// clocks_test.go: faults of a master's clock.

import (
	"context"
	"slices"
	"time"
)

// steps that must be noticed: above the master timeout of 100 ms.
var steps = []time.Duration{
	150 * time.Millisecond, 400 * time.Millisecond, maxTTL, 5 * time.Second, time.Hour,
}

// stepClock steps and waits until a daemon has looked, which retires the life
// that the master's memory had: a step that no daemon saw is outside of what is
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
		v.stand.t.Errorf("the clock of master %s stepped by %v and no daemon noticed within %v", masterName(v.master), v.step, waitTimeout)
	}
}

func stepBack(v *victim) { v.server().Step(-v.step) }

// creepClock stays below the master timeout: such steps need not be noticed,
// and do no harm. Those that are noticed, perhaps only when they are over, take
// the memory like any other.
func creepClock(v *victim) {
	v.step = time.Duration(v.random.Int64N(int64(160*time.Millisecond))) - 80*time.Millisecond
	v.server().Step(v.step)
}

func creepBack(v *victim) { v.server().Step(-v.step) }

// checkTime is longer than a daemon takes to decide what it saw of a clock: the
// master timeout.
const checkTime = 200 * time.Millisecond

// noticed waits until no daemon can have seen anything of a master's clock or
// policy that it has not acted upon: each had the master's vote, and has it when whatever it saw
// before has been decided. It is false when the context ends first.
func (s *stand) noticed(ctx context.Context, master int) bool {
	for _, d := range s.daemons {
		for voted := false; ; {
			votes := d.hasVoteOf(master)
			if votes && voted {
				break
			}
			voted = votes
			if !pause(ctx, checkTime) {
				return false
			}
		}
	}
	return true
}
