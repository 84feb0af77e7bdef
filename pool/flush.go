// flush is one write to a master: operations in queue order, then the seal.

package pool

import "time"

// flush is reused by its connection; its buffers keep their size.
type flush struct {
	conn     *connection
	entries  []queueEntry
	commands []Command
	replies  []Reply
	index    []int                  // entries[i] was answered by replies[index[i]]; −1 = nothing was sent
	part     []int                  // … by this digit of it; −1 = by the whole reply
	bulks    []bulk                 // commands shared by several operations
	keys     map[string]acquireKind // that are acquired in this flush
	joint    map[string]bool        // BulkArg of the acquires that share their key
	repeats  bool                   // several operations acquire one key
	taken    Taken                  // made when repeats is first true

	sealed   bool // a seal with a raise stands at the end
	bare     bool // an operation needs the raise itself
	beat     bool // the flush also verifies which process the master is
	raise    int64
	ahead    int64 // the furthest that an operation needs the register raised above the clock
	least    int64 // the highest register that an operation needs
	sent     time.Duration
	context  SendContext
	sealAt   int // index of the seal's first reply, −1 = not sent …
	timeAt   int // … and of its last
	serverAt int // index of INFO server's reply, −1 = not sent
	// settingsAt is the index of the first reply about settings, −1 = not sent.
	settingsAt   int
	daemonsAt    int // likewise about the connections of daemons
	readSettings bool
	// newRecords is what the flush stores on the master about the others, readRecords that
	// it reads the master's records, minRegister what the master's own register cannot be
	// below: see records.go.
	newRecords                      []record
	recordLanes                     []*lane // that the records read are about
	readRecords                     bool
	recordsWrittenAt, recordsReadAt int // −1 = not sent
	minRegister                     int64
	// listenersAt is the index of the reply that counts listeners to events, −1 = not sent.
	listenersAt int
}

// acquireKind is how a key is acquired in a flush, and so what may follow on it.
type acquireKind uint8

const (
	acquireAlone acquireKind = 1 + iota // nothing
	acquireJoint                        // operations that share the key
	acquireOnce                         // acquires that share the flush: at most one of them counts
)

func (p *Props) acquireKind() acquireKind {
	switch {
	case p.SharesKey:
		return acquireJoint
	case p.SharesFlush:
		return acquireOnce
	}
	return acquireAlone
}

func (f *flush) reset(c *connection) {
	clear(f.entries)
	f.conn = c
	f.entries, f.commands, f.index, f.part, f.bulks = f.entries[:0], f.commands[:0], f.index[:0], f.part[:0], f.bulks[:0]
	f.sealed, f.bare, f.beat, f.ahead, f.least, f.sealAt = false, false, false, 0, 0, -1
	f.newRecords, f.readRecords, f.minRegister = f.newRecords[:0], false, 0
	f.context.Lane, f.context.Incarnation, f.context.ConnectedAt = c.lane.index, c.incarnation, c.connectedAt
	if f.keys == nil {
		f.keys, f.joint = make(map[string]acquireKind), make(map[string]bool)
	}
	clear(f.keys)
	clear(f.joint)
	clear(f.taken)
	f.repeats = false
}

// fill takes entries from the front of the queue, at most limit, and stops
// before one whose key was acquired earlier in the same flush: one seal must
// not stand for an acquire and for what comes after it on the same key.
//
// Acquires of one key that share a flush are the exception, because a hot key would
// otherwise end every flush at its second acquire, and with it everything queued
// behind. Measured beside 64 callers that try one key, 64 callers with keys of their own
// had 639 pairs a second without this exception and have 4 490 with it (4 368 beside 64
// with keys of their own).
// A master executes them in order, so one of them is OK and the others are refused, under
// the seal that stands for all: a refusal counts as ever. Two are OK only if something
// freed the key between the two commands: another connection, its expiry or an operator.
// Both fences would lie in the one interval of the flush, in any order; so the second one
// is void (Taken), and its copy is released unless other masters grant it. A release, or
// anything else on the key, still ends the flush: what comes behind it may be OK after an
// acquire that counts.
func (f *flush) fill(queue []queueEntry, limit int) int {
	n := 0
	for ; n < len(queue) && n < limit; n++ {
		plan := &queue[n].props
		if len(f.keys) > 0 && f.conflictsWithEarlier(plan) {
			break
		}
		if plan.Exclusive {
			by := plan.acquireKind()
			f.keys[plan.Key] = by
			for _, key := range plan.Rest {
				f.keys[key] = by
			}
			if by == acquireJoint {
				f.addJoint(queue[n].op)
			}
		}
		f.sealed = f.sealed || plan.Sealed
		f.bare = f.bare || plan.SealOnly
		f.ahead, f.least = max(f.ahead, plan.RaiseBy), max(f.least, plan.RaiseTo)
		f.entries = append(f.entries, queue[n])
	}
	return n
}

// conflictsWithEarlier reports whether an earlier command of the flush acquires one of
// the keys and this operation must not follow it.
func (f *flush) conflictsWithEarlier(plan *Props) bool {
	if plan.Key != "" && f.conflicts(plan, plan.Key) {
		return true
	}
	for _, key := range plan.Rest {
		if f.conflicts(plan, key) {
			return true
		}
	}
	return false
}

func (f *flush) conflicts(plan *Props, key string) bool {
	switch f.keys[key] {
	case 0:
		return false
	case acquireJoint:
		return !plan.SharesKey
	case acquireOnce:
		if plan.Exclusive && plan.SharesFlush && !plan.SharesKey {
			f.repeats = true
			return false
		}
	}
	return true
}

// leftBehind is the proposal of the first operation that this flush leaves in
// the queue, 0 if there is none. The flush raises the register to just below it
// instead of to the clock: otherwise every operation left behind would find
// the register above its own proposal and need a second seal.
func (f *flush) leftBehind(queue []queueEntry) int64 {
	for i := range queue {
		if fence := queue[i].fence; fence > 0 {
			return fence
		}
	}
	return 0
}

// write turns entries into commands, outside of the lock.
func (f *flush) write() {
	open := -1 // the bulk that may still grow
	for i := range f.entries {
		e := &f.entries[i]
		at := -1
		switch {
		case e.props.SealOnly:
		case e.props.Bulk != "" && f.mayShare(e):
			open = f.addToBulk(open, i)
			continue
		case e.op.Command(&f.context, f.next()):
			at = len(f.commands) - 1
		default:
			f.commands = f.commands[:len(f.commands)-1]
		}
		f.index, f.part = append(f.index, at), append(f.part, -1)
		if !e.props.Exclusive {
			open = -1
		}
	}
	f.writeBulks()
	f.serverAt, f.settingsAt, f.daemonsAt, f.recordsWrittenAt, f.recordsReadAt = -1, -1, -1, -1, -1
	if f.beat && !f.conn.lane.group.pool.embedded() {
		f.serverAt = len(f.commands)
		f.next().Set("INFO", "server")
		if f.readSettings {
			f.appendSettings()
			f.appendDaemons()
			f.appendRecords()
		}
	}
	if f.sealed || f.beat {
		f.seal()
	}
}

// seal appends the verification. It stands last: a check before a command proves
// nothing about what happened after the check. A heartbeat without operations
// reads the register and does not raise it: there is no fence to make room
// for, and a durable master would pay for a write.
func (f *flush) seal() {
	f.sealAt = len(f.commands)
	key, identity := f.conn.lane.group.sealKey, f.conn.incarnation.Identity
	f.next().Set("ZSCORE", key, identity)
	if f.sealed {
		f.next().Set("ZADD", key, "XX", "GT", f.context.Decimal(f.raise), identity)
	}
	f.timeAt = len(f.commands)
	f.next().Set("TIME")
}

// next appends one more command, with the buffer of an earlier one.
func (f *flush) next() *Command {
	if len(f.commands) < cap(f.commands) {
		f.commands = f.commands[:len(f.commands)+1]
	} else {
		f.commands = append(f.commands, Command{})
	}
	return &f.commands[len(f.commands)-1]
}
