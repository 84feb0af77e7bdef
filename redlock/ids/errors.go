package ids

import (
	"fmt"
	"strings"

	"redlockd/redlock/engine"
)

// NotDurable means that too few masters promise to remember an id over a crash.
type NotDurable struct {
	Durable, Needed, Total int
	Volatile               []string // "a=10.0.0.1:6379 has appendonly no"
}

func (e *NotDurable) Error() string {
	return fmt.Sprintf("%d of %d masters are durable, %d needed: %s; set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no on them (one that has written without them must be restarted), or accept that a crash may repeat ids with --ids-durability=off",
		e.Durable, e.Total, e.Needed, strings.Join(e.Volatile, ", "))
}

// LostState means that too few masters can be sure of a counter's value: they
// have lost their memory, or have never seen the counter in a group that was not
// bootstrapped.
type LostState struct {
	Counter         engine.Key
	Trusted, Needed int
	Highest         int64 // highest value any master reported, a lower bound of the truth
}

func (e *LostState) Error() string {
	return fmt.Sprintf("counter '%s' is remembered by %d trusted masters, %d needed, and the highest value found is %d; if it was never used, or its last id is known, send DIDRESEED %s VALUE with a value not below the last id that was given",
		e.Counter, e.Trusted, e.Needed, e.Highest, e.Counter)
}

// Exhausted means that a counter has no ids left for this request.
type Exhausted struct {
	Counter engine.Key
	Value   int64
}

func (e *Exhausted) Error() string {
	return fmt.Sprintf("counter '%s' is at %d and ends at 9223372036854775807; use another name", e.Counter, e.Value)
}

// BelowKnown means that a counter may not be set below what a master knows.
type BelowKnown struct {
	Counter      engine.Key
	Value, Known int64
	Master       string
}

func (e *BelowKnown) Error() string {
	return fmt.Sprintf("value %d is below %d, which master %s knows for counter '%s': ids up to there may have been given; choose a value of at least %d",
		e.Value, e.Known, e.Master, e.Counter, e.Known)
}

// NotConfirmed means that a counter is not what the operator confirmed; nothing was deleted.
type NotConfirmed struct {
	Counter        engine.Key
	Confirm, Value int64
	Absent         bool // no master that answered has it
}

func (e *NotConfirmed) Error() string {
	if e.Absent {
		return fmt.Sprintf("counter '%s' is on no master that answered; nothing was deleted", e.Counter)
	}
	return fmt.Sprintf("CONFIRM %d is not the value of counter '%s', which is %d; nothing was deleted; send CONFIRM %d if it is the right counter and all ids up to that may be given again",
		e.Confirm, e.Counter, e.Value, e.Value)
}

// InUse means that a counter changed while it was being deleted.
type InUse struct {
	Counter         engine.Key
	Confirm         int64
	Changed         []string // masters
	Deleted, Needed int
}

func (e *InUse) Error() string {
	return fmt.Sprintf("counter '%s' is in use: it changed on %s and was deleted on %d masters, %d needed; ids up to %d may be given again, none above; stop its clients, look at DIDS %s and repeat with the value that it has then",
		e.Counter, strings.Join(e.Changed, ", "), e.Deleted, e.Needed, e.Confirm, e.Counter)
}
