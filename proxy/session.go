package proxy

// session.go runs one client's commands and answers them in order, although they finish
// in any order and no goroutine may wait for them.
//
// The commands form the reply queue, a list of pendingReply in order of arrival:
//
//	head … answered or in flight … next … not started … tail
//
// Three parties work on it. The reader (a goroutine per connection)
// appends. The goroutine that completes a call, which may be any, stores the answer in
// its pendingReply and at most wakes the writer loop. The writer loop does everything
// else: it starts commands, encodes the answered ones at the head and writes them. One
// writer loop runs at a time, marked by `writerRuns`. The reader runs it at the end of a
// read batch, so that replies that are ready at once leave in one write without a task.
// Else it is a task on the writers' pool. It runs only while there is something to do.
//
// Races: an answer that arrives while the writer loop runs is noticed by it, because it
// checks again under mu before it clears `writerRuns`. One that arrives later finds
// `writerRuns` clear and wakes a new loop. A reply handed to the kernel counts as
// delivered even if the client turns out to be gone; all replies behind it are lost.

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/commands"
	"redlockd/proxy/guard"
	"redlockd/proxy/resp"
	"redlockd/redlock"

	"github.com/tidwall/redcon"
)

// Dispatcher runs commands; the command table is one.
type Dispatcher interface {
	// Plan tells whether the command waits for all replies before it and delays the
	// commands after it, and how much work it is.
	Plan(args []string) commands.Plan
	// Dispatch starts the command and returns without waiting for its outcome.
	// Calls of one client come one at a time.
	Dispatch(call *commands.Call)
	// Authenticated reports whether the client is authenticated, or need not be. It is called
	// at the start and after every barrier.
	Authenticated(client *commands.Client) bool
}

type session struct {
	options   *Options
	guard     *guard.Conn
	run       Dispatcher
	server    *Server
	log       *slog.Logger
	flushTask func() // s.flush, allocated once
	client    commands.Client
	block     []pendingReply // of the reader: pending replies not yet used
	batch     redlock.Batch  // of the writer loop
	trusted   atomic.Bool    // the client is authenticated

	// Also of the writer loop.
	out          []byte // encoded, not written
	written      int    // estimated size of what is in out
	deferred     []deferredEnd
	shareBegan   time.Time // see sharequeue.go
	shareStarted int       // weight of the commands started in this share
	shareBytes   int       // their bytes and those of their replies
	heavyUntil   time.Time // its shares wait in the queue until then, zero = they do not

	mu             sync.Mutex
	description    commands.Description // of the client, after its last barrier
	windowSpace    sync.Cond            // the reader waits for space in the window
	head, tail     *pendingReply
	next           *pendingReply  // the first not started; nil when all are
	barrier        *pendingReply  // started, not yet found answered
	waiting        int            // commands in the reply queue
	received       uint64         // commands since the connection began
	input          int            // their bytes
	unwritten      int            // estimated bytes of answers not yet written
	buffered       int            // bytes of an incomplete command
	subscribed     int            // bytes of the subscriptions
	tracked        int            // bytes of the tracked keys
	reserved       int            // bytes in the memory limit of all clients
	memory         memReservation // of that limit
	owner          string         // the user of that reservation
	shareOwner     *shareOwner    // user and address, nil until it is needed
	unauth         memReservation // among the unauthenticated clients
	writerRuns     bool
	pushes         []pushMessage
	leaving        bool // close when the reply queue is empty
	draining       bool // and reject new commands
	closing        bool // nothing more is started; close when the started commands are answered
	ended, dropped bool // the guard is closing gracefully; the socket is closed
}

// deferredEnd is a deferred reply and where it ends in out.
type deferredEnd struct {
	reply commands.DeferredReply
	end   int
}

// receive takes the commands of one read; it returns when all are in the reply queue.
func (s *session) receive(conn redcon.Conn, first redcon.Command) {
	if args := s.guard.TakeBypass(); args != nil { // redcon has read its placeholder, which comes alone
		s.Receive(args)
		return
	}
	defer s.recoverPanic("reader", func() { s.guard.Close() })
	rest := conn.ReadPipeline()
	s.server.counters.commands.Add(int64(1 + len(rest)))
	take := func(command redcon.Command, batchHint int) {
		pr := s.newPending(len(command.Raw), batchHint)
		s.append(pr.take(pr.stringsOf(command)))
	}
	take(first, len(rest)+1)
	for i, command := range rest {
		take(command, len(rest)-i)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writerLoopLocked()
}

// Receive implements guard.Events: it takes one command that bypassed redcon.
func (s *session) Receive(args []string) {
	defer s.recoverPanic("reader", func() { s.guard.Close() })
	s.server.counters.commands.Add(1)
	input := 0
	for _, arg := range args {
		input += len(arg)
	}
	s.append(s.newPending(max(input, longInput+1), 0).take(args))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writerLoopLocked()
}

// append puts a command at the end of the reply queue, and waits for space. While it
// waits it reads nothing: that slows down a client that sends more than it reads.
func (s *session) append(pr *pendingReply) {
	pr.plan = s.planOf(pr.call.Args)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.fullLocked() && !s.inputClosedLocked() {
		s.writerLoopLocked()
		if s.fullLocked() && !s.inputClosedLocked() {
			s.windowSpace.Wait()
		}
	}
	if s.inputClosedLocked() {
		return
	}
	if s.draining {
		pr.answered = true
		pr.reply = commands.Error("SHUTDOWN", "the daemon is draining; nothing was done, use another daemon")
		pr.plan.Barrier = false
	}
	s.appendLocked(pr)
}

func (s *session) appendLocked(pr *pendingReply) {
	if s.tail == nil {
		s.head = pr
	} else {
		s.tail.next = pr
	}
	s.tail = pr
	if s.next == nil {
		s.next = pr
	}
	s.waiting++
	s.received++
	s.input += pr.input
	s.updateMemoryLocked()
}

func (s *session) fullLocked() bool {
	return s.waiting >= s.options.Window || s.input >= requestLimits.MaxCommand || s.unwritten >= s.options.MaxUnwritten
}

// inputClosedLocked: commands read from now on are not run.
func (s *session) inputClosedLocked() bool { return s.closing || s.dropped || s.ended }

// Refuse implements guard.Events: the client violated the protocol after all earlier
// commands were received. It sends text after their replies and closes; "" closes without
// a reply.
func (s *session) Refuse(text string) {
	switch text {
	case "":
		s.server.rareLog.Warn("an HTTP request was sent to this port; the connection is closed", "hint", "the web page and the metrics are at --admin-listen; if nobody looks for them here, it may be an attack", "client", s.client.Addr)
	case resp.TLSFault:
		s.server.rareLog.Warn("TLS handshake on a port without TLS; the connection is closed", "client", s.client.Addr,
			"hint", "clients must connect without TLS here, or to an address with tls: in --listen")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inputClosedLocked() {
		return
	}
	pr := &pendingReply{session: s, answered: true, last: true, noReply: text == "", reply: commands.Error("ERR", text)}
	s.appendLocked(pr)
	s.writerLoopLocked()
}

// Authenticated implements guard.Events.
func (s *session) Authenticated() bool { return s.trusted.Load() }

// describeLocked stores the client's present state; no handler may be changing it.
func (s *session) describeLocked() {
	if known := s.run.Authenticated(&s.client); known != s.trusted.Load() {
		s.trusted.Store(known)
		s.unauth.End()
		if known {
			s.server.connRates.Trust(s.client.Host)
		}
	}
	s.description = s.client.Describe()
	s.subscribed = s.client.SubscribedBytes()
	if s.owner != s.client.User {
		s.owner = s.client.User
		s.leaveSharesLocked()
		s.reserveLocked(s.reserved)
	}
	s.updateMemoryLocked()
}

func (s *session) leaveSharesLocked() {
	if s.shareOwner != nil {
		s.server.shares.part(s.shareOwner)
		s.shareOwner = nil
	}
}

// Busy implements guard.Events.
func (s *session) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting > 0 || s.writerRuns || s.description.Channels+s.description.Patterns > 0 // a subscriber is not idle
}

// drain closes the connection once it is idle, and serves or rejects commands until then.
func (s *session) drain(rejects bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving, s.draining = true, rejects
	s.writerLoopLocked()
}

// expel ends a connection whose client may not stay. First its waits are answered and its
// holds reported as lost, so that this still reaches the client; nothing more is started.
// It never blocks: one client that does not read must not delay the others' end.
func (s *session) expel(why commands.Expelled) {
	defer s.recoverPanic("end of a client", func() { s.guard.Close() })
	s.mu.Lock()
	ended := s.inputClosedLocked()
	s.mu.Unlock()
	if ended {
		return
	}
	s.log.Info("connection ended by the daemon", "client", s.client.Addr, "err", why)
	s.client.OnClose.Expel(why)
	s.mu.Lock()
	s.closing = true
	s.windowSpace.Broadcast()
	s.wakeAndUnlock(!s.dropped)
}

// wakeAndUnlock has a task run the writer loop, if there is need and it does not run. From here
// on the task is the writer loop.
func (s *session) wakeAndUnlock(need bool) {
	wake := need && !s.writerRuns
	s.writerRuns = s.writerRuns || wake
	s.mu.Unlock()
	if wake {
		s.server.writers.wake(s.flushTask)
	}
}

// answer stores a call's one answer. It never blocks: the lanes call it.
func (s *session) answer(pr *pendingReply, reply commands.Reply, deferred commands.DeferredReply) {
	s.mu.Lock()
	if pr.answered {
		s.mu.Unlock()
		pr.reportSecondAnswer()
		return
	}
	pr.answered = true
	if pr.window > 0 && s.shareOwner != nil {
		s.server.shares.answered(s.shareOwner, pr.window, pr.plan.Weight)
	}
	if s.dropped || s.unwritten > s.options.OutputLimit {
		if !s.dropped {
			s.overflowLocked()
		}
		s.mu.Unlock()
		if deferred != nil {
			s.undelivered(deferred)
		}
		return
	}
	pr.reply, pr.deferred, pr.output = reply, deferred, deferredSize
	if deferred == nil {
		pr.output = replySize(&pr.reply)
	}
	s.unwritten += pr.output
	s.updateMemoryLocked()
	s.wakeAndUnlock(pr == s.head)
}

// pushMessage is an out-of-band message.
type pushMessage struct {
	message commands.Reply
	plain   bool // also for clients on RESP2
	size    int
}

// push queues an out-of-band message; it is written after the replies that are ready. It
// never blocks: a client that does not read its messages is closed.
func (s *session) push(message commands.Reply, plain bool) {
	one := pushMessage{message, plain, replySize(&message)}
	s.mu.Lock()
	if s.dropped || s.closing {
		s.mu.Unlock()
		return
	}
	if s.unwritten+one.size > s.options.OutputLimit {
		s.overflowLocked()
		s.mu.Unlock()
		return
	}
	s.pushes = append(s.pushes, one)
	s.unwritten += one.size
	s.updateMemoryLocked()
	s.wakeAndUnlock(true)
}

// overflowLocked closes a client that leaves more unread than it may. Its answers
// come from lanes, which must not wait for the close. Nothing more is encoded: an
// answer is missing from the reply queue.
func (s *session) overflowLocked() {
	s.dropped, s.next = true, nil
	s.server.counters.slow.Add(1)
	s.server.rareLog.Warn("client output limit reached; connection closed", "client", s.client.Addr, "user", s.description.User,
		"limit", s.options.OutputLimit, "hint", "the client does not read its replies or messages; raise client-output-limit if it should not have to")
	s.server.writers.wake(func() { s.guard.Close() })
}

// SocketClosed implements guard.Events: replies not yet handed to the kernel will never be
// read.
func (s *session) SocketClosed() {
	s.mu.Lock()
	s.dropped = true
	var lost []commands.DeferredReply
	for pr := s.head; pr != nil; pr = pr.next {
		if pr.answered && pr.deferred != nil {
			lost = append(lost, pr.deferred)
		}
	}
	s.head, s.tail, s.next, s.waiting, s.pushes = nil, nil, nil, 0, nil
	s.leaveSharesLocked()
	s.windowSpace.Broadcast()
	s.mu.Unlock()
	s.memory.End()
	s.unauth.End()
	func() {
		defer s.recoverPanic("end of a client", func() {})
		s.client.OnClose.Run()
	}()
	for _, deferred := range lost {
		s.undelivered(deferred)
	}
	s.server.forget(s)
}

// commandName is the command's name for the log, bounded.
func commandName(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0][:min(len(args[0]), 64)]
}
