// Records are the copies of other masters' registers that each master of a group stores.
//
// A register never falls, in whatever incarnation: a new incarnation begins above the old
// register. So a master that returns with a lower one has lost what it
// acknowledged, although its file calls itself durable. A daemon that has run all
// the time detects that by itself (peerRecords.acked). For daemons that have not, every daemon
// writes what it has seen acknowledged by each master to the other masters: at most
// once a second, and only what has risen. A record is true for ever, whichever
// memory holds it, so ZADD GT is enough, and damaged or missing records only remove
// the protection.
//
// A new daemon reads the records of a quorum of masters before it admits any
// master, and of every master that its first dial reaches. A grant needs a quorum
// of connected masters anyway, so this costs no availability. Later the daemon reads the
// records again only while a master is away, for another daemon may still reach it.
//
// This covers no register that was raised in the last second or so before the last
// daemon ended, and no record whose holders are all away, blank or rolled back, too.

package pool

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/wire"
)

// maxAdmissions of one connection are tried: each after the first begins a new incarnation.
const maxAdmissions = 10

// MaxRegister bounds the registers: beyond it Lua and zset scores stop being exact integers. A register
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
// that loads its data, or is busy, shows nothing about its records.
func lasts(err error) bool {
	refusal, ok := err.(MasterError)
	return !ok || refusal.Begins("WRONGTYPE") || wire.IsDenied(string(refusal))
}

// peerRecords is a lane's part of the records, guarded like the lane.
type peerRecords struct {
	options *Options
	db      int
	name    string // of the master

	acked             int64         // highest register read or raised under a good seal, in whatever incarnation
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

// minRegister is what the master's register cannot be below.
func (p *peerRecords) minRegister() int64 { return max(p.acked, p.recordedRegister) }

func recordQueries(all []*peerRecords) (commands []Command) {
	for _, p := range all {
		commands = append(commands, recordQuery(p.options, p.db, p.name))
	}
	return commands
}

// planRecords decides what a flush writes, and reads if other masters are away. Masters are
// connected as a rule, and then their own registers tell more than records do.
func (p *peerRecords) planRecords(r *readings, all []*peerRecords, away bool) {
	if p.recordsWritten == nil {
		return // embedded masters end with this process
	}
	r.recordsKey = RecordsKey(p.options)
	for i, other := range all {
		if other != p && other.acked > p.recordsWritten[i] {
			r.newRecords = append(r.newRecords, record{i, recordOf(p.options, p.db, other.name), other.acked})
		}
	}
	if away {
		r.recordsOf = all
	}
}

// noteRecords stores what the flush has written and read, and reports whether it has read. What
// a master refuses for a while, as without memory, is written again a second later.
func (p *peerRecords) noteRecords(r *readings, replies []Reply, now time.Duration) (read bool) {
	if r.recordsWrittenAt >= 0 {
		if err := replies[r.recordsWrittenAt].Err; err == nil {
			for _, n := range r.newRecords {
				p.recordsWritten[n.lane] = max(p.recordsWritten[n.lane], n.score)
			}
		} else if lasts(err) {
			p.logUnreadable(err)
		}
	}
	return r.recordsReadAt >= 0 && p.mergeRecords(r.recordsOf, replies[r.recordsReadAt:], now)
}

// mergeRecords applies the records of the master about all of them, and reports whether it has
// shown them.
func (p *peerRecords) mergeRecords(all []*peerRecords, replies []Reply, now time.Duration) bool {
	for i, other := range all {
		score, err := ReadRecord(replies[i])
		switch {
		case err == nil:
		case lasts(err):
			p.logUnreadable(err)
		default:
			return false
		}
		if other != p {
			other.recordedRegister = max(other.recordedRegister, score)
		}
	}
	p.recordsReadAt = max(now, 1)
	return true
}

// logUnreadable logs once that the master's records cannot be used.
func (p *peerRecords) logUnreadable(err error) {
	if p.recordsUnreadable {
		return
	}
	p.recordsUnreadable = true
	p.options.Logger.Warn("records of acknowledged registers are unreadable and count as absent",
		"master", p.name, "db", p.db, "key", RecordsKey(p.options),
		"err", err.Error(), "hint", "WRONGTYPE: other data has the key, set --key-prefix or delete it; NOPERM: the user lacks zscore or zadd")
}

// GlobEscape escapes a prefix so that MATCH takes it literally.
func GlobEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
