package proxy

import (
	"io"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"redlockd/commands"
	"redlockd/redlock"
)

func TestSession_GivesBackWhatAClientThatHasGoneCannotRead(t *testing.T) {
	for name, leave := range map[string]func(c *client){
		"closed":      func(c *client) { c.Close() },
		"half-closed": func(c *client) { _ = c.Conn.(*net.TCPConn).CloseWrite() },
		"reset":       func(c *client) { _ = c.Conn.(*net.TCPConn).SetLinger(0); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher()
			s := serve(t, Options{}, d)
			c := dial(t, s)
			c.send(command("LATER", "blocks") + command("LATER", "won") + command("LATER", "wins"))
			_, won, wins := d.next(t), d.next(t), d.next(t)
			answered, pending := newFakeDeferred("a"), newFakeDeferred("b")
			won.Completer.CompleteDeferred(answered) // its turn has not come
			leave(c)
			await(t, "the loss of an answer that waited for its turn", answered.lost)
			wins.Completer.CompleteDeferred(pending)
			await(t, "the loss of an answer that came too late", pending.lost)
			if len(answered.made)+len(pending.made) > 0 {
				t.Error("a late answer was computed for nobody")
			}
			if len(answered.lost)+len(pending.lost) > 0 {
				t.Error("an answer was lost twice")
			}
		})
	}
}

func TestSession_MakesADeferredReplyOnceAndOnlyInItsTurn(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("LATER") + command("LATER"))
	first, second := d.next(t), d.next(t)
	answer := newFakeDeferred("x")
	second.Completer.CompleteDeferred(answer)
	if len(answer.made) != 0 {
		t.Error("asked before its turn")
	}
	first.Reply(commands.OK)
	c.expect("+OK\r\n$1\r\nx\r\n")
	c.send(command("QUIT"))
	c.expectEnd("+OK\r\n")
	if len(answer.made) != 1 || len(answer.lost) != 0 {
		t.Errorf("asked %d times, lost %d times; want once and never", len(answer.made), len(answer.lost))
	}
}

// brittle is a socket that takes a given number of bytes and breaks.
type brittle struct {
	net.Conn
	takes int
}

func (b *brittle) Write(p []byte) (int, error) {
	if len(p) <= b.takes {
		b.takes -= len(p)
		return b.Conn.Write(p)
	}
	n, _ := b.Conn.Write(p[:b.takes])
	b.takes = 0
	return n, io.ErrClosedPipe
}

func TestSession_KeepsWhatTheKernelTookWhenAWriteFails(t *testing.T) {
	// Two grants leave in one write that breaks inside the second. The first may
	// have been read: taking it back would take a lock from its holder.
	d := newDispatcher()
	s := serve(t, Options{}, d)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go io.Copy(io.Discard, theirs)
	first, second := newFakeDeferred("first"), newFakeDeferred("second")
	session := adopt(s, &brittle{ours, len("+OK\r\n$5\r\nfirst\r\n$6")})
	var calls []*commands.Call
	for range 3 {
		session.append(session.newPending(1, 0).take([]string{"LATER"}))
	}
	session.flush()
	for range 3 {
		calls = append(calls, d.next(t))
	}
	calls[1].Completer.CompleteDeferred(first)
	calls[2].Completer.CompleteDeferred(second)
	calls[0].Reply(commands.OK)
	await(t, "the loss of the second", second.lost)
	if len(first.made) != 1 || len(first.lost) != 0 {
		t.Errorf("the first was asked %d times and lost %d times, want once and never", len(first.made), len(first.lost))
	}
}

func TestSession_CutsOffAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial := serveOnPipes(t, Options{WriteTimeout: time.Second}, newDispatcher())
		c, began := dial(), time.Now()
		payload := strings.Repeat(command("ECHO", strings.Repeat("x", 30_000)), 8)
		for { // sends for as long as it is listened to
			if _, err := io.WriteString(c.Conn, payload); err != nil {
				break
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it was cut off after %v, want a second", took)
		}
		if n := s.Stats().Slow; n != 1 {
			t.Errorf("%d slow clients counted, want 1", n)
		}
		fine := dial()
		fine.send(command("PING"))
		fine.expect("+PONG\r\n")
	})
}

func TestSession_SendsItsBatchOnceARoundAndAroundBarriers(t *testing.T) {
	d := newDispatcher()
	s, session, theirs := lone(t, d)
	var sent []int // commands started before each Send
	s.send = func(b *redlock.Batch) {
		if b != &session.batch {
			t.Error("another batch was sent")
		}
		sent = append(sent, len(d.started()))
	}
	for _, words := range [][]string{{"PING"}, {"PING"}, {"SELECT", "1"}, {"PING"}, {"LATER"}, {"PING"}} {
		session.append(session.newPending(1, 0).take(words))
	}
	go session.flush()
	got := make([]byte, 26)
	if _, err := io.ReadFull(theirs, got); err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 6}; !reflect.DeepEqual(sent, want) {
		t.Errorf("sent after %v commands, want after %v", sent, want)
	}
	d.next(t).Reply(commands.OK)
	if _, err := io.ReadFull(theirs, got[:12]); err != nil {
		t.Fatal(err)
	}
}

// The writer loop unlocks mu for Send. Only the writer loop itself can notice what happens
// in that moment.

func TestSession_SeesABarrierAnsweredWhileItSendsItsBatch(t *testing.T) {
	d := newDispatcher()
	s, session, theirs := lone(t, d)
	s.send = func(*redlock.Batch) { d.next(t).Reply(commands.Simple("B")) }
	session.append(session.newPending(1, 0).take([]string{"LATERBARRIER"}))
	go session.flush()
	got := make([]byte, 4)
	if _, err := io.ReadFull(theirs, got); err != nil || string(got) != "+B\r\n" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestSession_SeesACommandThatArrivesWhileItSendsItsBatch(t *testing.T) {
	d := newDispatcher()
	s, session, theirs := lone(t, d)
	arrives := true
	s.send = func(*redlock.Batch) {
		if arrives {
			arrives = false
			session.append(session.newPending(1, 0).take([]string{"PING"}))
		}
	}
	session.append(session.newPending(1, 0).take([]string{"LATER"}))
	session.flush()
	if got := d.started(); len(got) != 2 {
		t.Fatalf("started %q, want the one that arrived, too", got)
	}
	d.next(t).Reply(commands.OK)
	got := make([]byte, 12)
	if _, err := io.ReadFull(theirs, got); err != nil || string(got) != "+OK\r\n+PONG\r\n" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestSession_ABatchThatPanicsCostsItsConnectionOnly(t *testing.T) {
	s, session, theirs := lone(t, newDispatcher())
	s.send = func(*redlock.Batch) { panic("a bug in Send") }
	session.append(session.newPending(1, 0).take([]string{"LATER"}))
	session.flush()
	if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
	if n := s.Stats().Panics; n != 1 {
		t.Errorf("%d panics counted, want 1", n)
	}
}

// lone is a session without redcon, on a pipe, that the test feeds itself.
func lone(t *testing.T, d Dispatcher) (*Server, *session, net.Conn) {
	t.Helper()
	s := serve(t, Options{}, d)
	ours, theirs := net.Pipe()
	_ = theirs.SetDeadline(time.Now().Add(testTimeout))
	t.Cleanup(func() { theirs.Close() })
	return s, adopt(s, ours), theirs
}

func adopt(s *Server, conn net.Conn) *session {
	session := s.newSession(conn, "test")
	s.mu.Lock()
	s.sessions[session] = struct{}{}
	s.mu.Unlock()
	return session
}

func TestSession_AHandlerThatPanicsCostsItsConnectionOnly(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c, other := dial(t, s), dial(t, s)
	c.send(command("LATER") + command("PANIC") + command("ECHO", "never"))
	d.next(t).Reply(commands.Simple("A"))
	c.expectEnd("+A\r\n-ERR internal error\r\n")
	other.send(command("PING"))
	other.expect("+PONG\r\n")
	if n := s.Stats().Panics; n != 1 {
		t.Errorf("%d panics counted, want 1", n)
	}
	if got := d.started(); len(got) != 3 {
		t.Errorf("started %q", got)
	}
}

// explosive is a late answer with bugs.
type explosive struct{}

func (explosive) Reply() commands.Reply { panic("a bug in Reply") }
func (explosive) Undelivered()          { panic("a bug in Lost") }

func TestSession_ALateAnswerThatPanicsCostsItsConnectionOnly(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("LATER"))
	d.next(t).Completer.CompleteDeferred(explosive{})
	c.expectEnd("-ERR internal error\r\n")
	if n := s.Stats().Panics; n != 1 {
		t.Errorf("%d panics counted, want 1", n)
	}
}

func TestSession_WritesWhatIsAnsweredAtOnceInOneWrite(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	counted := &counting{Conn: ours}
	session := adopt(s, counted)
	for i := range 40 { // a barrier in the middle changes nothing
		words := []string{"PING"}
		if i == 20 {
			words = []string{"SELECT", "1"}
		}
		session.append(session.newPending(14, 40).take(words))
	}
	go session.flush()
	want := strings.Repeat("+PONG\r\n", 20) + "+OK\r\n" + strings.Repeat("+PONG\r\n", 19)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(theirs, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v", got, err)
	}
	if n := len(counted.writes()); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

// counting remembers the size of every write.
type counting struct {
	net.Conn
	mu    sync.Mutex
	sizes []int
}

func (c *counting) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.sizes = append(c.sizes, len(p))
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *counting) writes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]int(nil), c.sizes...)
}

func TestSession_NeverWritesOnTheGoroutineThatAnswers(t *testing.T) {
	// The client reads nothing and the pipe has no buffer: a writer would block
	// for ever. The answers are all taken at once nevertheless.
	d := newDispatcher()
	_, session, theirs := lone(t, d)
	for range 3 {
		session.append(session.newPending(1, 0).take([]string{"LATER"}))
	}
	session.flush()
	for range 3 {
		d.next(t).Reply(commands.OK)
	}
	got := make([]byte, 15)
	if _, err := io.ReadFull(theirs, got); err != nil || string(got) != strings.Repeat("+OK\r\n", 3) {
		t.Fatalf("got %q, %v", got, err)
	}
	theirs.Close()
}

// A written answer is garbage, although its connection keeps the block that it was in.
func TestSession_KeepsNoAnswerThatIsWritten(t *testing.T) {
	d := newDispatcher()
	answers := make(chan weak.Pointer[bigAnswer], 1)
	d.execute = func(call *commands.Call) bool {
		big := &bigAnswer{}
		answers <- weak.Make(big)
		call.Completer.CompleteDeferred(big)
		return true
	}
	c := dial(t, serve(t, Options{}, d))
	c.send(command("BIG"))
	c.expect("+OK\r\n")
	answer := <-answers
	for end := time.Now().Add(testTimeout); answer.Value() != nil; runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("the answer is still there")
		}
	}
	c.send(command("BIG")) // the connection lives
	c.expect("+OK\r\n")
}

type bigAnswer struct{ _ [1024]byte }

func (*bigAnswer) Reply() commands.Reply { return commands.OK }
func (*bigAnswer) Undelivered()          {}
