package proxy

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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	redconBuffer = 4096 // redcon.NewReader, v1.6.2
	lowRoom      = 256  // with less space left in redcon's buffer start it over instead of reading a few bytes
	standIn      = "*1\r\n$1\r\n-\r\n"
)

// connEvents receives the guard's events of a connection; the session implements it.
type receiver interface {
	refuse(text string) // all earlier commands were received; send text and close. "" closes without a reply
	busy() bool         // a command is in flight
	gone()              // the socket is closed
	known() bool        // the client is authenticated, or need not be
	keeps(bytes int)    // size of an incomplete command in memory
}

// guardConn is the net.Conn that redcon reads from. Read belongs to one goroutine;
// send, closeGracefully and Close may be called from any.
type guard struct {
	net.Conn
	options  *Options
	stock    *stock
	receiver receiver

	page    *[pageSize]byte // the pooled memory of buf, to be returned
	nook    *[nookSize]byte // or this
	hall    *[hallSize]byte // or this
	buf     []byte
	start   int      // buf[start:] is not handed over yet and starts with a command
	frame   framing  // progress in that command
	filled  int      // fill level of redcon's buffer
	aside   []string // words of the command whose placeholder was handed over last
	stop    error    // how the socket ended; returned once buf holds no complete command
	direct  bool     // redcon does not run yet: every command bypasses it
	refused bool     // a bad request was received; nothing is handed over anymore
	timed   bool     // the command at the start of buf has its deadline
	limited bool     // the socket has a read deadline

	// Of an unauthenticated client.
	login   time.Time    // deadline of its login
	owed    atomic.Int64 // bytes of replies since the last read
	share   share        // of memory beyond the small buffer
	charged bool         // buf is counted in the reservation
	kept    int          // size of buf last reported by setBuffered
	credit  int          // commands that may be handed over in this turn

	mu       sync.Mutex
	finished bool // replies are complete, the client may read them for a moment
	evicted  bool // the reservation was evicted
	once     sync.Once
	left     chan struct{} // closed with the socket
	roused   chan struct{} // capacity 1: evict wakes a reader that waits for its turn
}

func newGuard(conn net.Conn, options *Options, pools *stock, events receiver) *guard {
	g := &guard{Conn: conn, options: options, stock: pools, receiver: events, left: make(chan struct{}), roused: make(chan struct{}, 1)}
	g.share = share{budget: &pools.budget, evict: g.evict}
	return g
}

// Read gives redcon complete commands, or the error that ends them.
func (g *guard) Read(p []byte) (int, error) {
	for {
		if g.refused || g.isFinished() {
			return 0, g.discard()
		}
		if g.tookEviction() && !g.receiver.known() {
			g.refuse(g.stock.crowded())
			continue
		}
		if n := g.handOver(p); n > 0 {
			g.spendCredit()
			return g.given(n), nil
		}
		switch {
		case g.refused:
			continue
		case g.stop != nil:
			g.release()
			return 0, g.stop
		case g.empty() && redconBuffer-g.filled < lowRoom:
			return g.given(g.pad(p)), nil
		}
		n, err := g.receive(p)
		g.stop = err
		if n == 0 {
			continue
		}
		if g.empty() && g.receiver.known() && g.allWhole(p[:n]) {
			return g.given(n), nil
		}
		g.keep(p[:n])
	}
}

// advance tracks redcon's buffer, which starts over when it is exactly full.
func (g *guard) given(n int) int {
	g.filled = (g.filled + n) % redconBuffer
	return n
}

func (g *guard) empty() bool { return g.start == len(g.buf) }

// receive reads from the socket into p. A partial command has one deadline for
// its rest, counted from the first wait for it: time in which the server itself
// did not read does not count against the client.
func (g *guard) receive(p []byte) (int, error) {
	if !g.receiver.known() {
		return 0, g.receiveNewcomer()
	}
	g.welcome()
	switch {
	case !g.empty() && !g.timed:
		g.timed = true
		g.setReadDeadline(g.options.CommandTimeout)
	case g.empty() && g.options.IdleTimeout > 0:
		g.setReadDeadline(g.options.IdleTimeout)
	case g.empty() && g.limited:
		g.setReadDeadline(0)
	}
	if g.empty() { // p may be handed over as it is, so it must fit
		p = p[:min(len(p), redconBuffer-g.filled)]
	}
	n, err := g.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && g.empty() && n == 0 && !g.isFinished() && g.receiver.busy() {
		err = nil // a client that waits for a reply is not idle
	}
	return n, err
}

// allWhole is the fast path, and the usual one: p contains nothing but complete arrays.
func (g *guard) allWhole(p []byte) bool {
	for len(p) > 0 {
		var frame framing
		size, v := frame.next(p, g.options)
		if v != array || isBrowser(p[frame.name:frame.name+frame.nameLen]) {
			return false
		}
		p = p[size:]
	}
	return true
}

// handOver moves as many complete commands as fit from buf to p. 0 means that more
// bytes are needed or that the request was rejected. Commands of an unauthenticated
// client are handed over one by one.
func (g *guard) handOver(p []byte) (n int) {
	p = p[:min(len(p), redconBuffer-g.filled)]
	for {
		size, v := g.frame.next(g.buf[g.start:], g.limits())
		command := g.buf[g.start : g.start+size]
		switch {
		case v == incomplete && g.empty():
			g.release()
			return n
		case v == incomplete:
			return n
		case v == blank:
			g.consume(size)
		case v == array && n+size <= len(p) && !g.direct && !isBrowser(g.name(command)):
			n += copy(p[n:], command)
			g.consume(size)
			if !g.receiver.known() {
				return n // a batch of short ones would cost a pending reply each, all at once
			}
		case n > 0:
			return n // a special command goes alone, when everything before it has been executed
		case v == broken:
			return g.refuse(g.frame.fault)
		case v == inline:
			return g.handOverLine(p, size)
		case isBrowser(g.name(command)):
			return g.refuse("")
		case !g.direct && (size <= redconBuffer || len(p) < len(standIn)):
			return g.pad(p)
		default:
			g.aside = words(string(command))
			g.consume(size)
			return copy(p, standIn)
		}
	}
}

// name is the first word of an array that g.frame has just measured.
func (g *guard) name(command []byte) []byte {
	return command[g.frame.name : g.frame.name+g.frame.nameLen]
}

// handOverLine translates the inline command at the start of buf into an array;
// redcon handles neither tabs nor escapes.
func (g *guard) handOverLine(p []byte, size int) int {
	args, ok := splitLine(g.buf[g.start:g.start+size-1], g.options.MaxArgs)
	refusal := ""
	if ok && !g.receiver.known() {
		refusal = newcomerLine(args)
	}
	switch {
	case !ok:
		return g.refuse("Protocol error: unbalanced quotes in request")
	case len(args) > g.options.MaxArgs:
		return g.refuse("Protocol error: invalid multibulk length")
	case isBrowser([]byte(args[0])):
		return g.refuse("")
	case refusal != "":
		return g.refuse(refusal)
	case len(p) < len(standIn):
		return g.pad(p)
	}
	g.consume(size)
	if encoded := appendCommand(nil, args); len(encoded) <= len(p) && !g.direct {
		return copy(p, encoded)
	}
	g.aside = args
	return copy(p, standIn)
}

// pad fills redcon's buffer to its end with empty lines.
func (g *guard) pad(p []byte) int {
	n := min(len(p), redconBuffer-g.filled)
	for i := range p[:n] {
		p[i] = '\n'
	}
	return n
}

// consume drops the command at the start of buf.
func (g *guard) consume(size int) {
	g.start += size
	g.frame = framing{}
	g.timed = false
}

// Write drops redcon's writes: empty flushes. Replies leave through send.
func (g *guard) Write(p []byte) (int, error) { return len(p), nil }

// send hands replies to the kernel; n is how many bytes it accepted.
func (g *guard) send(p []byte) (n int, err error) {
	if !g.receiver.known() && g.owed.Add(int64(len(p))) > newcomerOutput {
		return 0, errUnheard
	}
	if err := g.Conn.SetWriteDeadline(time.Now().Add(g.options.WriteTimeout)); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// takeBypass returns the words of the command that bypassed redcon, or nil.
func (g *guard) takeAside() []string {
	args := g.aside
	g.aside = nil
	return args
}

// isHTTP recognizes the words of an HTTP request, which a web page can be made to send to
// this port. Nothing of it may be executed, whatever its body contains.
func isBrowser(word []byte) bool {
	return len(word) == 4 && strings.EqualFold(string(word), "POST") ||
		len(word) == 5 && strings.EqualFold(string(word), "Host:")
}

func appendCommand(dst []byte, args []string) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(len(args)), 10)
	dst = append(dst, "\r\n"...)
	for _, arg := range args {
		dst = appendBulk(dst, arg)
	}
	return dst
}

var _ io.ReadWriteCloser = (*guard)(nil)
