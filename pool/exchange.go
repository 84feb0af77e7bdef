// exchange: the operations of one flush, the commands that they become, and the replies.

package pool

import (
	"slices"
	"time"
)

// exchange is reused by its flush; its buffers keep their size.
type exchange struct {
	entries  []queueEntry
	commands []Command
	replies  []Reply
	index    []int                  // entries[i] was answered by replies[index[i]]; −1 = nothing was sent
	part     []int                  // … by this part of it; −1 = by the whole reply
	order    []int                  // of execution: an entry, or below 0 a bulk, as ^ of its index
	bulks    []bulk                 // commands shared by several operations
	segment  int                    // the first of the bulks that may still grow
	stays    bool                   // the segment is extensions, which keep their place
	call     BulkCall               // of the bulk that is being written
	keys     map[string]acquireKind // that are acquired in this flush
	joint    map[string]bool        // BulkToken of the acquires that share their key
	repeats  bool                   // several operations acquire one key
	taken    Taken                  // made when repeats is first true

	aloneUntil time.Duration // operations share no commands, see takeUnexecuted

	sealed  bool  // a seal with a raise stands at the end
	bare    bool  // an operation needs the raise itself
	ahead   int64 // the furthest that an operation needs the register raised above the clock
	least   int64 // the highest register that an operation needs
	context SendContext
}

// acquireKind names the way in which a key is acquired in a flush, and so what may follow on it.
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

func (ex *exchange) reset() {
	clear(ex.entries)
	ex.entries, ex.commands, ex.replies = ex.entries[:0], ex.commands[:0], ex.replies[:0]
	ex.index, ex.part, ex.order = ex.index[:0], ex.part[:0], ex.order[:0]
	ex.bulks, ex.segment, ex.stays = ex.bulks[:0], 0, false
	ex.sealed, ex.bare, ex.ahead, ex.least = false, false, 0, 0
	if ex.keys == nil {
		ex.keys, ex.joint = make(map[string]acquireKind), make(map[string]bool)
	}
	clear(ex.keys)
	clear(ex.joint)
	clear(ex.taken)
	ex.repeats = false
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
func (ex *exchange) fill(queue []queueEntry, limit int) int {
	n := 0
	for ; n < len(queue) && n < limit; n++ {
		plan := &queue[n].props
		if len(ex.keys) > 0 && ex.conflictsWithEarlier(plan) {
			break
		}
		if plan.Exclusive {
			by := plan.acquireKind()
			ex.keys[plan.Key] = by
			for _, key := range plan.Rest {
				ex.keys[key] = by
			}
			if by == acquireJoint {
				ex.joint[tokenOf(queue[n].op)] = true
			}
		}
		ex.sealed = ex.sealed || plan.Sealed
		ex.bare = ex.bare || plan.SealOnly
		ex.ahead, ex.least = max(ex.ahead, plan.RaiseBy), max(ex.least, plan.RaiseTo)
		ex.entries = append(ex.entries, queue[n])
	}
	return n
}

// conflictsWithEarlier reports whether an earlier command of the flush acquires one of
// the keys and this operation must not follow it.
func (ex *exchange) conflictsWithEarlier(plan *Props) bool {
	conflicts := func(key string) bool { return ex.conflicts(plan, key) }
	return plan.Key != "" && conflicts(plan.Key) || slices.ContainsFunc(plan.Rest, conflicts)
}

func (ex *exchange) conflicts(plan *Props, key string) bool {
	switch ex.keys[key] {
	case 0:
		return false
	case acquireJoint:
		return !plan.SharesKey
	case acquireOnce:
		if plan.Exclusive && plan.SharesFlush && !plan.SharesKey {
			ex.repeats = true
			return false
		}
	}
	return true
}

// writeOperations turns the entries into commands.
func (ex *exchange) writeOperations() {
	for i := range ex.entries {
		e := &ex.entries[i]
		ex.index, ex.part = append(ex.index, -1), append(ex.part, -1)
		if stays := e.props.keepsPlace(); stays != ex.stays {
			ex.endSegment()
			ex.stays = stays
		}
		if e.props.Bulk != "" && ex.context.Now >= ex.aloneUntil && (e.props.Exclusive || ex.stays || ex.mayMove(e)) {
			ex.addToBulk(i)
			continue
		}
		if !e.props.Exclusive && !e.props.SealOnly {
			ex.endSegment()
		}
		ex.order = append(ex.order, i)
		switch {
		case e.props.SealOnly:
		case e.op.Command(&ex.context, ex.next()):
			ex.index[i] = len(ex.commands) - 1
		default:
			ex.commands = ex.commands[:len(ex.commands)-1]
		}
	}
	ex.endSegment()
}

// next appends one more command, with the buffer of an earlier one.
func (ex *exchange) next() *Command {
	if len(ex.commands) < cap(ex.commands) {
		ex.commands = ex.commands[:len(ex.commands)+1]
	} else {
		ex.commands = append(ex.commands, Command{})
	}
	return &ex.commands[len(ex.commands)-1]
}

// unsealedAnswer is an answer that waits for the seal of a later flush.
type unsealedAnswer struct {
	entry queueEntry
	reply Reply
}

// takeUnsealed removes the answers of 0 that count only under a seal, and adds them to held.
func (ex *exchange) takeUnsealed(held []unsealedAnswer) []unsealedAnswer {
	for i := range ex.entries {
		e := &ex.entries[i]
		if !e.props.SealZero || ex.index[i] < 0 {
			continue
		}
		if r := ex.reply(i); r.Kind == ReplyInt && r.Int == 0 {
			held = append(held, unsealedAnswer{entry: *e, reply: r})
			e.op = nil // answered later
		}
	}
	return held
}

// teach calls do with the late answer to each operation that wants it.
func (ex *exchange) teach(lane int, do func(op Learner, a Answer)) {
	ex.inOrder(func(i int) {
		if op, ok := ex.entries[i].op.(Learner); ok && ex.index[i] >= 0 {
			do(op, Answer{Lane: lane, Sent: true, Reply: ex.reply(i), Seal: Seal{Err: errStalled}})
		}
	})
}

// answers calls do with the answer to each operation, in the order in which the master
// executed them, and counts the votes.
func (ex *exchange) answers(lane int, seal Seal, do func(op Operation, a Answer)) (counted Votes) {
	if ex.repeats && ex.taken == nil {
		ex.taken = Taken{}
	}
	ex.inOrder(func(i int) {
		op := ex.entries[i].op
		if op == nil {
			return
		}
		a := Answer{Lane: lane, Seal: seal}
		if ex.repeats {
			a.Taken = ex.taken
		}
		if ex.index[i] >= 0 {
			a.Sent, a.Reply = true, ex.reply(i)
		}
		if ex.entries[i].props.Exclusive {
			counted.count(&a)
		}
		do(op, a)
	})
	return counted
}
