// Bulk commands: operations of one flush that have a bulk script share one call of it.
//
// A master spends more on a script's call than on the lock itself, and so does this daemon on
// writing, guarding and reading the call.
//
// A flush consists of segments. A segment ends before any command that is neither an acquire
// nor a release with a bulk script. Within one, releases move forward to the first of them,
// and acquires wait for its end: a permit that is released in the flush is free for the
// acquires of it. Answers come in the order of execution. Extensions are segments of their
// own: those that stand together share a call and pass nothing, and renewals come together.
//
// What changes its place passes operations of other keys, and of its own key only what has
// another token: acquires that share the key, acquires of which at most one counts, and in
// front of acquires the releases. No operation passes one of its own token. A release whose
// token is acquired in the same flush has its own command, and so ends the segment: the
// acquire is executed first. Passing it, the release would leave the copy behind.
//
// Measured for releases, medians of interleaved runs on five masters, two cores shared with
// them: processor time of the masters for a pair from 22.7 to 18.3 µs with 64
// callers of one client, from 15.4 to 9.6 µs with 50 connections of depth 16. For acquires
// see together.lua.

package pool

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bulk is one command for the entries that share it.
type bulk struct {
	at      int   // index of the command, −1 = it waits for the end of the segment
	entries []int // of the flush, in the order of execution
	parts   int   // of the reply; 0 = a command of the only entry's own, or none
	locks   int   // that the entries name, some more than once
}

// maxBulkLocks bounds a bulk: a script's unpack has room for 8,000 words, and no script has
// more than 16 for each lock.
const maxBulkLocks = 500

// maxAlone bounds the time for which operations share no calls after one was denied. Requests for a key that
// the master's user may not use are denied one by one then, and delay no others.
const maxAlone = time.Minute

// BulkCall is one call of a bulk's script, while it is written.
type BulkCall struct {
	Keys, Args []string
	lock       string // of the last group
	size       int    // operations of the last group
	sizeAt     int    // its place in Args
}

// Group begins the next operation of a lock, which has further keys. Operations of one lock
// stand together: the keys stand there once, and in front of the arguments of all of them
// their number.
func (c *BulkCall) Group(lock string, more []string) {
	if c.size == 0 || c.lock != lock {
		c.lock, c.size, c.sizeAt = lock, 0, len(c.Args)
		c.Keys, c.Args = append(append(c.Keys, lock), more...), append(c.Args, "")
	}
	c.size++
	c.Args[c.sizeAt] = strconv.Itoa(c.size)
}

var errUnexpectedBulk = errors.New("answered a script for several operations with something unexpected")

// mayMove reports whether a release may move forward. A key with one holder at a time is
// acquired behind it, or the flush would have ended.
func (ex *exchange) mayMove(e *queueEntry) bool {
	if ex.keys[e.props.Key] != acquireJoint {
		return true
	}
	return !ex.joint[""] && !ex.joint[tokenOf(e.op)] // one without a token of its own lets none move
}

// addToBulk adds entry i to the segment's bulk of its script.
func (ex *exchange) addToBulk(i int) {
	props := &ex.entries[i].props
	locks := 1 + len(props.Rest)
	for n := ex.segment; n < len(ex.bulks); n++ {
		b := &ex.bulks[n]
		if ex.entries[b.entries[0]].props.Bulk == props.Bulk && b.locks+locks <= maxBulkLocks {
			b.entries, b.locks = append(b.entries, i), b.locks+locks
			return
		}
	}
	n := len(ex.bulks)
	if n < cap(ex.bulks) {
		ex.bulks = ex.bulks[:n+1]
	} else {
		ex.bulks = append(ex.bulks, bulk{})
	}
	ex.bulks[n] = bulk{at: -1, entries: append(ex.bulks[n].entries[:0], i), locks: locks}
	if !props.Exclusive && !ex.stays {
		ex.place(n)
	}
}

// place gives a bulk the next command.
func (ex *exchange) place(n int) {
	ex.next()
	ex.bulks[n].at = len(ex.commands) - 1
	ex.order = append(ex.order, ^n)
}

// endSegment writes the bulks that no operation joins any more.
func (ex *exchange) endSegment() {
	for n := ex.segment; n < len(ex.bulks); n++ {
		b := &ex.bulks[n]
		waited := b.at < 0
		if waited {
			ex.place(n)
		}
		if !ex.writeBulk(b) && waited {
			ex.commands = ex.commands[:b.at]
		}
	}
	ex.segment = len(ex.bulks)
}

// writeBulk reports false if no entry has anything to send, as Operation.Command. An entry
// that shares with no other has its own command.
func (ex *exchange) writeBulk(b *bulk) bool {
	c, first := &ex.commands[b.at], &ex.entries[b.entries[0]]
	if len(b.entries) == 1 {
		if !first.op.Command(&ex.context, c) {
			return false
		}
		ex.index[b.entries[0]] = b.at
		return true
	}
	if first.props.Exclusive {
		slices.SortStableFunc(b.entries, func(i, j int) int { return cmp.Compare(ex.entries[i].props.Key, ex.entries[j].props.Key) })
	}
	call := &ex.call
	call.Keys, call.Args, call.size = call.Keys[:0], call.Args[:0], 0
	for _, i := range b.entries {
		if ex.entries[i].op.(BulkOperation).AddToBulk(&ex.context, call) {
			ex.index[i], ex.part[i] = b.at, b.parts
			b.parts++
		}
	}
	c.Set("EVALSHA", first.props.Bulk, strconv.Itoa(len(call.Keys)))
	c.Args = append(append(c.Args, call.Keys...), call.Args...)
	return b.parts > 0
}

// unexpectedBulk is the error of a bulk's reply that does not have one part for each operation.
func (ex *exchange) unexpectedBulk() error {
	for _, b := range ex.bulks {
		if b.parts == 0 {
			continue
		}
		switch r := ex.replies[b.at]; r.Kind {
		case ReplyError:
		case ReplyString:
			if len(r.Str) != b.parts || strings.Trim(r.Str, "0123456789") != "" {
				return errUnexpectedBulk
			}
		default:
			if r.Kind != ReplyArray || len(r.Items) != b.parts {
				return errUnexpectedBulk
			}
		}
	}
	return nil
}

// reply is the answer to entry i, which was sent.
func (ex *exchange) reply(i int) Reply {
	r, part := ex.replies[ex.index[i]], ex.part[i]
	switch {
	case part >= 0 && r.Kind == ReplyString:
		return Reply{Kind: ReplyInt, Int: int64(r.Str[part] - '0')}
	case part >= 0 && r.Kind == ReplyArray:
		return r.Items[part]
	}
	return r
}

// takeUnexecuted removes operations of which the master has executed nothing, and returns them:
// sent again, they are executed. An operation gets the error all the same if one of its own token,
// in the flush or in those that are under way behind it, would have been executed before it.
//
// Lost scripts are loaded again in front of them.
//
// Sent alone, of a call that was denied only the operations of the key are denied that the master's
// user may not use. A master checks all keys before it executes anything, and no error of a script
// begins with the word (Redis 6.2 to Valkey 9.1). Otherwise one client that requests such a key made
// the requests of all others fail.
func (f *flush) takeUnexecuted(now time.Duration, behind []*flush) (again []queueEntry) {
	denied := slices.ContainsFunc(f.bulks, func(b bulk) bool { return b.parts > 0 && f.replies[b.at].Begins("NOPERM") })
	if denied {
		f.aloneUntil = now + maxAlone
	}
	if !denied && !f.lost {
		return nil
	}
	for i, at := range f.index {
		if at >= 0 && (f.lost || f.part[i] >= 0) && f.unexecuted(at) && !f.isOvertaken(i, behind) {
			again = append(again, f.entries[i])
			f.entries[i].op = nil // answered later
		}
	}
	return again
}

// takeAgain returns the operations of a flush that was answered too late which are to be sent again,
// of those that the master has not executed. They have been answered as unknown.
func (f *flush) takeAgain() (again []queueEntry) {
	for i, at := range f.index {
		if at >= 0 && f.entries[i].props.Again && f.unexecuted(at) {
			again = append(again, f.entries[i])
		}
	}
	return again
}

// unexecuted reports whether the master has refused a command before it executed anything. Texts of
// clients, which may return any error, are not sent by EVALSHA.
func (ex *exchange) unexecuted(at int) bool {
	return ex.replies[at].Begins("NOPERM") || ex.replies[at].Begins("NOSCRIPT") && ex.commands[at].Args[0] == "EVALSHA"
}

// isOvertaken reports whether the master has executed a later operation that entry i must not follow.
// It may have executed all of the flushes behind.
func (ex *exchange) isOvertaken(i int, behind []*flush) bool {
	e := &ex.entries[i]
	token := tokenOf(e.op)
	overtakes := func(later *queueEntry) bool {
		other := tokenOf(later.op)
		return (token == "" || other == "" || token == other) && e.props.meets(&later.props)
	}
	for j := i + 1; j < len(ex.entries); j++ {
		if at := ex.index[j]; at >= 0 && !ex.unexecuted(at) && overtakes(&ex.entries[j]) {
			return true
		}
	}
	for _, f := range behind {
		for j, at := range f.index {
			if at >= 0 && overtakes(&f.entries[j]) {
				return true
			}
		}
	}
	return false
}

// inOrder calls do with each entry, in the order in which the master executes them: a release
// that made room for an acquire is answered before it.
func (ex *exchange) inOrder(do func(i int)) {
	for _, i := range ex.order {
		if i >= 0 {
			do(i)
			continue
		}
		for _, one := range ex.bulks[^i].entries {
			do(one)
		}
	}
}
