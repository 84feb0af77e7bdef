// Package stored has the names and forms of what the masters keep longer than locks: counters
// and records of work. Packages redlock/ids and redlock/work use them, and pool/setup carries
// them to another group of masters.
package stored

import (
	"cmp"
	"strconv"
	"strings"
)

// Own begins the names of redlockd's own keys, behind the key prefix. Counters and Works begin
// those of counters and of records of work; the name that a client gave stands behind.
const (
	Own      = "redlockd:"
	Counters = Own + "id:"
	Works    = Own + "work:"
)

// WorkFields are the fields of a record that outlast its attempt, see worktry.lua: state, attempt,
// owner, max, keep, text, and the result, which may be missing.
var WorkFields = []string{"s", "a", "o", "m", "k", "t", "r"}

// ParseCounter splits a counter, "digits@incarnation"; ok is false if it is none.
func ParseCounter(s string) (value int64, incarnation string, ok bool) {
	digits, incarnation, _ := strings.Cut(s, "@")
	value, err := strconv.ParseInt(digits, 10, 64)
	return value, incarnation, err == nil && value >= 0
}

// Attempt is an attempt at a piece of work, in a record.
type Attempt struct {
	Number int64
	Owner  string // its token, which ends with the time of the request, in ms: secret.attempt.max.keep.began
}

// Began returns the time at which the attempt was requested; 0 if its owner is no token.
func (a Attempt) Began() int64 {
	began, _ := strconv.ParseInt(a.Owner[strings.LastIndexByte(a.Owner, '.')+1:], 10, 64)
	return began
}

// IsNewer compares the attempts of two masters' records of done work. They may differ: an end that
// no quorum acknowledged stays on the masters that it reached. The newest one is what to show:
//
// Only a granted attempt has an end. A quorum wrote the highest granted attempt. A master writes no
// attempt over an end, and no end over a higher attempt, so none of that quorum has the end of a
// lower attempt. The others are less than a quorum. So in each quorum of ends, one is that of the
// highest granted attempt. All of its ends have one result, because its worker has one. (Two
// results of one attempt are its worker's mistake; a master keeps the first.)
//
// Numbers start again when a work has been forgotten, which masters do within the difference of
// their clocks. The time of the request does not start again, so it comes first.
func (a Attempt) IsNewer(b Attempt) bool {
	return cmp.Or(cmp.Compare(a.Began(), b.Began()), cmp.Compare(a.Number, b.Number)) > 0
}
