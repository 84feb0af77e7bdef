package proxy

// pendingreply.go stores the one answer of one command until its turn comes.

import (
	"unsafe"

	"redlockd/commands"

	"github.com/tidwall/redcon"
)

// pendingReply is a command in its session's reply queue. It receives the call's answer.
//
// Pending replies are allocated in small blocks and never reused: a handler that answers
// twice must be detected, however late, and must never answer another command
// that has taken over its pendingReply.
type pendingReply struct {
	session  *session
	next     *pendingReply // the command after it
	call     commands.Call
	argSpace [ownArgs]string // memory of call.Args of ordinary commands
	input    int             // bytes it was sent in
	plan     commands.Plan
	last     bool // nothing after it is run
	noReply  bool // no reply is written

	// Guarded by session.mu.
	answered bool
	reply    commands.Reply
	deferred commands.DeferredReply // replaces reply when its turn has come
	output   int                    // estimated bytes of the answer
	window   int64                  // in which it counts as in flight, see sharequeue.go; 0 = in none
}

const (
	ownArgs         = 6   // DLOCK key ttl TOKEN token fits, as do most
	minPendingBlock = 4   // at depth 1 a quarter of an allocation per command
	maxPendingBlock = 16  // largest block, for a deep pipeline
	longInput       = 512 // longer commands get a block of their own, so that no other command keeps them in memory
	deferredSize    = 256 // estimated size of a deferred reply, which is made only when it is written
)

// newPending returns the next pendingReply of the session; batchHint is how many more will
// be needed at once. Only the reader calls it.
func (s *session) newPending(input, batchHint int) *pendingReply {
	if input > longInput {
		return &pendingReply{session: s, input: input}
	}
	if len(s.block) == 0 {
		s.block = make([]pendingReply, min(max(batchHint, minPendingBlock), maxPendingBlock))
	}
	pr := &s.block[0]
	s.block = s.block[1:]
	pr.session, pr.input = s, input
	return pr
}

// take makes pr the answer to a command.
func (pr *pendingReply) take(args []string) *pendingReply {
	pr.call = commands.Call{Args: args, Client: &pr.session.client, Batch: &pr.session.batch, Completer: pr}
	return pr
}

// stringsOf returns redcon's words as strings without copying: redcon copies each
// command to memory of its own and never writes to it again.
func (pr *pendingReply) stringsOf(command redcon.Command) []string {
	args := pr.argSpace[:0]
	if len(command.Args) > ownArgs {
		args = make([]string, 0, len(command.Args))
	}
	for _, word := range command.Args {
		args = append(args, unsafe.String(unsafe.SliceData(word), len(word)))
	}
	return args
}

func (pr *pendingReply) Complete(r commands.Reply) { pr.session.answer(pr, r, nil) }

func (pr *pendingReply) CompleteDeferred(deferred commands.DeferredReply) {
	pr.session.answer(pr, commands.Reply{}, deferred)
}

func (pr *pendingReply) reportSecondAnswer() {
	s := pr.session
	s.server.counters.answeredTwice.Add(1)
	s.log.Error("a command was answered twice; the second answer was dropped", "command", commandName(pr.call.Args))
}

var _ commands.Completer = (*pendingReply)(nil)
