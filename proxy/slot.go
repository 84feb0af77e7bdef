package proxy

// slot.go answers: where does the one answer of one command wait for its turn?

import (
	"unsafe"

	"redlockd/commands"

	"github.com/tidwall/redcon"
)

// slot is a command's place in its session's row. It is the call's Sink.
//
// Slots are carved from small blocks, not recycled: a handler that answers
// twice must be caught, however late, and must never answer another command
// that has inherited its slot.
type slot struct {
	session *session
	next    *slot // the command after it
	call    commands.Call
	words   [slotWords]string // backs call.Args of ordinary commands
	input   int               // bytes it was sent in
	barrier bool              // runs alone
	last    bool              // nothing after it is run
	silent  bool              // nothing is written for it

	// Guarded by session.mu.
	answered bool
	reply    commands.Reply
	late     commands.Late // answers in place of reply when its turn has come
	output   int           // estimated bytes of the answer
}

const (
	slotWords  = 6   // DLOCK key ttl TOKEN token fits, as do most
	slotBlock  = 4   // at depth 1 a quarter of an allocation per command
	slotBlocks = 16  // most slots of a block in a deep pipeline
	longInput  = 512 // longer commands get a block of their own, so that none keeps them alive
	lateOutput = 256 // what a late answer may take; known only when it is written
)

// newSlot gives the next slot of the session; soon says how many more will be
// wanted at once. Reader's side only.
func (s *session) newSlot(input, soon int) *slot {
	if input > longInput {
		return &slot{session: s, input: input}
	}
	if len(s.block) == 0 {
		s.block = make([]slot, min(max(soon, slotBlock), slotBlocks))
	}
	sl := &s.block[0]
	s.block = s.block[1:]
	sl.session, sl.input = s, input
	return sl
}

// take makes the slot hold a command's words.
func (sl *slot) take(args []string) *slot {
	sl.call = commands.Call{Args: args, Client: &sl.session.client, Batch: &sl.session.batch, Sink: sl}
	return sl
}

// stringsOf shows redcon's words as strings without copying: redcon copies each
// command to memory of its own and never writes to it again.
func (sl *slot) stringsOf(command redcon.Command) []string {
	args := sl.words[:0]
	if len(command.Args) > slotWords {
		args = make([]string, 0, len(command.Args))
	}
	for _, word := range command.Args {
		args = append(args, unsafe.String(unsafe.SliceData(word), len(word)))
	}
	return args
}

// Deliver implements commands.Sink.
func (sl *slot) Deliver(r commands.Reply) { sl.session.answer(sl, r, nil) }

// DeliverLate implements commands.Sink.
func (sl *slot) DeliverLate(late commands.Late) { sl.session.answer(sl, commands.Reply{}, late) }

var _ commands.Sink = (*slot)(nil)
