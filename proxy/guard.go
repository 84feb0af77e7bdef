package proxy

// guard.go answers: what may redcon see of what a client sends? redcon v1.6.2
// trusts lengths (27 bytes kill the process), recurses once per read, never
// shrinks its buffer and drops good commands that stand before bad ones in one
// read. So the guard stands between the socket and redcon and hands over only
// whole, bounded, valid commands, always as arrays. Three facts about redcon
// carry the design:
//
//  1. It reads only when it has handled everything it was given. Hence whatever
//     one Read returns has been executed before the next Read begins, which
//     gives a place for the error after the last good command, and makes it
//     possible to pass a long command around redcon: the guard keeps its words
//     in `aside` and hands redcon a stand-in of eleven bytes, and the very next
//     call of the handler is the stand-in's.
//  2. Its buffer has 4 096 bytes and starts over only when a read ends exactly
//     at its end with nothing left over; otherwise it doubles, for good. The
//     guard follows the fill level and, where a command does not fit any more,
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
	lowRoom      = 256  // with less room left in redcon's buffer start it over rather than read a sliver
	standIn      = "*1\r\n$1\r\n-\r\n"
)

// receiver is what the guard tells about the connection; the session is one.
type receiver interface {
	refuse(text string) // everything before has been taken; say this and close. "" closes without a word
	busy() bool         // something is in flight
	gone()              // the socket is closed
	known() bool        // the client has said who it is, or need not
	keeps(bytes int)    // so many of a command that has not come whole are in memory
}

// guard is the net.Conn that redcon reads from. Read belongs to one goroutine;
// send, finish and Close may be called from any.
type guard struct {
	net.Conn
	options  *Options
	stock    *stock
	receiver receiver

	page    *[pageSize]byte // what buf started in, to be given back
	nook    *[nookSize]byte // or this
	hall    *[hallSize]byte // or this
	buf     []byte
	start   int      // buf[start:] is not handed over yet and starts with a command
	frame   framing  // progress in that command
	filled  int      // how far redcon's buffer is used
	aside   []string // words of the command whose stand-in was handed over last
	stop    error    // how the socket ended; told once buf holds no whole command
	direct  bool     // redcon is not there yet: every command goes aside
	refused bool     // a bad request was met; nothing is handed over any more
	timed   bool     // the command at the start of buf has its deadline
	limited bool     // the socket has a read deadline

	// Of an unknown client.
	login   time.Time    // until when it must have said who it is
	owed    atomic.Int64 // bytes said to it since it was last listened to
	share   share        // of what is beyond the nook
	charged bool         // buf is in the share
	kept    int          // what the receiver was told of buf
	credit  int          // commands that may be handed over in this turn

	mu       sync.Mutex
	finished bool // answers are complete, the client may read them for a moment
	evicted  bool // the share was taken away
	once     sync.Once
	left     chan struct{} // closed with the socket
	roused   chan struct{} // 1: evict's one word, for a reader that waits for its turn
}

func newGuard(conn net.Conn, options *Options, stock *stock, receiver receiver) *guard {
	g := &guard{Conn: conn, options: options, stock: stock, receiver: receiver, left: make(chan struct{}), roused: make(chan struct{}, 1)}
	g.share = share{budget: &stock.budget, evict: g.evict}
	return g
}

// Read gives redcon whole commands, or the reason why there are no more.
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

// given follows redcon's buffer, which starts over when it is exactly full.
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
	if g.empty() { // may be handed over as it is, so it must fit
		p = p[:min(len(p), redconBuffer-g.filled)]
	}
	n, err := g.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && g.empty() && n == 0 && !g.isFinished() && g.receiver.busy() {
		err = nil // who waits for an answer is not idle
	}
	return n, err
}

// allWhole is the short way, and the usual one: p is nothing but whole arrays.
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

// handOver moves as many whole commands as fit from buf to p. 0 means that more
// bytes are needed or that the request was refused. What an unknown client says
// is handed over one by one.
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
				return n // a batch of short ones would cost a slot each, all at once
			}
		case n > 0:
			return n // what is special goes alone, when everything before it has been executed
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
// redcon knows neither tabs nor escapes.
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

// Write drops what redcon writes: empty flushes. Replies leave through send.
func (g *guard) Write(p []byte) (int, error) { return len(p), nil }

// send hands replies to the kernel; n says how many bytes it took.
func (g *guard) send(p []byte) (n int, err error) {
	if !g.receiver.known() && g.owed.Add(int64(len(p))) > newcomerOutput {
		return 0, errUnheard
	}
	if err := g.Conn.SetWriteDeadline(time.Now().Add(g.options.WriteTimeout)); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// takeAside returns the words of the command that went around redcon, or nil.
func (g *guard) takeAside() []string {
	args := g.aside
	g.aside = nil
	return args
}

// isBrowser knows the words by which a web page, made to talk to this port, gives
// itself away: nothing it says may be executed, whatever its body holds.
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
