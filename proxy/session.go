package proxy

// session.go answers: how are one client's commands run and answered in order
// although they finish in any order, and although nobody may wait for them?
//
// The commands form a row of slots in order of arrival:
//
//	head … answered or in flight … next … not started … tail
//
// Three parties work on it. The reader (redcon's goroutine of this connection)
// appends. Whoever completes a call, on any goroutine, puts the answer into its
// slot and at most wakes somebody. The pump does everything else: it starts
// commands, encodes the answered ones at the head and writes them. There is one
// pump at a time, marked by `pumping`: the reader at the end of a read batch, so
// that what was answered at once leaves in one write without a task, else a task
// on the writers' pool. It lives only while there is something to do.
//
// Winners of the races: an answer that arrives while the pump runs is seen by it,
// because it looks again under mu before it clears `pumping`; one that arrives
// later finds `pumping` clear and wakes a new one. A reply handed to the kernel
// wins over a client found gone; everything behind it is lost.

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"redlockd/commands"
	"redlockd/redlock"

	"github.com/tidwall/redcon"
)

// Dispatcher runs commands; the command table is one.
type Dispatcher interface {
	// Barrier says that the command waits for all replies before it and holds
	// back the commands after it.
	Barrier(args []string) bool
	// Dispatch starts the command and returns without waiting for its outcome.
	// Calls of one client come one at a time.
	Dispatch(call *commands.Call)
	// Known says that the client has said who it is, or need not. It is asked at
	// the start and after every barrier.
	Known(client *commands.Client) bool
}

type session struct {
	options *Options
	guard   *guard
	run     Dispatcher
	server  *Server
	log     *slog.Logger
	task    func() // s.pumpTask, made once
	client  commands.Client
	block   []slot        // the reader's: slots not yet used
	batch   redlock.Batch // the pump's
	trusted atomic.Bool   // the client is known

	// The pump's, too.
	out     []byte // encoded, not written
	written int    // estimated size of what is in out
	lates   []lateEnd
	begun   int // commands started since the pump began, see rounds.go
	took    int // their bytes

	mu             sync.Mutex
	shown          commands.Description // of the client, after its last barrier
	room           sync.Cond            // the reader waits for room in the window
	head, tail     *slot
	next           *slot  // first not started; nil when all are
	barrier        *slot  // started and not known to be answered
	waiting        int    // commands in the row
	input          int    // their bytes
	unwritten      int    // estimated bytes of answers not yet written
	kept           int    // bytes of a command that has not come whole
	subscribed     int    // bytes of the subscriptions
	charged        int    // bytes in the budget of all clients
	memory         share  // of that budget
	owner          string // the user whose share it is
	place          share  // among those that have not signed in
	pumping        bool
	pushes         []push
	draining       bool // new commands are refused, close when the row is empty
	closing        bool // nothing more is started; close when the started are answered
	ended, dropped bool // told the guard so; the socket is closed
}

// lateEnd is a late answer and where it ends in out.
type lateEnd struct {
	late commands.Late
	end  int
}

// receive takes what redcon has read; it returns when all of it is in the row.
func (s *session) receive(conn redcon.Conn, first redcon.Command) {
	defer s.containing("reader", func() { s.guard.Close() })
	rest := conn.ReadPipeline()
	s.server.counters.commands.Add(int64(1 + len(rest)))
	if args := s.guard.takeAside(); args != nil {
		input := 0
		for _, arg := range args {
			input += len(arg)
		}
		s.append(s.newSlot(max(input, longInput+1), 0).take(args))
	} else {
		s.appendCommand(first, len(rest)+1)
		for i, command := range rest {
			s.appendCommand(command, len(rest)-i)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pumping {
		s.pumpLocked()
	}
}

func (s *session) appendCommand(command redcon.Command, soon int) {
	sl := s.newSlot(len(command.Raw), soon)
	s.append(sl.take(sl.stringsOf(command)))
}

// append puts a command at the end of the row, waiting for room. Waiting, it
// reads nothing: that is what holds back a client that sends more than it takes.
func (s *session) append(sl *slot) {
	sl.barrier = s.isBarrier(sl.call.Args)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.fullLocked() && !s.deafLocked() {
		if !s.pumping {
			s.pumpLocked()
		}
		if s.fullLocked() && !s.deafLocked() {
			s.room.Wait()
		}
	}
	if s.deafLocked() {
		return
	}
	if s.draining {
		sl.answered = true
		sl.reply = commands.Error("SHUTDOWN", "the daemon is draining; nothing was done, use another daemon")
		sl.barrier = false
	}
	s.appendLocked(sl)
}

func (s *session) appendLocked(sl *slot) {
	if s.tail == nil {
		s.head = sl
	} else {
		s.tail.next = sl
	}
	s.tail = sl
	if s.next == nil {
		s.next = sl
	}
	s.waiting++
	s.input += sl.input
	s.weighLocked()
}

func (s *session) fullLocked() bool {
	return s.waiting >= s.options.Window || s.input >= s.options.MaxCommand || s.unwritten >= s.options.MaxUnwritten
}

// deafLocked: what is read now is not run any more.
func (s *session) deafLocked() bool { return s.closing || s.dropped }

// refuse is the guard's word that the client has stopped speaking the protocol,
// after everything that came before was taken. It says text in its turn and
// closes; "" closes without a word.
func (s *session) refuse(text string) {
	if text == "" {
		s.server.warnOfBrowser(s.client.Addr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deafLocked() {
		return
	}
	sl := &slot{session: s, answered: true, last: true, silent: text == "", reply: commands.Error("ERR", text)}
	s.appendLocked(sl)
	if !s.pumping {
		s.pumpLocked()
	}
}

func (s *session) known() bool { return s.trusted.Load() }

// describeLocked notes who the client is now; no handler may be changing it.
func (s *session) describeLocked() {
	if known := s.run.Known(&s.client); known != s.trusted.Load() {
		s.trusted.Store(known)
		s.place.end()
	}
	s.shown = s.client.Describe()
	s.subscribed = s.client.SubscribedBytes()
	if s.owner != s.client.User {
		s.owner = s.client.User
		s.chargeLocked(s.charged)
	}
	s.weighLocked()
}

func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting > 0 || s.pumping || s.shown.Channels+s.shown.Patterns > 0 // a subscriber listens
}

// drain lets what was received finish and closes then.
func (s *session) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	if !s.pumping {
		s.pumpLocked()
	}
}

// expel ends a connection whose client may not stay. Its waits are answered and its
// holds are told first, so that this still reaches the client; nothing more is started.
// It never blocks: one client that does not read must not keep the others in.
func (s *session) expel(why commands.Expelled) {
	defer s.containing("end of a client", func() { s.guard.Close() })
	s.mu.Lock()
	over := s.deafLocked()
	s.mu.Unlock()
	if over {
		return
	}
	s.log.Info("connection ended by the daemon", "client", s.client.Addr, "err", why)
	s.client.Ties.Expel(why)
	s.mu.Lock()
	s.closing = true
	s.room.Broadcast()
	wake := !s.pumping && !s.dropped
	s.pumping = s.pumping || wake
	s.mu.Unlock()
	if wake {
		s.server.writers.wake(s.task)
	}
}

// answer takes a call's one answer. It never blocks: it is called by the lanes.
func (s *session) answer(sl *slot, reply commands.Reply, late commands.Late) {
	s.mu.Lock()
	if sl.answered {
		s.mu.Unlock()
		s.answeredTwice(sl)
		return
	}
	sl.answered = true
	if s.dropped {
		s.mu.Unlock()
		if late != nil {
			s.lose(late)
		}
		return
	}
	if s.unwritten > s.options.OutputLimit {
		s.overflowLocked()
		s.mu.Unlock()
		if late != nil {
			s.lose(late)
		}
		return
	}
	sl.reply, sl.late, sl.output = reply, late, lateOutput
	if late == nil {
		sl.output = replySize(&sl.reply)
	}
	s.unwritten += sl.output
	s.weighLocked()
	wake := !s.pumping && sl == s.head
	if wake {
		s.pumping = true // from here on there is a pump: the task
	}
	s.mu.Unlock()
	if wake {
		s.server.writers.wake(s.task)
	}
}

// push is a message out of turn.
type push struct {
	message commands.Reply
	plain   bool // for clients on RESP2, too
	size    int
}

// push takes a message out of turn; it leaves behind the replies that are
// ready. It never blocks: a client that does not read what it asked for is cut.
func (s *session) push(message commands.Reply, plain bool) {
	one := push{message, plain, replySize(&message)}
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
	s.weighLocked()
	wake := !s.pumping
	s.pumping = true
	s.mu.Unlock()
	if wake {
		s.server.writers.wake(s.task)
	}
}

// overflowLocked closes a client that leaves more unread than it may. Its answers
// come from lanes, which must not wait for the closing. Nothing more is encoded: an
// answer is missing from the row.
func (s *session) overflowLocked() {
	s.dropped, s.next = true, nil
	s.server.counters.slow.Add(1)
	if s.server.unread.now() {
		s.log.Warn("client output limit reached; connection closed", "client", s.client.Addr, "user", s.shown.User,
			"limit", s.options.OutputLimit, "hint", "the client does not read its replies or messages; raise client-output-limit if it should not have to")
	}
	s.server.writers.wake(func() { s.guard.Close() })
}

// gone is the guard's word that the socket is closed: whatever is not yet with
// the kernel will never be read.
func (s *session) gone() {
	s.mu.Lock()
	s.dropped = true
	var lost []commands.Late
	for sl := s.head; sl != nil; sl = sl.next {
		if sl.answered && sl.late != nil {
			lost = append(lost, sl.late)
		}
	}
	s.head, s.tail, s.next, s.waiting, s.pushes = nil, nil, nil, 0, nil
	s.room.Broadcast()
	s.mu.Unlock()
	s.memory.end()
	s.place.end()
	func() {
		defer s.containing("end of a client", func() {})
		s.client.Ties.Cut()
	}()
	for _, late := range lost {
		s.lose(late)
	}
	s.server.forget(s)
}

func (s *session) answeredTwice(sl *slot) {
	s.server.counters.answeredTwice.Add(1)
	if s.options.Strict {
		panic("proxy: " + commandName(sl.call.Args) + " was answered twice")
	}
	s.log.Error("a command was answered twice; the second answer was dropped", "command", commandName(sl.call.Args))
}

// commandName is the word for the log, bounded.
func commandName(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0][:min(len(args[0]), 64)]
}
