// Record keys: where the records of other masters' registers stand, see records.go.

package pool

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/wire"
)

// MaxRegister is where Lua and zset scores stop being exact integers. A register
// above it is damaged (clocks reach it in 2112) and nothing can be ordered on it.
const MaxRegister = 1 << 52

// RecordsKey is the key of the records on every master.
func RecordsKey(o *Options) string { return o.GroupKey("acked") }

// recordOf is the member of the zset for one master. It names group
// and database: records that SWAPDB or an operator moves elsewhere mean nothing there.
func recordOf(o *Options, db int, name string) string {
	return "group=" + o.Group + "/db=" + strconv.Itoa(db) + "/master=" + url.PathEscape(name)
}

// AppendRecordQueries appends one query for each master of the list, in its order. The
// reply stays small whatever else the key holds.
func AppendRecordQueries(o *Options, db int, commands []Command) []Command {
	for i := range o.Masters {
		commands = append(commands, recordQuery(o, db, o.Masters[i].Name))
	}
	return commands
}

func recordQuery(o *Options, db int, name string) Command {
	return wire.Words("ZSCORE", RecordsKey(o), recordOf(o, db, name))
}

// ReadRecord reads one record, 0 if there is none. A value that cannot be a register
// counts as absent; the error has the reason.
func ReadRecord(r Reply) (int64, error) {
	score, ok := r.Number()
	switch {
	case r.Err != nil:
		return 0, r.Err
	case r.Kind == ReplyNil:
		return 0, nil
	case !ok:
		return 0, fmt.Errorf("the score %q is no register", r.Str)
	case score < 0:
		return 0, fmt.Errorf("the score %d is below 0", score)
	case score > MaxRegister:
		return 0, fmt.Errorf("the score %d is above 2^52", score)
	}
	return score, nil
}

// lasts reports whether a master gives this answer until its data or its user's rights change. One
// that loads its data, or is busy, tells nothing about its records.
func lasts(err error) bool {
	refusal, ok := err.(MasterError)
	return !ok || refusal.Begins("WRONGTYPE") || wire.IsDenied(string(refusal))
}

// peerRecords is a lane's part of the records, guarded like the lane.
type peerRecords struct {
	recordedRegister  int64         // highest register of this master in the others' records
	recordsReadAt     time.Duration // when this master's own records were read last, 0 = never
	recordsWritten    []int64       // each lane's register in this master's records, as far as is known
	recordsUnreadable bool          // it is logged that they are unreadable
}

// record is the register of one other master that a flush writes.
type record struct {
	lane   int
	member string
	score  int64
}

// GlobEscape escapes a prefix so that MATCH takes it literally.
func GlobEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
