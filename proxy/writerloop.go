package proxy

// writerloop.go starts a session's commands and writes its replies. session.go describes
// the design.

import (
	"errors"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"redlockd/commands"
	"redlockd/proxy/guard"
)

// writeSize bytes are written although more replies are ready.
const writeSize = 64 << 10

// largeReplies bytes and more are encoded by one session at a time. Many clients with
// large replies would else keep every core busy at once, and the lanes would wait behind
// all of them.
const largeReplies = 16 << 10

// flush is the writer loop as a task; `writerRuns` was set when the task was queued.
func (s *session) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writerRuns = false
	s.writerLoopLocked()
}

// writerLoopLocked starts commands and writes replies, and returns when there is nothing
// left to do, or at once if another goroutine runs it. It unlocks mu while it runs handlers,
// encodes and writes. Encoded replies are always given to a write, which fails when the
// client has gone meanwhile. So undelivered deferred replies are handled in one place.
func (s *session) writerLoopLocked() {
	if s.writerRuns {
		return
	}
	s.writerRuns = true
	// A read brings 4 kB at most, so the shares are counted over reads.
	now := time.Now()
	if now.Sub(s.shareBegan) >= s.server.shares.period {
		s.shareBegan, s.shareStarted, s.shareBytes = now, 0, 0
	}
	if s.next != nil && s.heavyUntil.IsZero() && s.waiting <= lightCommands {
		s.server.shares.noteLight(now)
	}
	for !s.dropped {
		s.startLocked()
		// A barrier may have waited for just these replies; its own may leave
		// with them, so check again before writing.
		if s.encodeLocked() && len(s.out) < writeSize && s.next != nil {
			continue
		}
		s.encodePushesLocked()
		if s.written > 0 || len(s.out) > 0 {
			s.writeLocked()
		} else if !s.startableLocked() && len(s.pushes) == 0 {
			break // decided under mu, with `writerRuns` cleared before it is unlocked
		}
	}
	s.resetOut()
	s.writerRuns = false
	s.closeWhenDoneLocked()
}

// startLocked starts commands until one has to wait, or a share of them, and sends
// their operations together. Beyond the first share it waits for its turn.
func (s *session) startLocked() {
	if !s.startableLocked() {
		return
	}
	further := s.shareStarted >= shareCommands || s.shareBytes >= shareBytes
	if further {
		s.shareStarted, s.shareBytes, s.heavyUntil = 0, 0, time.Now().Add(heavyTime)
	}
	if !further && !s.isHeavyLocked() {
		s.startShareLocked(0)
		return
	}
	if s.shareOwner == nil {
		s.shareOwner = s.server.shares.join(s.owner + " " + s.client.Host)
	}
	owner := s.shareOwner
	s.mu.Unlock()
	s.server.shares.enter(owner)
	began, started, inFlight := time.Now(), 0, 0
	defer func() { s.server.shares.leave(owner, time.Since(began), started, inFlight) }()
	s.mu.Lock()
	started, inFlight = s.startShareLocked(owner.window)
}

// startShareLocked starts what is left of a share. It returns the weight of that and, with
// a window, of those commands that are not answered yet and count in it until they are. A
// barrier always finds the batch empty: it waits to be the head, and nothing becomes
// the head within one call.
func (s *session) startShareLocked(window int64) (started, inFlight int) {
	for s.startableLocked() && s.shareStarted < shareCommands && s.shareBytes < shareBytes {
		pr := s.next
		s.shareStarted += pr.plan.Weight
		s.shareBytes += pr.input
		if pr.plan.Barrier {
			s.barrier = pr
		}
		s.next = pr.next
		if pr.last {
			s.closing = true
		}
		if !pr.answered {
			started += pr.plan.Weight
			s.mu.Unlock()
			s.dispatch(pr)
			s.mu.Lock()
			s.shareBytes += pr.output // 0 if the answer comes later
			if window > 0 && !pr.answered {
				pr.window = window
				inFlight += pr.plan.Weight
			}
		}
		if !pr.plan.Barrier && s.client.Closing {
			s.closing = true
		}
	}
	if started > 0 {
		s.mu.Unlock()
		s.sendBatch()
		s.mu.Lock()
	}
	return started, inFlight
}

// isHeavyLocked reports whether the connection needed more than a share lately.
func (s *session) isHeavyLocked() bool {
	if s.heavyUntil.IsZero() {
		return false
	}
	if time.Now().Before(s.heavyUntil) {
		return true
	}
	s.heavyUntil = time.Time{}
	return false
}

// startableLocked: the next command need not wait. A barrier waits until the
// replies before it are encoded, since it may change how replies are written.
func (s *session) startableLocked() bool {
	return !s.barrierRunsLocked() && s.next != nil && !s.inputClosedLocked() &&
		s.unwritten < s.options.MaxUnwritten && (!s.next.plan.Barrier || s.next == s.head)
}

// barrierRunsLocked also detects the end of the barrier: only from then on may the session
// read the client that its handler changed.
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
	defer s.recoverPanic("Batch.Send", func() { s.guard.Close() })
	s.server.send(&s.batch)
}

// dispatch runs a handler. One that panics costs its connection, not the process.
func (s *session) dispatch(pr *pendingReply) {
	defer s.recoverPanic(commandName(pr.call.Args), func() { s.fail(pr) })
	s.run.Dispatch(&pr.call)
}

// fail answers for a handler that panicked, unless it had answered, and closes.
func (s *session) fail(pr *pendingReply) {
	s.mu.Lock()
	answered := pr.answered
	s.closing = true
	s.mu.Unlock()
	if !answered {
		pr.Complete(commands.Error("ERR", "internal error"))
	}
}

// planOf calls the dispatcher; if that panics, the handler runs alone, as a barrier.
func (s *session) planOf(args []string) (plan commands.Plan) {
	defer s.recoverPanic("Plan", func() { plan = commands.Plan{Barrier: true, Weight: 1} })
	return s.run.Plan(args)
}

// recoverPanic is deferred around foreign code, which always runs without mu: a
// panic that passed through the writer loop would find mu unlocked and end the process.
func (s *session) recoverPanic(what string, after func()) {
	value := recover()
	if value == nil {
		return
	}
	s.server.counters.panics.Add(1)
	s.log.Error("panic recovered; connection closed",
		"in", what, "err", value, "stack", string(debug.Stack()))
	after()
}

// encodeLocked moves the answers at the head to out; it returns whether there were any.
func (s *session) encodeLocked() bool {
	s.barrierRunsLocked() // it may have been answered a moment ago
	if s.dropped {
		return false
	}
	first, n, input := s.head, 0, 0
	pr := first
	for ; pr != nil && pr != s.next && pr.answered && pr != s.barrier && s.written < writeSize; pr = pr.next {
		s.written += pr.output
		input += pr.input
		n++
	}
	if n == 0 {
		return false
	}
	if s.head = pr; pr == nil {
		s.tail = nil
	}
	s.waiting -= n
	s.input -= input
	s.windowSpace.Signal()
	s.mu.Unlock()
	if s.out == nil {
		s.out = s.server.outBuffers.Get().(*outBuffer)[:0]
	}
	large := s.written > largeReplies
	if large {
		s.server.largeReply <- struct{}{} // never for long: nothing is written meanwhile
	}
	for ; n > 0; n-- {
		s.encode(first)
		first.next, first = nil, first.next
	}
	if large {
		<-s.server.largeReply
	}
	s.mu.Lock()
	return true
}

// encodePushesLocked moves the messages to out, after the replies: messages of a
// subscription come after its confirmation.
func (s *session) encodePushesLocked() {
	if len(s.pushes) == 0 || s.dropped {
		return
	}
	all := s.pushes
	s.pushes = nil
	s.mu.Unlock()
	if s.out == nil {
		s.out = s.server.outBuffers.Get().(*outBuffer)[:0]
	}
	for i := range all {
		s.written += all[i].size
		// A client that has just unsubscribed takes the next array for a reply. A message that is
		// an array itself has another form for RESP3.
		plain := all[i].plain && s.client.Subscriptions() > 0 && (s.client.Proto < 3 || all[i].message.Kind != commands.KindArray)
		if plain || !all[i].plain && s.client.Proto >= 3 {
			s.out = appendReply(s.out, all[i].message, s.client.Proto)
		}
	}
	s.mu.Lock()
}

// encode appends one answer to out, unless the client switched replies off (CLIENT REPLY).
// Such an answer counts as delivered: Undelivered would undo the command.
func (s *session) encode(pr *pendingReply) {
	before := len(s.out)
	if pr.output > outSize && pr.deferred == nil && s.client.ReplyMode == commands.ReplyOn {
		s.out = slices.Grow(s.out, pr.output) // growing by doubling takes twice as much
	}
	switch {
	case pr.noReply:
	case pr.deferred != nil:
		s.out = appendReply(s.out, s.replyOf(pr.deferred), s.client.Proto)
		s.deferred = append(s.deferred, deferredEnd{pr.deferred, len(s.out)})
	default:
		s.out = appendReply(s.out, pr.reply, s.client.Proto)
	}
	// The block of pending replies outlives this one while its connection is idle. It would keep
	// the answer: of a lock, all of the request.
	pr.deferred, pr.reply = nil, commands.Reply{}
	if len(s.out) == before || s.client.ReplyMode == commands.ReplyOn {
		return
	}
	if s.client.ReplyMode == commands.ReplySkip {
		s.client.ReplyMode = commands.ReplyOn
	}
	s.out = s.out[:before]
	if n := len(s.deferred); n > 0 && s.deferred[n-1].end > before {
		s.deferred = s.deferred[:n-1]
	}
}

func (s *session) replyOf(deferred commands.DeferredReply) (reply commands.Reply) {
	defer s.recoverPanic("deferred reply", func() {
		reply = commands.Error("ERR", "internal error")
		s.mu.Lock()
		s.closing = true
		s.mu.Unlock()
	})
	return deferred.Reply()
}

// writeLocked writes out. When that fails, replies that the kernel did not accept are
// lost; replies that it accepted may have been read, so they count as delivered.
func (s *session) writeLocked() {
	s.mu.Unlock()
	var n int
	if len(s.out) > 0 { // else the client switched these replies off
		var err error
		if n, err = s.guard.Send(s.out); err != nil {
			s.closeUnwritable(err)
		}
	}
	for _, l := range s.deferred {
		if l.end > n {
			s.undelivered(l.reply)
		}
	}
	clear(s.deferred)
	s.out, s.deferred = s.out[:0], s.deferred[:0] // the writer loop may fill it again
	s.mu.Lock()
	s.unwritten -= s.written
	s.written = 0
	s.updateMemoryLocked()
	s.windowSpace.Signal()
}

// closeUnwritable ends a connection that cannot be written to.
func (s *session) closeUnwritable(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.server.counters.slow.Add(1)
		s.server.rareLog.Warn("write timeout of a client reached; connection closed", "client", s.client.Addr,
			"timeout", s.options.WriteTimeout, "hint", "the client does not read its replies")
	} else if errors.Is(err, guard.ErrUnreadReplies) {
		s.log.Debug("reply limit before the login reached; connection closed", "client", s.client.Addr)
	} else if !errors.Is(err, net.ErrClosed) {
		s.log.Debug("write to a client failed; connection closed", "client", s.client.Addr, "err", err)
	}
	s.guard.Close()
}

// resetOut returns the memory; nothing encoded is left unwritten by now.
func (s *session) resetOut() {
	if cap(s.out) == outSize {
		s.server.outBuffers.Put((*outBuffer)(s.out[:outSize]))
	}
	clear(s.deferred)
	s.out, s.deferred = nil, s.deferred[:0]
	if cap(s.deferred) > maxPendingBlock {
		s.deferred = nil
	}
}

// closeWhenDoneLocked closes when the last answer is written.
func (s *session) closeWhenDoneLocked() {
	complete := s.closing && s.head == s.next || s.leaving && s.head == nil
	if !complete || s.ended || s.dropped {
		return
	}
	s.ended = true
	linger := s.closing || !s.draining // the next command may be on its way: a reset would cost the client its last replies
	s.mu.Unlock()
	if linger {
		s.guard.CloseGracefully()
	} else {
		s.guard.Close()
	}
	s.mu.Lock()
}

// undelivered reports to a deferred reply that its client did not receive it.
func (s *session) undelivered(deferred commands.DeferredReply) {
	defer s.recoverPanic("undelivered reply", func() {})
	deferred.Undelivered()
}
