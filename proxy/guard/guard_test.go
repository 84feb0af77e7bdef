package guard

// Further tests of the guard need redcon, a server or its commands: they are in package proxy.

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"redlockd/proxy/preauth"
	"redlockd/proxy/resp"
)

// wire is a socket whose peer has sent everything already, one piece a read; without pieces
// the peer never stops sending.
type wire struct {
	net.Conn
	pieces []string
	read   int
}

func (w *wire) Read(p []byte) (n int, err error) {
	switch {
	case w.pieces == nil:
		n = len(p)
	case len(w.pieces) == 0:
		err = io.EOF
	default:
		n = copy(p, w.pieces[0])
		w.pieces = w.pieces[1:]
	}
	w.read += n
	return n, err
}

func (w *wire) SetReadDeadline(time.Time) error { return nil }

// witness is a receiver whose client is authenticated or not.
type witness bool

func (w witness) Refuse(string)       {}
func (w witness) Busy() bool          { return false }
func (w witness) SocketClosed()       {}
func (w witness) SetBuffered(int)     {}
func (w witness) Authenticated() bool { return bool(w) }
func (w witness) Receive([]string)    {}

// unlimited is memory that nobody else needs.
type unlimited struct{}

func (unlimited) Grow(int) bool { return true }
func (unlimited) Release()      {}
func (unlimited) End()          {}

func newGroup() *Group {
	return NewGroup(Options{
		Limits:       resp.Limits{MaxLine: 64 << 10, MaxArgs: 1024, MaxBulk: 64 << 10, MaxCommand: 256 << 10},
		LoginTimeout: time.Minute,
		Reserve:      func(func()) preauth.Memory { return unlimited{} },
	})
}

func TestGuard_ReadsABoundedNumberOfBytesFromARejectedClient(t *testing.T) {
	for _, c := range []struct {
		known bool
		most  int
	}{{true, lingerBytes}, {false, unauthLingerBytes}} {
		source := &wire{}
		g := newGroup().Guard(source, witness(c.known))
		g.refuse("no")
		_, err := g.Read(make([]byte, redconBuffer))
		if !errors.Is(err, errStillSending) || source.read < c.most || source.read > c.most+2<<10 {
			t.Errorf("known %t: %d bytes were read, want %d; %v", c.known, source.read, c.most, err)
		}
		if g.Held() > 0 {
			t.Errorf("known %t: it holds %d bytes", c.known, g.Held())
		}
	}
}

// All unauthenticated clients together get so many turns; each read and each four commands is one.
func TestUnauth_WorksNoFasterThanItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := newGroup()
		group.turns = rate.NewLimiter(10, 1)
		start := time.Now()
		for range 2 {
			g := group.Guard(&wire{pieces: []string{strings.Repeat("PING\r\n", 9), "PING\r\n"}}, witness(false))
			for p := make([]byte, redconBuffer); ; {
				if _, err := g.Read(p); err != nil {
					break
				}
			}
		}
		// Each: a read, four commands; a turn, four; a turn, one; a read, one; the read of the end.
		if took, want := time.Since(start), (2*5-1)*100*time.Millisecond; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

// A connection rests only when nothing was received since the deadline was set, and only
// between two commands. Close rests it once.
func TestRest_EndsRedconOnlyBetweenCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := newGroup()
		group.options.RestAfter, group.options.CommandTimeout = time.Second, time.Minute
		ours, theirs := net.Pipe()
		defer theirs.Close()
		g := group.Guard(ours, witness(true))
		go func() {
			for _, piece := range []string{"PING\r\n", "*1\r\n$4\r\nPI", "NG\r\n", "QUIT\r\n"} {
				time.Sleep(800 * time.Millisecond)
				_, _ = io.WriteString(theirs, piece)
				if piece[0] == '*' {
					time.Sleep(10 * time.Second) // half a command does not rest
				}
			}
		}()
		began := time.Now()
		read := func() string {
			p := make([]byte, redconBuffer)
			n, err := g.Read(p)
			if err != nil {
				return err.Error()
			}
			return string(p[:n])
		}
		const ping = "*1\r\n$4\r\nPING\r\n"
		for i, want := range []string{ping, ping, "*1\r\n$4\r\nQUIT\r\n", io.EOF.Error()} {
			if i < 3 && g.TakeRest() {
				t.Fatal("it rests")
			}
			if got := read(); got != want {
				t.Fatalf("read %d: %q, want %q", i, got, want)
			}
		}
		if !g.TakeRest() || g.TakeRest() || g.Held() > 0 {
			t.Error("it does not rest once, without memory")
		}
		if idle := time.Since(began) - 13200*time.Millisecond; idle < time.Second || idle > 2*time.Second {
			t.Errorf("it rests after %v, want one to two seconds", idle)
		}
		full := "*1\r\n$4083\r\n" + strings.Repeat("x", 4083) + "\r\n" // all of the next redcon's buffer
		go func() { _, _ = io.WriteString(theirs, full) }()
		if err := g.Rest(); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != full {
			t.Errorf("after the rest: %d bytes %.40q", len(got), got)
		}
		theirs.Close()
		if err := g.Rest(); !errors.Is(err, io.EOF) {
			t.Errorf("the end of the connection: %v", err)
		}
	})
}
