package proxy

// pump.go answers: who starts a session's commands, and who writes its replies?
// The essay is in session.go.

import (
	"errors"
	"net"
	"os"
	"runtime/debug"
	"slices"

	"redlockd/commands"
)

// writeSize is where a write is made although more replies are ready.
const writeSize = 64 << 10

// largeReplies is where replies are encoded in turn with those of other clients. Many
// clients that ask for much would else keep every core busy at once, and the lanes
// would wait behind all of them.
const largeReplies = 16 << 10

// pumpTask is the pump as a task; `pumping` was set when it was woken.
func (s *session) pumpTask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pumpLocked()
}

// pumpLocked does what can be done and leaves when there is nothing left. It
// lets mu go while it runs handlers, encodes and writes. What is encoded is
// always given to a write, which fails when the client has gone meanwhile, so
// that its late answers are told in one place.
func (s *session) pumpLocked() {
	s.pumping, s.begun, s.took = true, 0, 0
	for !s.dropped {
		s.startLocked()
		// A barrier may have waited for just these replies; its own may leave
		// with them, so look again before writing.
		if s.encodeLocked() && len(s.out) < writeSize && s.next != nil {
			continue
		}
		s.encodePushesLocked()
		if s.written > 0 || len(s.out) > 0 {
			s.writeLocked()
		} else if !s.startableLocked() && len(s.pushes) == 0 {
			break // decided under mu, with `pumping` cleared before it is let go
		}
	}
	s.resetOut()
	s.pumping = false
	s.endLocked()
}

// startLocked starts commands until one has to wait, or a share of them, and lets
// their operations leave together. Beyond the first share it waits for its turn. A
// barrier always finds the batch empty: it waits to be the head, and nothing becomes
// the head within one call.
func (s *session) startLocked() {
	if !s.startableLocked() {
		return
	}
	if s.begun >= shareCommands || s.took >= shareInput {
		s.begun, s.took = 0, 0
		s.mu.Unlock()
		s.server.rounds.wait()
		defer s.server.rounds.pass()
		s.mu.Lock()
	}
	started := false
	for s.startableLocked() && s.begun < shareCommands && s.took < shareInput {
		sl := s.next
		s.begun++
		s.took += sl.input
		if sl.barrier {
			s.barrier = sl
		}
		s.next = sl.next
		if sl.last {
			s.closing = true
		}
		if !sl.answered {
			started = true
			s.mu.Unlock()
			s.dispatch(sl)
			s.mu.Lock()
		}
		if !sl.barrier && s.client.Closing {
			s.closing = true
		}
	}
	if started {
		s.mu.Unlock()
		s.sendBatch()
		s.mu.Lock()
	}
}

// startableLocked: the next command need not wait. A barrier waits until the
// replies before it are encoded, since it may change how replies are written.
func (s *session) startableLocked() bool {
	return !s.barrierRunsLocked() && s.next != nil && !s.deafLocked() &&
		s.unwritten < s.options.MaxUnwritten && (!s.next.barrier || s.next == s.head)
}

// barrierRunsLocked also notices the end of the barrier: only from then on may
// anybody look at what its handler did to the client.
func (s *session) barrierRunsLocked() bool {
	if s.barrier != nil && s.barrier.answered {
		s.barrier = nil
		s.describeLocked()
		if s.client.Closing {
			s.closing = true
		}
	}
	return s.barrier != nil
}

func (s *session) sendBatch() {
	defer s.containing("Batch.Send", func() { s.guard.Close() })
	s.server.send(&s.batch)
}

// dispatch runs a handler. One that panics costs its connection, not the process.
func (s *session) dispatch(sl *slot) {
	defer s.containing(commandName(sl.call.Args), func() { s.fail(sl) })
	s.run.Dispatch(&sl.call)
}

// fail answers for a handler that panicked, unless it had answered, and closes.
func (s *session) fail(sl *slot) {
	s.mu.Lock()
	answered := sl.answered
	s.closing = true
	s.mu.Unlock()
	if !answered {
		sl.Deliver(commands.Error("ERR", "internal error"))
	}
}

// isBarrier asks the dispatcher; should that panic, the handler will be run
// alone and judged by itself.
func (s *session) isBarrier(args []string) (barrier bool) {
	defer s.containing("Barrier", func() { barrier = true })
	return s.run.Barrier(args)
}

// containing is deferred around foreign code, which always runs without mu: a
// panic that passed through the pump would find mu let go and end the process.
func (s *session) containing(what string, after func()) {
	cause := recover()
	if cause == nil {
		return
	}
	s.server.counters.panics.Add(1)
	s.log.Error("panic contained; the connection is closed",
		"in", what, "cause", cause, "stack", string(debug.Stack()))
	after()
}

// encodeLocked moves the answers at the head to out; it says whether there were any.
func (s *session) encodeLocked() bool {
	s.barrierRunsLocked() // it may have been answered a moment ago
	if s.dropped {
		return false
	}
	first, n, input := s.head, 0, 0
	sl := first
	for ; sl != nil && sl != s.next && sl.answered && sl != s.barrier && s.written < writeSize; sl = sl.next {
		s.written += sl.output
		input += sl.input
		n++
	}
	if n == 0 {
		return false
	}
	if s.head = sl; sl == nil {
		s.tail = nil
	}
	s.waiting -= n
	s.input -= input
	s.room.Signal()
	s.mu.Unlock()
	if s.out == nil {
		s.out = s.server.outs.Get().(*outBuffer)[:0]
	}
	large := s.written > largeReplies
	if large {
		s.server.large <- struct{}{} // never for long: nothing is written meanwhile
	}
	for ; n > 0; n-- {
		s.encode(first)
		first.next, first = nil, first.next
	}
	if large {
		<-s.server.large
	}
	s.mu.Lock()
	return true
}

// encodePushesLocked moves the messages to out, behind the replies: what a
// client has subscribed to comes after the confirmation.
func (s *session) encodePushesLocked() {
	if len(s.pushes) == 0 || s.dropped {
		return
	}
	all := s.pushes
	s.pushes = nil
	s.mu.Unlock()
	if s.out == nil {
		s.out = s.server.outs.Get().(*outBuffer)[:0]
	}
	for i := range all {
		s.written += all[i].size
		// Whoever has just unsubscribed takes the next array for a reply.
		listens := s.client.Subscriptions() > 0
		if all[i].plain && listens || !all[i].plain && s.client.Proto >= 3 {
			s.out = appendReply(s.out, all[i].message, s.client.Proto)
		}
	}
	s.mu.Lock()
}

// encode appends one answer to out, unless the client has asked not to hear it.
// Such an answer counts as delivered: its Lost would undo what was done.
func (s *session) encode(sl *slot) {
	before := len(s.out)
	if sl.output > outSize && sl.late == nil && s.client.Hearing == commands.HearAll {
		s.out = slices.Grow(s.out, sl.output) // growing by doubling takes twice as much
	}
	s.encodeHeard(sl)
	if len(s.out) == before || s.client.Hearing == commands.HearAll {
		return
	}
	if s.client.Hearing == commands.SkipOne {
		s.client.Hearing = commands.HearAll
	}
	s.out = s.out[:before]
	if n := len(s.lates); n > 0 && s.lates[n-1].end > before {
		s.lates = s.lates[:n-1]
	}
}

func (s *session) encodeHeard(sl *slot) {
	switch {
	case sl.silent:
	case sl.late != nil:
		s.out = appendReply(s.out, s.replyOf(sl.late), s.client.Proto)
		s.lates = append(s.lates, lateEnd{sl.late, len(s.out)})
	default:
		s.out = appendReply(s.out, sl.reply, s.client.Proto)
	}
}

// replyOf asks a late answer for its content.
func (s *session) replyOf(late commands.Late) (reply commands.Reply) {
	defer s.containing("late reply", func() {
		reply = commands.Error("ERR", "internal error")
		s.mu.Lock()
		s.closing = true
		s.mu.Unlock()
	})
	return late.Reply()
}

// writeLocked writes out. When that fails, what the kernel did not take is lost;
// what it took may have been read, so it stands.
func (s *session) writeLocked() {
	s.mu.Unlock()
	var n int
	if len(s.out) > 0 { // else the client wants to hear none of it
		var err error
		if n, err = s.guard.send(s.out); err != nil {
			s.dropWriter(err)
		}
	}
	for _, l := range s.lates {
		if l.end > n {
			s.lose(l.late)
		}
	}
	clear(s.lates)
	s.out, s.lates = s.out[:0], s.lates[:0] // the pump may go on to fill it again
	s.mu.Lock()
	s.unwritten -= s.written
	s.written = 0
	s.weighLocked()
	s.room.Signal()
}

// dropWriter ends a connection that cannot be written to.
func (s *session) dropWriter(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.server.counters.slow.Add(1)
		if s.server.unread.now() {
			s.log.Warn("client did not read its replies in time; connection closed",
				"client", s.client.Addr, "timeout", s.options.WriteTimeout)
		}
	} else if errors.Is(err, errUnheard) {
		s.log.Debug("client cut off before its login: it asked much at once", "client", s.client.Addr)
	} else if !errors.Is(err, net.ErrClosed) {
		s.log.Debug("client gone while being written to", "client", s.client.Addr, "cause", err)
	}
	s.guard.Close()
}

// resetOut gives the memory back; nothing encoded is left unwritten by now.
func (s *session) resetOut() {
	if cap(s.out) == outSize {
		s.server.outs.Put((*outBuffer)(s.out[:outSize]))
	}
	clear(s.lates)
	s.out, s.lates = nil, s.lates[:0]
	if cap(s.lates) > slotBlocks {
		s.lates = nil
	}
}

// endLocked closes when the last answer is out.
func (s *session) endLocked() {
	complete := s.closing && s.head == s.next || s.draining && s.head == nil
	if !complete || s.ended || s.dropped {
		return
	}
	s.ended = true
	linger := s.closing
	s.mu.Unlock()
	if linger {
		s.guard.finish()
	} else {
		s.guard.Close()
	}
	s.mu.Lock()
}

// lose tells a late answer that nobody will read it.
func (s *session) lose(late commands.Late) {
	s.server.counters.lost.Add(1)
	defer s.containing("lost reply", func() {})
	late.Lost()
}
