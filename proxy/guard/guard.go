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
func (c *Conn) Read(p []byte) (int, error) {
	for {
		if c.refused || c.finished.Load() {
			return 0, c.discardInput()
		}
		if c.takeEviction() && !c.Events.Authenticated() {
			c.refuse(preauth.MemoryFault(c.group.options.UnauthMemory))
			continue
		}
		if n := c.handOver(p); n > 0 {
			c.spendCredit()
			return c.advance(n), nil
		}
		switch {
		case c.refused:
			continue
		case c.readErr != nil:
			c.release()
			return 0, c.readErr
		case c.buffer.Empty() && redconBuffer-c.filled < minSpace:
			return c.advance(c.pad(p)), nil
		}
		n, err := c.receive(p)
		if c.resting.Load() {
			return 0, err
		}
		c.readErr = err
		if n == 0 {
			continue
		}
		if c.buffer.Empty() && c.Events.Authenticated() && c.allWhole(p[:n]) {
			return c.advance(n), nil
		}
		c.buffer.Add(p[:n])
		c.reportBuffered()
	}
}

// advance tracks redcon's buffer, which starts over when it is exactly full.
func (c *Conn) advance(n int) int {
	c.filled = (c.filled + n) % redconBuffer
	return n
}

// receive reads from the socket into p. A partial command has one deadline for
// its rest, counted from the first wait for it: time in which the server itself
// did not read does not count against the client.
func (c *Conn) receive(p []byte) (int, error) {
	if !c.Events.Authenticated() {
		return 0, c.receiveUnauth()
	}
	c.endLoginLimits()
	switch {
	case !c.buffer.Empty() && !c.hasDeadline:
		c.hasDeadline = true
		c.setReadDeadline(c.group.options.CommandTimeout)
	case c.buffer.Empty() && c.group.options.IdleTimeout > 0:
		c.setReadDeadline(c.group.options.IdleTimeout)
	case c.buffer.Empty() && !c.restSet:
		c.setRestDeadline()
	}
	if c.buffer.Empty() { // p may be handed over as it is, so it must fit
		p = p[:min(len(p), redconBuffer-c.filled)]
	}
	n, err := c.Conn.Read(p)
	c.used = c.used || n > 0
	if errors.Is(err, os.ErrDeadlineExceeded) && c.buffer.Empty() && n == 0 && !c.finished.Load() {
		switch {
		case c.restSet:
			err = c.restDue()
		case c.Events.Busy():
			err = nil // a client that waits for a reply is not idle
		}
	}
	return n, err
}

// allWhole is the fast path, and the usual one: p contains nothing but complete arrays.
func (c *Conn) allWhole(p []byte) bool {
	for len(p) > 0 {
		var frame resp.Frame
		size, kind := frame.Next(p, &c.group.options.Limits)
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
func (c *Conn) handOver(p []byte) (n int) {
	p = p[:min(len(p), redconBuffer-c.filled)]
	for {
		size, kind := c.frame.Next(c.buffer.Bytes(), c.limits())
		command := c.buffer.Bytes()[:size]
		switch {
		case kind == resp.Incomplete && c.buffer.Empty():
			c.release()
			return n
		case kind == resp.Incomplete:
			return n
		case kind == resp.Blank:
			c.consume(size)
		case kind == resp.Array && n+size <= len(p) && !c.bypassAll && !isHTTP(c.frame.Name(command)):
			n += copy(p[n:], command)
			c.consume(size)
			if !c.Events.Authenticated() {
				return n // a batch of short ones would cost a pending reply each, all at once
			}
		case n > 0:
			return n // a special command goes alone, when everything before it has been executed
		case kind == resp.Broken:
			return c.refuse(c.frame.Fault())
		case kind == resp.Inline:
			return c.handOverLine(p, size)
		case isHTTP(c.frame.Name(command)):
			return c.refuse("")
		case !c.bypassAll && (size <= redconBuffer || len(p) < len(placeholder)):
			return c.pad(p)
		default:
			c.bypass = resp.Words(string(command))
			c.consume(size)
			return copy(p, placeholder)
		}
	}
}

// handOverLine translates the inline command at the start of the buffer into an array;
// redcon handles neither tabs nor escapes.
func (c *Conn) handOverLine(p []byte, size int) int {
	limits := c.limits()
	args, ok := resp.SplitLine(c.buffer.Bytes()[:size-1], limits.MaxArgs)
	switch {
	case !ok:
		return c.refuse("Protocol error: unbalanced quotes in request")
	case len(args) > limits.MaxArgs:
		return c.refuse("Protocol error: invalid multibulk length")
	case isHTTP([]byte(args[0])):
		return c.refuse("")
	case limits.UnauthFault(args) != "":
		return c.refuse(limits.UnauthFault(args))
	case len(p) < len(placeholder):
		return c.pad(p)
	}
	c.consume(size)
	if encoded := resp.AppendCommand(nil, args...); len(encoded) <= len(p) && !c.bypassAll {
		return copy(p, encoded)
	}
	c.bypass = args
	return copy(p, placeholder)
}

// pad fills redcon's buffer to its end with empty lines.
func (c *Conn) pad(p []byte) int {
	n := min(len(p), redconBuffer-c.filled)
	for i := range p[:n] {
		p[i] = '\n'
	}
	return n
}

// reportBuffered reports the bytes of a command that outgrew its pooled buffer.
func (c *Conn) reportBuffered() {
	if _, large := c.buffer.Held(); c.reported != large {
		c.reported = large
		c.Events.SetBuffered(large)
	}
}

// release returns the memory: an idle connection holds none.
func (c *Conn) release() {
	c.buffer.Release()
	c.reportBuffered()
}

// Held is the memory of incomplete commands, in bytes.
func (c *Conn) Held() int {
	all, _ := c.buffer.Held()
	return all
}

// consume drops the command at the start of the buffer.
func (c *Conn) consume(size int) {
	c.buffer.Consume(size)
	c.frame = resp.Frame{}
	c.hasDeadline = false
}

// Write drops redcon's writes: empty flushes. Replies leave through Send.
func (c *Conn) Write(p []byte) (int, error) { return len(p), nil }

// Send hands replies to the kernel; n is how many bytes it accepted.
func (c *Conn) Send(p []byte) (n int, err error) {
	if !c.Events.Authenticated() && c.replyBytes.Add(int64(len(p))) > preauth.MaxOutput {
		return 0, ErrUnreadReplies
	}
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.group.options.WriteTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// TakeBypass returns the words of the command that bypassed redcon, or nil.
func (c *Conn) TakeBypass() []string {
	args := c.bypass
	c.bypass = nil
	return args
}

// isHTTP recognizes the words of an HTTP request, which a web page can be made to send to
// this port. Nothing of it may be executed, whatever its body contains.
func isHTTP(word []byte) bool {
	return len(word) == 4 && strings.EqualFold(string(word), "POST") ||
		len(word) == 5 && strings.EqualFold(string(word), "Host:")
}

var _ io.ReadWriteCloser = (*Conn)(nil)
