// Ownership: the keys that this group of masters has, of several groups.
//
// The key of an operation may leave its group while the operation is under way: what was queued
// before is sent to the same masters under their next configuration. So a ballot compares the map
// when it is granted with the map when it began. The daemon has the next map before a master can vote
// under the next configuration. So with an unchanged map, all votes are of the former one.

package engine

import (
	"fmt"
	"time"
)

// Ownership is called with the locks of ballots held.
type Ownership interface {
	// Version is that of the daemon's map, from 1. It grows with each change.
	Version() uint32
	// Since is the version since which this group has the key without a break; 0 = it has it no more.
	Since(k Key) uint32
	// Moving is the error of a request for a key that this group does not have.
	Moving(k Key) *Moving
}

// Moving means that the key's slot is on its way to another group of masters: nothing is granted
// meanwhile. What was taken is given back.
type Moving struct {
	Slots    string // that move, such as 0-1000
	From, To string // groups; To is "" if it is not known
	Rest     time.Duration
	Moved    bool // it is there by now
	Late     bool // the freeze is over: the command that moves the slots may have ended before its end
	Unknown  bool // this daemon does not know the other group
}

func (e *Moving) Error() string {
	if e.Moved {
		return fmt.Sprintf("the slots %s have moved from group %s to %s meanwhile; nothing was done, try again", e.Slots, e.From, e.To)
	}
	to := e.To
	switch {
	case to == "":
		to = "another group"
	case e.Unknown:
		to += ", for which the file of this daemon has no [[group]] table"
	}
	text := fmt.Sprintf("the slots %s move from group %s to %s; nothing was done, try again in %d ms", e.Slots, e.From, to, e.Rest.Milliseconds())
	if e.Late {
		text += "; if that lasts, an operator must finish the move: redlockd slots shows how"
	}
	return text
}
