// The states of a key, what a script does to it, and the times that it gives.

package dropin

import "math"

// KeyState is the state of a key when the script runs.
type KeyState uint8

const (
	Free          KeyState = iota // the key does not exist
	HeldBySelf                    // the call's token holds it
	HeldByOther                   // another token holds it
	NoExpiry                      // the call's token holds it without an expiry
	OtherNoExpiry                 // another token holds it without an expiry
	keyStates
	tableStates = OtherNoExpiry // the table and --script-class do not tell the last one from HeldByOther
)

// KeyView describes a key of a quorum, in the terms of a call.
type KeyView struct {
	State KeyState
	Value string
	Left  int64 // ms; -1 without an expiry, -2 if the key is free
}

// Change names the effect of a script on a key.
type Change uint8

const (
	Unchanged Change = iota
	Taken
	Renewed
	Deleted
	Overwritten
)

// Unit is the unit of a time argument.
type Unit uint8

const (
	NoTime            Unit = iota // the script sets no expiry
	Milliseconds                  // from now
	Seconds                       // from now
	UnixMilliseconds              // a point in time
	UnixSeconds                   // a point in time
	FixedMilliseconds             // written in the script itself
)

// timeUnits are the units by the words of the table and of --script-class.
var timeUnits = map[string]Unit{"ms": Milliseconds, "s": Seconds, "ms@": UnixMilliseconds, "s@": UnixSeconds}

// milliseconds converts a time of this unit. ok is false if it is not above 0, or too long.
func (u Unit) milliseconds(n int64) (ms int64, ok bool) {
	if u == Seconds || u == UnixSeconds {
		return n * 1000, n > 0 && n <= math.MaxInt64/1000
	}
	return n, n > 0
}

// absolute reports whether a time of this unit is a point in time.
func (u Unit) absolute() bool { return u == UnixMilliseconds || u == UnixSeconds }

// Time is the source of the expiry that a script sets.
type Time struct {
	Arg   int // from 1; 0 if Unit is NoTime or FixedMilliseconds
	Unit  Unit
	Fixed int64 // ms, for FixedMilliseconds
}
