package guard

// guard.go contains the connection that redcon reads from. redcon v1.6.2 trusts lengths
// (27 bytes kill the process), recurses once per read, never shrinks its buffer and
// drops good commands before bad ones in one read. So the guard sits between the socket
// and redcon and hands over only complete, bounded, valid commands, always as arrays.
// The design depends on three facts about redcon:
//
//  1. It reads only when it has handled everything it was given. Hence all commands of
//     one Read have been executed before the next Read begins. So the error after the
//     last good command can be sent in its place. A long command can bypass redcon: the
//     guard keeps its words in `bypass` and hands redcon a placeholder of eleven bytes,
//     and the very next call of the handler is for the placeholder.
//  2. Its buffer has 4 096 bytes and starts over only when a read ends exactly
//     at its end with nothing left over; otherwise it doubles, for good. The
//     guard tracks the fill level and, where a command does not fit anymore,
//     fills the rest with empty lines, which redcon skips. Should this ever be
//     wrong, redcon would only use more memory.
//  3. It never hands a partial command back. So an idle connection's bytes are
//     read straight into redcon's own buffer, and the guard owns memory only
//     while a command is incomplete.

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/proxy/preauth"
	"redlockd/proxy/resp"
)

const (
	redconBuffer = 4096 // redcon.NewReader, v1.6.2
	minSpace     = 256  // with less space left in redcon's buffer start it over instead of reading a few bytes
	placeholder  = "*1\r\n$1\r\n-\r\n"
)

// Events receives what happens on a connection; the session implements it.
type Events interface {
	Refuse(text string)    // all earlier commands were received; send text and close. "" closes without a reply
	Busy() bool            // a command is in flight
	SocketClosed()         // the socket is closed
	Authenticated() bool   // the client is authenticated, or need not be
	SetBuffered(bytes int) // size of an incomplete command in memory
	Receive(args []string) // a command that bypassed redcon, of a client that is not authenticated
}

// Conn is the net.Conn that redcon reads from. Read belongs to one goroutine;
// Send, CloseGracefully and Close may be called from any.
type Conn struct {
	net.Conn
	Events Events
	group  *Group

	buffer      preauth.Buffer // starts with a command
	frame       resp.Frame     // progress in that command
	filled      int            // fill level of redcon's buffer
	bypass      []string       // words of the command whose placeholder was handed over last
	readErr     error          // how the socket ended; returned once the buffer holds no complete command
	reported    int            // bytes last reported by SetBuffered
	bypassAll   bool           // redcon does not run yet: every command bypasses it
	refused     bool           // a bad request was received; nothing is handed over anymore
	hasDeadline bool           // the command at the start of the buffer has its deadline
	deadlineSet bool           // the socket has a read deadline
	restSet     bool           // it is the one after which the connection rests
	used        bool           // something was received since it was set

	// Of an unauthenticated client.
	loginBy    time.Time    // deadline of its login
	replyBytes atomic.Int64 // bytes of replies since the last read
	credit     int          // commands that may be handed over in this turn

	mu       sync.Mutex  // of the two flags together with the read deadline
	finished atomic.Bool // replies are complete, the client may read them for a moment
	evicted  atomic.Bool // the reservation was evicted
	resting  atomic.Bool // redcon has just ended because the connection is to rest
	once     sync.Once
	closed   chan struct{} // closed with the socket
	wake     chan struct{} // capacity 1: evict wakes a reader that waits for its turn
}

// Read gives redcon complete commands, or the error that ends them.
func (g *Conn) Read(p []byte) (int, error) {
	for {
		if g.refused || g.finished.Load() {
			return 0, g.discardInput()
		}
		if g.takeEviction() && !g.Events.Authenticated() {
			g.refuse(preauth.MemoryFault(g.group.options.UnauthMemory))
			continue
		}
		if n := g.handOver(p); n > 0 {
			g.spendCredit()
			return g.advance(n), nil
		}
		switch {
		case g.refused:
			continue
		case g.readErr != nil:
			g.release()
			return 0, g.readErr
		case g.buffer.Empty() && redconBuffer-g.filled < minSpace:
			return g.advance(g.pad(p)), nil
		}
		n, err := g.receive(p)
		if g.resting.Load() {
			return 0, err
		}
		g.readErr = err
		if n == 0 {
			continue
		}
		if g.buffer.Empty() && g.Events.Authenticated() && g.allWhole(p[:n]) {
			return g.advance(n), nil
		}
		g.buffer.Add(p[:n])
		g.reportBuffered()
	}
}

// advance tracks redcon's buffer, which starts over when it is exactly full.
func (g *Conn) advance(n int) int {
	g.filled = (g.filled + n) % redconBuffer
	return n
}

// receive reads from the socket into p. A partial command has one deadline for
// its rest, counted from the first wait for it: time in which the server itself
// did not read does not count against the client.
func (g *Conn) receive(p []byte) (int, error) {
	if !g.Events.Authenticated() {
		return 0, g.receiveUnauth()
	}
	g.endLoginLimits()
	switch {
	case !g.buffer.Empty() && !g.hasDeadline:
		g.hasDeadline = true
		g.setReadDeadline(g.group.options.CommandTimeout)
	case g.buffer.Empty() && g.group.options.IdleTimeout > 0:
		g.setReadDeadline(g.group.options.IdleTimeout)
	case g.buffer.Empty() && !g.restSet:
		g.setRestDeadline()
	}
	if g.buffer.Empty() { // p may be handed over as it is, so it must fit
		p = p[:min(len(p), redconBuffer-g.filled)]
	}
	n, err := g.Conn.Read(p)
	g.used = g.used || n > 0
	if errors.Is(err, os.ErrDeadlineExceeded) && g.buffer.Empty() && n == 0 && !g.finished.Load() {
		switch {
		case g.restSet:
			err = g.restDue()
		case g.Events.Busy():
			err = nil // a client that waits for a reply is not idle
		}
	}
	return n, err
}

// allWhole is the fast path, and the usual one: p contains nothing but complete arrays.
func (g *Conn) allWhole(p []byte) bool {
	for len(p) > 0 {
		var frame resp.Frame
		size, kind := frame.Next(p, &g.group.options.Limits)
		if kind != resp.Array || isHTTP(frame.Name(p)) {
			return false
		}
		p = p[size:]
	}
	return true
}

// handOver moves as many complete commands as fit from the buffer to p. 0 means that more
// bytes are needed or that the request was rejected. Commands of an unauthenticated
// client are handed over one by one.
func (g *Conn) handOver(p []byte) (n int) {
	p = p[:min(len(p), redconBuffer-g.filled)]
	for {
		size, kind := g.frame.Next(g.buffer.Bytes(), g.limits())
		command := g.buffer.Bytes()[:size]
		switch {
		case kind == resp.Incomplete && g.buffer.Empty():
			g.release()
			return n
		case kind == resp.Incomplete:
			return n
		case kind == resp.Blank:
			g.consume(size)
		case kind == resp.Array && n+size <= len(p) && !g.bypassAll && !isHTTP(g.frame.Name(command)):
			n += copy(p[n:], command)
			g.consume(size)
			if !g.Events.Authenticated() {
				return n // a batch of short ones would cost a pending reply each, all at once
			}
		case n > 0:
			return n // a special command goes alone, when everything before it has been executed
		case kind == resp.Broken:
			return g.refuse(g.frame.Fault())
		case kind == resp.Inline:
			return g.handOverLine(p, size)
		case isHTTP(g.frame.Name(command)):
			return g.refuse("")
		case !g.bypassAll && (size <= redconBuffer || len(p) < len(placeholder)):
			return g.pad(p)
		default:
			g.bypass = resp.Words(string(command))
			g.consume(size)
			return copy(p, placeholder)
		}
	}
}

// handOverLine translates the inline command at the start of the buffer into an array;
// redcon handles neither tabs nor escapes.
func (g *Conn) handOverLine(p []byte, size int) int {
	limits := g.limits()
	args, ok := resp.SplitLine(g.buffer.Bytes()[:size-1], limits.MaxArgs)
	switch {
	case !ok:
		return g.refuse("Protocol error: unbalanced quotes in request")
	case len(args) > limits.MaxArgs:
		return g.refuse("Protocol error: invalid multibulk length")
	case isHTTP([]byte(args[0])):
		return g.refuse("")
	case limits.UnauthFault(args) != "":
		return g.refuse(limits.UnauthFault(args))
	case len(p) < len(placeholder):
		return g.pad(p)
	}
	g.consume(size)
	if encoded := resp.AppendCommand(nil, args...); len(encoded) <= len(p) && !g.bypassAll {
		return copy(p, encoded)
	}
	g.bypass = args
	return copy(p, placeholder)
}

// pad fills redcon's buffer to its end with empty lines.
func (g *Conn) pad(p []byte) int {
	n := min(len(p), redconBuffer-g.filled)
	for i := range p[:n] {
		p[i] = '\n'
	}
	return n
}

// reportBuffered reports the bytes of a command that outgrew its pooled buffer.
func (g *Conn) reportBuffered() {
	if _, large := g.buffer.Held(); g.reported != large {
		g.reported = large
		g.Events.SetBuffered(large)
	}
}

// release returns the memory: an idle connection holds none.
func (g *Conn) release() {
	g.buffer.Release()
	g.reportBuffered()
}

// Held is the memory of incomplete commands, in bytes.
func (g *Conn) Held() int {
	all, _ := g.buffer.Held()
	return all
}

// consume drops the command at the start of the buffer.
func (g *Conn) consume(size int) {
	g.buffer.Consume(size)
	g.frame = resp.Frame{}
	g.hasDeadline = false
}

// Write drops redcon's writes: empty flushes. Replies leave through Send.
func (g *Conn) Write(p []byte) (int, error) { return len(p), nil }

// Send hands replies to the kernel; n is how many bytes it accepted.
func (g *Conn) Send(p []byte) (n int, err error) {
	if !g.Events.Authenticated() && g.replyBytes.Add(int64(len(p))) > preauth.MaxOutput {
		return 0, ErrUnreadReplies
	}
	if err := g.Conn.SetWriteDeadline(time.Now().Add(g.group.options.WriteTimeout)); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// TakeBypass returns the words of the command that bypassed redcon, or nil.
func (g *Conn) TakeBypass() []string {
	args := g.bypass
	g.bypass = nil
	return args
}

// isHTTP recognizes the words of an HTTP request, which a web page can be made to send to
// this port. Nothing of it may be executed, whatever its body contains.
func isHTTP(word []byte) bool {
	return len(word) == 4 && strings.EqualFold(string(word), "POST") ||
		len(word) == 5 && strings.EqualFold(string(word), "Host:")
}

var _ io.ReadWriteCloser = (*Conn)(nil)
