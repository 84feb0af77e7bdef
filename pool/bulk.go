// Bulk commands: the releases of one flush become one command.
//
// A master spends more on a script's call than on the release itself, and so does this
// daemon on writing, guarding and reading the call. Operations that have a bulk script
// share one call of it, in the place of the first of them. That moves the others
// forward, past acquires of other keys, and of its own key if others may hold it together
// with them, but never past an acquire with its own token: it would leave the copy behind.
// Any other operation whose key is acquired in the same flush keeps its own command and
// place, and after any other command a new bulk begins. Answers come in the order of execution.
//
// Measured, medians of interleaved runs on five masters, two cores shared with
// them: processor time of the masters for a pair from 22.7 to 18.3 µs with 64
// callers of one client, from 15.4 to 9.6 µs with 50 connections of depth 16; with 32
// readers of one key from 168 to 127 µs, with 32 of 256 permits from 273 to 170 µs.

package pool

import (
	"errors"
	"strconv"
	"strings"
)

// bulk is one command for the entries that share it.
type bulk struct {
	at      int   // index of the command
	entries []int // of the flush, in the order of the script's keys
}

var errUnexpectedBulk = errors.New("answered a script for several keys with something unexpected")

// addJoint notes an acquire that shares its key. One without a token of its own lets no
// operation on such keys move.
func (f *flush) addJoint(op Operation) {
	token := ""
	if named, ok := op.(BulkOperation); ok {
		token = named.BulkArg()
	}
	f.joint[token] = true
}

// mayShare reports whether an operation that has a bulk script may move forward.
func (f *flush) mayShare(e *queueEntry) bool {
	switch f.keys[e.props.Key] {
	case 0:
		return true
	case acquireJoint:
		return !f.joint[""] && !f.joint[e.op.(BulkOperation).BulkArg()]
	}
	return false
}

// addToBulk adds entry i to the open bulk, or begins one; it returns its index.
func (f *flush) addToBulk(open, i int) int {
	if open < 0 || f.entries[f.bulks[open].entries[0]].props.Bulk != f.entries[i].props.Bulk {
		open = len(f.bulks)
		f.next()
		f.bulks = f.nextBulk()
		f.bulks[open].at = len(f.commands) - 1
	}
	b := &f.bulks[open]
	f.index, f.part = append(f.index, b.at), append(f.part, len(b.entries))
	b.entries = append(b.entries, i)
	return open
}

// nextBulk appends one more bulk, with the memory of an earlier one.
func (f *flush) nextBulk() []bulk {
	n := len(f.bulks)
	if n == cap(f.bulks) {
		return append(f.bulks, bulk{})
	}
	all := f.bulks[:n+1]
	all[n].entries = all[n].entries[:0]
	return all
}

// writeBulks writes the commands once their entries are known. An entry that shares with no
// other has its own command.
func (f *flush) writeBulks() {
	for _, b := range f.bulks {
		c, first := &f.commands[b.at], &f.entries[b.entries[0]]
		if len(b.entries) == 1 {
			f.part[b.entries[0]] = -1
			first.op.Command(&f.context, c)
			continue
		}
		c.Set("EVALSHA", first.props.Bulk, strconv.Itoa(len(b.entries)))
		for _, i := range b.entries {
			c.Args = append(c.Args, f.entries[i].props.Key)
		}
		for _, i := range b.entries {
			c.Args = append(c.Args, f.entries[i].op.(BulkOperation).BulkArg())
		}
	}
}

// unexpectedBulk is the error of a bulk's reply that is not one digit for each operation.
func (f *flush) unexpectedBulk() error {
	for _, b := range f.bulks {
		r := f.replies[b.at]
		if r.Kind == ReplyError || len(b.entries) == 1 {
			continue
		}
		if r.Kind != ReplyString || len(r.Str) != len(b.entries) || strings.Trim(r.Str, "01") != "" {
			return errUnexpectedBulk
		}
	}
	return nil
}

// reply is the answer to entry i, which was sent.
func (f *flush) reply(i int) Reply {
	r := f.replies[f.index[i]]
	if part := f.part[i]; part >= 0 && r.Kind == ReplyString {
		return Reply{Kind: ReplyInt, Int: int64(r.Str[part] - '0')}
	}
	return r
}

// inOrder calls do with each entry, in the order in which the master executes them: a release
// that made room for an acquire is answered before it.
func (f *flush) inOrder(do func(i int)) {
	bulks := f.bulks
	for i := range f.entries {
		switch {
		case len(bulks) > 0 && bulks[0].entries[0] == i:
			for _, one := range bulks[0].entries {
				do(one)
			}
			bulks = bulks[1:]
		case f.part[i] < 0:
			do(i)
		}
	}
}
