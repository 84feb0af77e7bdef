package proxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/commands"
	"redlockd/proxy/guard"

	"github.com/tidwall/redcon"
)

const redconBuffer = 4096 // redcon.NewReader, v1.6.2

// wire is a socket whose peer has sent everything already, in given pieces.
type wire struct {
	net.Conn
	pieces []string
	end    error
}

func (w *wire) Read(p []byte) (int, error) {
	for len(w.pieces) > 0 && w.pieces[0] == "" {
		w.pieces = w.pieces[1:]
	}
	if len(w.pieces) == 0 {
		return 0, w.end
	}
	n := copy(p, w.pieces[0])
	w.pieces[0] = w.pieces[0][n:]
	return n, nil
}

func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
func (w *wire) Close() error                     { return nil }

// witness is a receiver that remembers.
type witness struct {
	refused []string
	unauth  bool // it is not authenticated
	closed  bool
}

func (w *witness) Refuse(text string)  { w.refused = append(w.refused, text) }
func (w *witness) Busy() bool          { return false }
func (w *witness) SocketClosed()       { w.closed = true }
func (w *witness) SetBuffered(int)     {}
func (w *witness) Authenticated() bool { return !w.unauth }
func (w *witness) Receive([]string)    {}

// completed has the defaults.
func completed(o Options) Options {
	_ = o.complete() // it listens nowhere
	return o
}

// guardless is a server with guards and nothing else.
func guardless(options Options) *Server {
	s := &Server{options: completed(options)}
	s.openGuards()
	return s
}

func guardOver(conn net.Conn, options Options) (*guard.Conn, *witness) {
	w := &witness{}
	return guardless(options).guards.Guard(conn, w), w
}

// guardOutput is what passed the guard: commands, and the reason of a rejection.
type guardOutput struct {
	commands [][]string
	refused  []string
}

// listenTo reads everything as the server does: redcon behind the guard.
func listenTo(t testing.TB, pieces []string) guardOutput {
	t.Helper()
	g, w := guardOver(&wire{pieces: append([]string(nil), pieces...), end: io.EOF}, Options{})
	h := guardOutput{}
	reader := redcon.NewReader(g)
	for {
		batch, err := reader.ReadCommands()
		for _, c := range batch {
			args := g.TakeBypass()
			if args == nil {
				for _, word := range c.Args {
					args = append(args, string(word))
				}
			}
			h.commands = append(h.commands, args)
		}
		if g.Held() > 2*(requestLimits.MaxCommand+requestLimits.MaxLine+redconBuffer) { // twice, as append grows
			t.Fatalf("the guard holds %d bytes", g.Held())
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatalf("redcon found fault where the guard did not: %v", err)
			}
			h.refused = w.refused
			if g.Held() > 0 {
				t.Fatal("the guard kept its buffer")
			}
			return h
		}
	}
}

func bytewise(s string) []string {
	pieces := make([]string, len(s))
	for i := range len(s) {
		pieces[i] = s[i : i+1]
	}
	return pieces
}

func randomly(r *rand.Rand, s string) (pieces []string) {
	for len(s) > 0 {
		n := min(len(s), 1+r.IntN(1<<r.IntN(14)))
		pieces = append(pieces, s[:n])
		s = s[n:]
	}
	return pieces
}

func TestGuard_ReceivesTheSameHoweverTheBytesAreCut(t *testing.T) {
	for _, row := range hostiles() {
		once := listenTo(t, []string{row.input})
		if byByte := listenTo(t, bytewise(row.input)); !reflect.DeepEqual(once, byByte) {
			t.Errorf("%s: %s: at once %d commands, refused %q; byte by byte %d commands, refused %q", row.name, shorten(row.input),
				len(once.commands), once.refused, len(byByte.commands), byByte.refused)
		}
	}
}

func TestGuard_DeliversRandomStreamsUnchanged(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		stream, want := randomStream(r)
		for range 3 {
			got := listenTo(t, randomly(r, stream))
			if !reflect.DeepEqual(got.commands, want) || got.refused != nil {
				t.Fatalf("seed %d: %d commands, refused %q; want %d", seed, len(got.commands), got.refused, len(want))
			}
		}
	}
}

// randomStream mixes arrays of all sizes, lines and what is to be ignored.
func randomStream(r *rand.Rand) (stream string, want [][]string) {
	var b strings.Builder
	for range 1 + r.IntN(60) {
		switch r.IntN(8) {
		case 0:
			b.WriteString([]string{"\r\n", "\n", "*0\r\n", "*-1\r\n", " \t\r\n"}[r.IntN(5)])
		case 1:
			b.WriteString("SET  'a b' \"\\x00c\"\r\n")
			want = append(want, []string{"SET", "a b", "\x00c"})
		default:
			args := make([]string, 1+r.IntN(8))
			for i := range args {
				word := make([]byte, r.IntN(1<<r.IntN(13)))
				for j := range word {
					word[j] = byte(r.IntN(256))
				}
				args[i] = string(word)
			}
			if name := strings.ToLower(args[0]); name == "post" || name == "host:" {
				continue
			}
			b.WriteString(command(args...))
			want = append(want, args)
		}
	}
	return b.String(), want
}

func TestGuard_NeverLetsRedconsBufferGrow(t *testing.T) {
	// Ten thousand valid commands of changing sizes, every read ending inside
	// one. Were one byte of a partial command handed over, redcon would double
	// its buffer and keep it.
	var b strings.Builder
	for i := range 10_000 {
		b.WriteString(command("ECHO", strings.Repeat("x", i%700)))
	}
	stream := b.String()
	var pieces []string
	for len(stream) > 0 {
		n := min(len(stream), 1777)
		pieces = append(pieces, stream[:n])
		stream = stream[n:]
	}
	g, _ := guardOver(&wire{pieces: pieces, end: io.EOF}, Options{})
	reader := redcon.NewReader(g)
	n := 0
	for {
		batch, err := reader.ReadCommands()
		n += len(batch)
		if err != nil {
			break
		}
	}
	size := reflect.ValueOf(reader).Elem().FieldByName("buf").Cap()
	if n != 10_000 || size != redconBuffer {
		t.Errorf("%d commands through a buffer of %d bytes, want 10000 through %d", n, size, redconBuffer)
	}
}

func TestGuard_StaysSmallUnderTheTailAttack(t *testing.T) {
	// Some MiB of six-byte lines, every read ending in half a line.
	total := 8 << 20
	if raceDetector {
		total = 2 << 20 // it is fifty times as slow
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	chunk := strings.Repeat("PING\r\n", 600)[3:] + "PIN"
	source := &endless{text: chunk, left: total}
	g, w := guardOver(source, Options{})
	reader := redcon.NewReader(g)
	n := 0
	for {
		batch, err := reader.ReadCommands()
		n += len(batch)
		if err != nil {
			break
		}
	}
	if n < total/7 || len(w.refused) > 0 {
		t.Fatalf("%d commands, refused %q", n, w.refused)
	}
	if size := reflect.ValueOf(reader).Elem().FieldByName("buf").Cap(); size != redconBuffer {
		t.Errorf("redcon's buffer has grown to %d bytes", size)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapInuse > 16<<20 || after.HeapInuse > before.HeapInuse+uint64(total)/2 {
		t.Errorf("%d bytes in use after %d bytes of input, %d before", after.HeapInuse, total, before.HeapInuse)
	}
	runtime.KeepAlive(reader)
	runtime.KeepAlive(g)
}

// endless repeats a text, one copy a read.
type endless struct {
	wire
	text string
	left int
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	e.left -= n
	return n, nil
}

func TestGuard_GivesItsBufferBackWhenNothingIsPartial(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	g, _ := guardOver(ours, Options{})
	go func() {
		_, _ = io.WriteString(theirs, "*1\r\n$4\r\nPI")
		_, _ = io.WriteString(theirs, "NG\r\n")
		_, _ = io.WriteString(theirs, command("ECHO", strings.Repeat("x", 60_000)))
		theirs.Close()
	}()
	p := make([]byte, redconBuffer)
	if n, err := g.Read(p); err != nil || string(p[:n]) != command("PING") {
		t.Fatalf("got %q, %v", p[:n], err)
	}
	for {
		if _, err := g.Read(p); err != nil {
			break
		}
	}
	if args := g.TakeBypass(); len(args) != 2 || len(args[1]) != 60_000 {
		t.Errorf("the long command did not come aside: %d words", len(args))
	}
	if g.Held() > 0 {
		t.Error("the guard holds a buffer although it holds no bytes")
	}
}

func TestGuard_ClosesOnACommandThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher()
		_, dial := serveOnPipes(t, Options{CommandTimeout: time.Second}, d)
		for _, part := range []string{"*1\r\n$4\r\nPI", "PIN", "*", "\x17\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03PING\r\n"} {
			c, began := dial(), time.Now()
			c.send(part)
			c.expectEnd("")
			if took := time.Since(began); took != time.Second {
				t.Errorf("%q had %v to go on, want a second", part, took)
			}
		}
		if got := d.started(); len(got) != 0 {
			t.Errorf("%q was run, want nothing", got)
		}
	})
}

func TestGuard_RunsNothingOfHalfACommandAtTheEnd(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("PING") + "*1\r\n$4\r\nQUI")
	c.expect("+PONG\r\n")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	c.expectEnd("")
	if got := d.started(); !reflect.DeepEqual(got, []string{"PING"}) {
		t.Errorf("%q was run, want PING alone", got)
	}
}

func TestGuard_StillSeesTheClientLeaveAfterABadCommand(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	stays, leaves := dial(t, s), dial(t, s)
	for _, c := range []*client{stays, leaves} {
		c.send(command("LATER") + "*x\r\n" + strings.Repeat(command("PING"), 2000))
	}
	// Which call is whose is known by the address.
	calls := map[string]*commands.Call{}
	for range 2 {
		call := d.next(t)
		calls[call.Client.Addr] = call
	}
	answer := newFakeDeferred("x")
	session := calls[leaves.LocalAddr().String()].Completer.(*pendingReply).session
	leaves.Close()
	for gone := false; !gone; runtime.Gosched() {
		session.mu.Lock()
		gone = session.dropped
		session.mu.Unlock()
	}
	calls[leaves.LocalAddr().String()].Completer.CompleteDeferred(answer)
	await(t, "the loss", answer.lost)
	calls[stays.LocalAddr().String()].Reply(commands.OK)
	stays.expectEnd("+OK\r\n" + protocolError("invalid multibulk length"))
}

func TestGuard_IdleTimeoutSparesAClientThatWaitsForAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher()
		_, dial := serveOnPipes(t, Options{IdleTimeout: time.Second}, d)
		waits := dial()
		waits.send(command("LATER"))
		call := d.next(t)
		for range 3 {
			dial().expectEnd("") // its time has passed, so the other's has, too
		}
		call.Reply(commands.OK)
		began := time.Now()
		waits.expectEnd("+OK\r\n") // answered, and idle from then on
		if took := time.Since(began); took > time.Second {
			t.Errorf("it was idle for %v", took)
		}
	})
}
