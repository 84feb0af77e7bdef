package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/commands"
)

func TestServer_ServesSeveralAddressesAndUnixSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s := serve(t, Options{Listen: []string{"127.0.0.1:0", "unix:" + path, "127.0.0.1:0"}}, newDispatcher())
	for _, address := range s.Addrs() {
		network, target := "tcp", address
		if p, ok := strings.CutPrefix(address, "unix:"); ok {
			network, target = "unix", p
		}
		conn, err := net.Dial(network, target)
		if err != nil {
			t.Fatal(err)
		}
		c := &client{Conn: conn, t: t, in: nil}
		c.send(command("PING"))
		got := make([]byte, 7)
		if _, err := conn.Read(got); err != nil || string(got) != "+PONG\r\n" {
			t.Errorf("%s: got %q, %v", address, got, err)
		}
		conn.Close()
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's mode is %v (%v), want 0700", info.Mode(), err)
	}
}

func TestServer_ReplacesOnlyAStaleSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if _, err := New(Options{Listen: []string{"unix:" + path}, Logger: quiet()}, newDispatcher()); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Fatalf("a socket in use: %v", err)
	}
	stale.Close() // its file stays, as after a crash
	s := serve(t, Options{Listen: []string{"unix:" + path}}, newDispatcher())
	c := dial(t, s)
	c.send(command("PING"))
	c.expect("+PONG\r\n")

	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Listen: []string{"unix:" + file}, Logger: quiet()}, newDispatcher()); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Fatalf("an ordinary file: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("the file was removed")
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".rl*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestServer_RefusesOptionsThatCannotWorkByNameAndValue(t *testing.T) {
	for want, options := range map[string]Options{
		"Listen is empty":       {},
		"MaxClients is -3":      {Listen: []string{"127.0.0.1:0"}, MaxClients: -3},
		"Window is -1":          {Listen: []string{"127.0.0.1:0"}, Window: -1},
		"WriteTimeout is -1s":   {Listen: []string{"127.0.0.1:0"}, WriteTimeout: -time.Second},
		`Listen "nowhere:1:2"`:  {Listen: []string{"nowhere:1:2"}},
		"the path is missing":   {Listen: []string{"127.0.0.1:0", "unix:"}},
		"IdleTimeout is -1ns":   {Listen: []string{"127.0.0.1:0"}, IdleTimeout: -1},
		"MaxUnwritten is 1, al": {Listen: []string{"127.0.0.1:0"}, MaxUnwritten: 1},
	} {
		if _, err := New(options, newDispatcher()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestServer_TurnsAwayOneClientTooMany(t *testing.T) {
	s := serve(t, Options{MaxClients: 2}, newDispatcher())
	first, second := dial(t, s), dial(t, s)
	for _, c := range []*client{first, second} {
		c.send(command("PING"))
		c.expect("+PONG\r\n")
	}
	third := dial(t, s)
	third.expectEnd("-ERR max number of clients reached: 2 of this daemon (max-clients)\r\n")
	first.send(command("QUIT"))
	first.expectEnd("+OK\r\n")
	first.Close()
	second.send(command("PING"))
	second.expect("+PONG\r\n")
	for {
		again := dial(t, s)
		again.send(command("PING")) // refused until the server has seen the first one leave
		if b, _ := again.in.ReadByte(); b == '+' {
			break
		}
	}
	if st := s.Stats(); st.Rejected < 1 || st.Accepted != 3 || st.Connected != 2 {
		t.Errorf("got %+v", st)
	}
}

func TestServer_ShutdownAnswersWhatIsInFlight(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	busy, idle := dial(t, s), dial(t, s)
	idle.send(command("PING"))
	idle.expect("+PONG\r\n")
	busy.send(command("LATER") + command("LATERBARRIER"))
	first := d.next(t)
	done := make(chan error, 1) // 1: its one result
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.expectEnd("") // closed at once, so the shutdown has begun
	if conn, err := net.Dial("tcp", s.Addrs()[0]); err == nil {
		conn.Close()
		t.Error("a client was accepted during the shutdown")
	}
	awaitDraining(first.Completer.(*pendingReply).session) // the idle client's turn may have been first
	busy.send(command("PING"))
	first.Reply(commands.Simple("A"))
	busy.expect("+A\r\n")
	barrier := d.next(t) // it was received before
	barrier.Reply(commands.Simple("B"))
	rest, _ := busy.in.ReadString(0)
	if !strings.HasPrefix(rest, "+B\r\n") || strings.Contains(rest, "PONG") {
		t.Errorf("got %q", rest)
	}
	if err := <-done; err != nil {
		t.Errorf("got %v", err)
	}
}

// The first connection is idle; the second one sends each command right behind a reply.
func TestServer_CloseIdleClosesNothingRightBehindAReply(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	idle, busy := dial(t, s), dial(t, s)
	for _, c := range []*client{idle, busy} {
		c.send(command("PING"))
		c.expect("+PONG\r\n")
	}
	busy.send(command("LATER"))
	call := d.next(t)
	ctx, end := context.WithCancel(t.Context())
	closed := make(chan struct{})
	go func() {
		s.CloseIdle(ctx, time.Millisecond)
		close(closed)
	}()
	idle.expectEnd("")
	end()
	<-closed
	s2 := serve(t, Options{}, d)
	busy2 := dial(t, s2)
	busy2.send(command("LATER"))
	call2 := d.next(t)
	ctx, end = context.WithCancel(t.Context())
	go func() {
		s2.CloseIdle(ctx, time.Hour)
		end()
	}()
	call.Reply(commands.OK) // at the end each is closed as soon as it is idle
	busy.expectEnd("+OK\r\n")
	call2.Reply(commands.OK)
	busy2.expect("+OK\r\n")
	for n := range uint64(10) { // one command more than when it was looked at last
		busy2.send(command("PING"))
		busy2.expect("+PONG\r\n")
		if got := closeQuiet(s2.snapshot()[0], n+1); got != n+2 {
			t.Fatalf("%d commands received, want %d", got, n+2)
		}
	}
	end()
	busy2.expectEnd("")
}

// awaitDraining returns when the shutdown has reached this session: it goes
// through the sessions one by one, in no order.
func awaitDraining(session *session) {
	for draining := false; !draining; runtime.Gosched() {
		session.mu.Lock()
		draining = session.draining
		session.mu.Unlock()
	}
}

func TestServer_AnswersShutdownToCommandsThatComeTooLate(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c, probe := dial(t, s), dial(t, s)
	probe.send(command("PING")) // accepted, and not only by the kernel, which resets connections that the server does not accept
	probe.expect("+PONG\r\n")
	c.send(command("LATER"))
	call := d.next(t)
	go s.Shutdown(context.Background())
	probe.expectEnd("")
	session := call.Completer.(*pendingReply).session
	awaitDraining(session) // the probe's turn may have been first
	session.append(session.newPending(14, 0).take([]string{"ECHO", "x"}))
	call.Reply(commands.OK)
	c.expectEnd("+OK\r\n-SHUTDOWN the daemon is draining; nothing was done, use another daemon\r\n")
	if got := d.started(); len(got) != 2 {
		t.Errorf("started %q", got)
	}
}

func TestServer_ShutdownCutsOffWhatDoesNotFinish(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("LATER"))
	call := d.next(t)
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(limit); err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 clients") {
		t.Errorf("got %v", err)
	}
	c.expectEnd("")
	answer := newFakeDeferred("x")
	call.Completer.CompleteDeferred(answer)
	await(t, "the loss", answer.lost)
}

func TestServer_ServeEndsWithItsContextAndDrains(t *testing.T) {
	d := newDispatcher()
	s, err := New(Options{Listen: []string{"127.0.0.1:0"}, Logger: quiet()}, d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1) // 1: its one result
	go func() { ended <- s.Serve(ctx) }()
	c, probe := dial(t, s), dial(t, s)
	probe.send(command("PING")) // accepted, and not only by the kernel, which resets connections that the server does not accept
	probe.expect("+PONG\r\n")
	c.send(command("LATER"))
	call := d.next(t)
	cancel()
	probe.expectEnd("")
	call.Reply(commands.OK)
	c.expectEnd("+OK\r\n")
	if err := <-ended; err != nil {
		t.Errorf("got %v", err)
	}
}

func TestServer_CanBeShutDownWithoutHavingServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s, err := New(Options{Listen: []string{"127.0.0.1:0", "unix:" + path}, Logger: quiet()}, newDispatcher())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Serve(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket was left behind: %v", err)
	}
}

func TestServer_AcceptsNoClientOnceItIsStopping(t *testing.T) {
	s := serve(t, Options{}, newDispatcher())
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe() // accepted by the kernel a moment before the listener closed
	defer theirs.Close()
	if s.accept(ours, "test") != nil {
		t.Error("a client was admitted that nobody would drain")
	}
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

// failing is a listener whose first accepts fail.
type failing struct {
	net.Listener
	failures int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.failures--; f.failures >= 0 {
		return nil, errors.New("too many open files")
	}
	ours, theirs := net.Pipe()
	theirs.Close()
	return ours, nil
}

func TestServer_WaitsLongerAfterEveryFailedAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := &Server{run: newDispatcher(), options: completed(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), stopping: make(chan struct{}), sessions: map[*session]struct{}{}, hosts: map[string]int{}}
		s.openGuards()
		l := &clientListener{Listener: &failing{failures: 10}, server: s}
		start := time.Now()
		conn, err := l.acceptNext()
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		// 5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000
		if waited, want := time.Since(start), 3275*time.Millisecond; waited != want {
			t.Errorf("waited %v, want %v", waited, want)
		}
		if n := strings.Count(log.String(), "accept failed"); n != 1 {
			t.Errorf("%d warnings, want 1\n%s", n, &log)
		}
	})
}

func TestServer_WarnsOfBrowsersOnceAMinute(t *testing.T) {
	var log strings.Builder // written under the handler's lock, read after the server has ended its clients
	s := serve(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, newDispatcher())
	for range 3 {
		c := dial(t, s)
		c.send("POST / HTTP/1.1\r\n")
		c.expectEnd("")
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "an HTTP request was sent to this port"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log.String())
	}
}
