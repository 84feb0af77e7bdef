package proxy

// main_test.go holds what the tests share: a dispatcher with a few commands
// and lets a test decide when a command is answered, and a client.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/proxy/resp"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// ants starts a pool of its own when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// testTimeout bounds waits for what must happen; nothing is concluded from its length.
const testTimeout = time.Minute

// dispatcher answers PING, ECHO, HELLO, QUIT, SELECT and PANIC at once; LATER
// and WALK wait for the test; anything else is unknown.
type dispatcher struct {
	mu      sync.Mutex
	begun   []string
	later   chan *commands.Call // LATER, LATERBARRIER, OFF and WALK, in order of their start
	execute func(*commands.Call) bool
	known   func(*commands.Client) bool
}

func newDispatcher() *dispatcher {
	// 4096: more than any test has in flight, so that no handler ever blocks.
	return &dispatcher{later: make(chan *commands.Call, 4096)}
}

// Plan: WALK is as much work as a share of commands.
func (d *dispatcher) Plan(args []string) commands.Plan {
	switch strings.ToUpper(args[0]) {
	case "HELLO", "QUIT", "SELECT", "LATERBARRIER", "OFF":
		return commands.Plan{Barrier: true, Weight: 1}
	case "WALK":
		return commands.Plan{Weight: shareCommands}
	}
	return commands.Plan{Weight: 1}
}

// Authenticated: in a test that sets known, clients have to send HELLO first.
func (d *dispatcher) Authenticated(client *commands.Client) bool {
	return d.known == nil || d.known(client)
}

func (d *dispatcher) Dispatch(call *commands.Call) {
	d.mu.Lock()
	d.begun = append(d.begun, strings.Join(call.Args, " "))
	d.mu.Unlock()
	if d.execute != nil && d.execute(call) {
		return
	}
	switch strings.ToUpper(call.Args[0]) {
	case "PING":
		if len(call.Args) > 2 {
			call.Reply(commands.Error("ERR", "wrong number of arguments for 'ping' command"))
		} else if len(call.Args) == 2 {
			call.Reply(commands.Bulk(call.Args[1]))
		} else {
			call.Reply(commands.Simple("PONG"))
		}
	case "ECHO":
		call.Reply(commands.Bulk(call.Args[1]))
	case "HELLO":
		call.Client.Proto = int(call.Args[1][0] - '0')
		call.Reply(commands.Map(commands.Bulk("proto"), commands.Int(int64(call.Client.Proto))))
	case "SELECT":
		call.Client.DB = int(call.Args[1][0] - '0')
		call.Reply(commands.OK)
	case "DB":
		call.Reply(commands.Int(int64(call.Client.DB)))
	case "NIL":
		call.Reply(commands.Nil)
	case "QUIT":
		call.Client.Closing = true
		call.Reply(commands.OK)
	case "PANIC":
		panic("a handler's bug")
	case "LATER", "LATERBARRIER", "OFF", "WALK":
		d.later <- call
	default:
		text := "unknown command '" + call.Args[0] + "', with args beginning with: "
		for _, arg := range call.Args[1:] {
			text += "'" + arg + "' "
		}
		call.Reply(commands.Error("ERR", text))
	}
}

func (d *dispatcher) started() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.begun...)
}

// next is the next command that waits for the test.
func (d *dispatcher) next(t testing.TB) *commands.Call {
	t.Helper()
	select {
	case call := <-d.later:
		return call
	case <-time.After(testTimeout):
		t.Fatal("no command was started")
		return nil
	}
}

// fakeDeferred is a deferred reply that counts its calls.
type fakeDeferred struct {
	text string
	made chan struct{} // one per Reply
	lost chan struct{} // one per Lost
}

func newFakeDeferred(text string) *fakeDeferred {
	return &fakeDeferred{text: text, made: make(chan struct{}, 8), lost: make(chan struct{}, 8)}
}

func (f *fakeDeferred) Reply() commands.Reply { f.made <- struct{}{}; return commands.Bulk(f.text) }
func (f *fakeDeferred) Undelivered()          { f.lost <- struct{}{} }

func await(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testTimeout):
		t.Fatalf("%s did not happen", what)
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// serve runs a server on the loopback until the test ends.
func serve(t testing.TB, options Options, d Dispatcher) *Server {
	t.Helper()
	if options.Listen == nil {
		options.Listen = []string{"127.0.0.1:0"}
	}
	if options.Logger == nil {
		options.Logger = quiet()
	}
	s, err := New(options, d)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)
	return s
}

// start serves until the test ends.
func start(t testing.TB, s *Server) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1) // 1: Serve's one result
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		now, stop := context.WithCancel(context.Background())
		stop()
		_ = s.Shutdown(now) // tests leave clients behind; they are cut off
		cancel()
		<-ended
	})
}

// pipes is a listener whose connections are pipes of this process.
type pipes struct {
	come   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.come:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// serveOnPipes is serve in a synctest bubble, where sockets would keep the clock
// from moving: time passes when the server and its clients have nothing to do.
func serveOnPipes(t *testing.T, options Options, d Dispatcher) (*Server, func() *client) {
	t.Helper()
	options.Listen, options.Logger = []string{"127.0.0.1:0"}, quiet()
	s, err := New(options, d)
	if err != nil {
		t.Fatal(err)
	}
	pipe := &pipes{come: make(chan net.Conn), closed: make(chan struct{})}
	s.listeners[0].Listener.Close()
	s.listeners[0].Listener = pipe
	start(t, s)
	return s, func() *client {
		t.Helper()
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		pipe.come <- from{ours, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2}}
		return &client{Conn: theirs, t: t, in: bufio.NewReader(theirs)}
	}
}

// client is one connection of a test.
type client struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

func dial(t testing.TB, s *Server) *client {
	t.Helper()
	network, address := "tcp", s.Addrs()[0]
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	return &client{Conn: conn, t: t, in: bufio.NewReader(conn)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// expect reads exactly these bytes.
func (c *client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.in, got)
	if err != nil || string(got) != want {
		c.t.Fatalf("got %q (%v), want %q", got[:n], err, want)
	}
}

// expectEnd reads exactly these bytes and the end of the stream.
func (c *client) expectEnd(want string) {
	c.t.Helper()
	got, err := io.ReadAll(c.in)
	if err != nil || string(got) != want {
		c.t.Fatalf("got %s (%v), want %s and the end", shorten(string(got)), err, shorten(want))
	}
}

func shorten(s string) string {
	if len(s) > 300 {
		return fmt.Sprintf("%q… (%d bytes)", s[:300], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// command encodes words as an array.
func command(words ...string) string { return string(resp.AppendCommand(nil, words...)) }
