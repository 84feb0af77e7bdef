package guard

// guard.go contains the connection of a client, and passes its commands to the session:
// complete, bounded and valid ones, always as arrays. redcon v1.6.2 trusts lengths (27 bytes
// kill the process), recurses once per read and drops good commands before bad ones in one
// read. So redcon takes apart what has passed the guard, and reads no socket.
//
// An idle connection holds a small buffer. A connection whose reads fill it gets a medium
// one, and a larger one only while a command is incomplete.

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/proxy/preauth"
	"redlockd/proxy/resp"
)

// Events receives what happens on a connection; the session implements it.
type Events interface {
	// Receive takes a complete array, which is valid during the call. further is how many
	// more like it have arrived, about. EndBatch follows the last of them.
	Receive(command []byte, further int)
	EndBatch()
	Refuse(text string)    // all earlier commands were received; send text and close. "" closes without a reply
	Busy() bool            // a command is in flight
	SocketClosed()         // the socket is closed
	Authenticated() bool   // the client is authenticated, or need not be
	SetBuffered(bytes int) // size of an incomplete command in memory
}

// Conn is the connection of a client. Serve belongs to one goroutine; Send, CloseGracefully
// and Close may be called from any.
type Conn struct {
	net.Conn
	Events Events
	group  *Group

	buffer      preauth.Buffer // starts with a command
	frame       resp.Frame     // progress in that command
	readErr     error          // how the socket ended; it counts once the buffer holds no complete command
	reported    int            // bytes last reported by SetBuffered
	full        bool           // the last read filled the buffer: more has arrived
	refused     bool           // a bad request was received; nothing is handed over anymore
	hasDeadline bool           // the command at the start of the buffer has its deadline
	deadlineSet bool           // the socket has a read deadline

	// Of an unauthenticated client.
	loginBy    time.Time    // deadline of its login
	replyBytes atomic.Int64 // bytes of replies since the last read
	credit     int          // commands that may be handed over in this turn

	mu       sync.Mutex  // of the two flags together with the read deadline
	finished atomic.Bool // replies are complete, the client may read them for a moment
	evicted  atomic.Bool // the reservation was evicted
	once     sync.Once
	closed   chan struct{} // closed with the socket
	wake     chan struct{} // capacity 1: evict wakes a reader that waits for its turn
}

// Serve passes commands to the session until the connection ends, and returns why it ended.
func (g *Conn) Serve() error {
	for {
		switch {
		case g.refused || g.finished.Load():
			return g.discardInput()
		case g.takeEviction() && !g.Events.Authenticated():
			g.refuse(preauth.MemoryFault(g.group.options.UnauthMemory))
		case g.handOver() || g.refused:
		case g.readErr != nil:
			g.release()
			return g.readErr
		default:
			g.readErr = g.receive()
			g.reportBuffered()
		}
	}
}

// receive reads from the socket. A partial command has one deadline for its rest, counted
// from the first wait for it: time in which the server itself did not read does not count
// against the client.
func (g *Conn) receive() error {
	unauth, empty := !g.Events.Authenticated(), g.buffer.Empty()
	switch {
	case unauth:
		g.takeTurns(1)
		g.credit = preauth.CommandsPerTurn
		g.awaitLogin()
	case !empty && !g.hasDeadline:
		g.hasDeadline = true
		g.setReadDeadline(g.group.options.CommandTimeout)
	case empty && g.group.options.IdleTimeout > 0:
		g.setReadDeadline(g.group.options.IdleTimeout)
	case empty && g.deadlineSet:
		g.setReadDeadline(0)
	}
	if !unauth {
		g.endLoginLimits()
	}
	if g.full && !unauth {
		g.buffer.Widen()
	}
	free, ok := g.buffer.Space(unauth)
	if !ok {
		g.refuse(preauth.MemoryFault(g.group.options.UnauthMemory))
		return nil
	}
	n, err := g.Conn.Read(free)
	g.buffer.Filled(n)
	g.full = n == len(free)
	if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 && !g.finished.Load() && g.mayContinue(unauth, empty) {
		return nil // Serve checks the new state
	}
	return err
}

// mayContinue reports whether a client may go on after the deadline of a read: it waits for a
// reply, and so is not idle, or it has been authenticated or evicted meanwhile.
func (g *Conn) mayContinue(unauth, empty bool) bool {
	if unauth {
		return g.evicted.Load() || g.Events.Authenticated() || g.Events.Busy()
	}
	return empty && g.Events.Busy()
}

// handOver passes the complete commands at the start of the buffer to the session; it
// returns false if there was none, or if the request was rejected. Commands of an
// unauthenticated client are passed one by one: a batch of short ones would cost a pending
// reply each, all at once.
func (g *Conn) handOver() (handed bool) {
	for {
		b := g.buffer.Bytes()
		size, kind := g.frame.Next(b, g.limits())
		switch {
		case kind == resp.Incomplete:
			if g.buffer.Empty() {
				g.release() // to the pool: most reads need a small one
			}
		case kind == resp.Blank:
			g.consume(size)
			continue
		case kind == resp.Broken:
			g.refuse(g.frame.Fault())
		case kind == resp.Inline:
			if g.passLine(b[:size-1], len(b)/size) {
				handed = true
				g.consume(size)
				if g.Events.Authenticated() {
					continue
				}
			}
		case isHTTP(g.frame.Name(b)):
			g.refuse("")
		default:
			g.pass(b[:size], len(b)/size)
			handed = true
			g.consume(size)
			if g.Events.Authenticated() {
				continue
			}
		}
		if handed {
			g.Events.EndBatch()
		}
		return handed
	}
}

// pass gives an array to the session.
func (g *Conn) pass(command []byte, further int) {
	g.spendCredit()
	g.Events.Receive(command, further)
}

// passLine translates an inline command into an array; it returns false if it is rejected.
func (g *Conn) passLine(line []byte, further int) bool {
	limits := g.limits()
	args, ok := resp.SplitLine(line, limits.MaxArgs)
	switch {
	case !ok:
		g.refuse("Protocol error: unbalanced quotes in request")
	case len(args) > limits.MaxArgs:
		g.refuse("Protocol error: invalid multibulk length")
	case isHTTP([]byte(args[0])):
		g.refuse("")
	case limits.UnauthFault(args) != "":
		g.refuse(limits.UnauthFault(args))
	default:
		g.pass(resp.AppendCommand(nil, args...), further)
		return true
	}
	return false
}

// reportBuffered reports the bytes of a command that outgrew its pooled buffer.
func (g *Conn) reportBuffered() {
	if _, large := g.buffer.Held(); g.reported != large {
		g.reported = large
		g.Events.SetBuffered(large)
	}
}

// release returns the memory.
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

// isHTTP recognizes the words of an HTTP request, which a web page can be made to send to
// this port. Nothing of it may be executed, whatever its body contains.
func isHTTP(word []byte) bool {
	return len(word) == 4 && strings.EqualFold(string(word), "POST") ||
		len(word) == 5 && strings.EqualFold(string(word), "Host:")
}
