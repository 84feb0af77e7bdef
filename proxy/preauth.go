package proxy

// preauth.go serves connections until their clients are authenticated. Anybody who can
// reach the port is such a client, so it gets little memory and little time. The limits of
// words and bytes are those of Redis 7 and Valkey, from the fixes of CVE-2021-32675 and
// CVE-2025-21605. All unauthenticated clients share one memory limit, see memlimit.go, and
// a fixed number of turns per second.
//
// redcon takes 8 kB of buffers for each connection, too much for an unauthenticated
// client. So a goroutine per connection serves it until the login: it passes the guard's
// commands directly to the session, one by one. redcon receives authenticated clients only.

import (
	"errors"
	"fmt"
	"os"
	"time"

	"redlockd/proxy/resp"
)

const (
	maxUnauthArgs    = 10       // words of a command
	maxUnauthBulk    = 16 << 10 // bytes of a word
	maxUnauthCommand = 64 << 10 // bytes of a command or line, and so of one in memory
	maxUnauthOutput  = 1 << 10  // bytes of replies to the commands of one read
	loginTimeout     = 10 * time.Second

	// A turn is one read and the replies to its first commands. At this rate a thousand
	// hostile clients took a quarter to two thirds of a core, their connects and
	// disconnects included (measured). Ten thousand honest ones that connect at once are
	// authenticated in three seconds.
	turnsPerSecond  = 4000
	turnBurst       = 1000
	commandsPerTurn = 4
	handshakeTurns  = 4 // a handshake: its signature and key exchange
)

var (
	// errUnreadReplies ends an unauthenticated client that sends much without reading.
	errUnreadReplies = errors.New("more replies are due than an unauthenticated client may leave unread")
	// errUnauthMemory ends one whose memory was evicted.
	errUnauthMemory = errors.New("unauthenticated clients use too much memory together")
)

// unauthLimits derives the limits that apply before the login.
func unauthLimits(l resp.Limits) resp.Limits {
	l.MaxCommand = min(l.MaxCommand, maxUnauthCommand)
	l.MaxLine = min(l.MaxLine, maxUnauthCommand)
	l.UnauthArgs, l.UnauthBulk = maxUnauthArgs, maxUnauthBulk
	return l
}

// memoryRefusal is the error for an unauthenticated client whose memory was evicted.
func (s *bufferPools) memoryRefusal() string {
	return fmt.Sprintf("unauthenticated clients hold more than %d bytes of unfinished commands together, and yours was the oldest; "+
		"authenticate with a command of at most %d bytes, or raise unauthenticated-memory", s.limit.max, smallBufSize)
}

// limits are small until the client is authenticated.
func (g *guardConn) limits() *resp.Limits {
	if g.events.authenticated() {
		return &g.options.limits
	}
	return &g.options.unauthLimits
}

// receiveUnauth reads from an unauthenticated client straight into the guard's buffer. Its
// commands are handed over one by one, since a batch of short ones would cost a pending
// reply each.
func (g *guardConn) receiveUnauth() error {
	g.wait(g.pools.turns.reserve(1))
	g.credit = commandsPerTurn
	g.awaitLogin()
	free, ok := g.readSpace()
	if !ok {
		g.refuse(g.pools.memoryRefusal())
		return nil
	}
	n, err := g.Conn.Read(free)
	g.buf = g.buf[:len(g.buf)+n]
	if errors.Is(err, os.ErrDeadlineExceeded) && !g.isFinished() && (g.isEvicted() || g.events.authenticated() || g.events.busy()) {
		return nil // Read checks the new state
	}
	return err
}

// awaitLogin gives an unauthenticated client one deadline for all its input before the
// login.
func (g *guardConn) awaitLogin() {
	if g.loginBy.IsZero() {
		g.loginBy = time.Now().Add(g.options.LoginTimeout)
	}
	g.replyBytes.Store(0)
	g.setReadDeadline(max(time.Nanosecond, time.Until(g.loginBy)))
}

// endLoginLimits ends the limits of the time before the login; a client that logs out later
// gets a new deadline.
func (g *guardConn) endLoginLimits() {
	g.loginBy = time.Time{}
	g.endReservation()
}

// spendCredit makes an unauthenticated client wait for another turn after commandsPerTurn
// replies.
func (g *guardConn) spendCredit() {
	if g.events.authenticated() {
		return
	}
	if g.credit--; g.credit < 0 {
		g.wait(g.pools.turns.reserve(1))
		g.credit = commandsPerTurn - 1
	}
}

// wait sleeps, but not beyond the end of the connection or of its reservation.
func (g *guardConn) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.closed:
	case <-g.wake:
	}
}

// acceptLoop accepts for the listener; it returns when the server has drained.
// There are never more of the goroutines it starts than clients may be connected.
func (l *clientListener) acceptLoop() {
	for {
		g, err := l.acceptNext()
		if err != nil {
			return
		}
		switch {
		case l.secure:
			l.server.preauth.Go(func() { l.handshakeFirst(g) })
		case g.events.authenticated():
			l.handOver(g)
		default:
			l.server.preauth.Go(func() { l.authenticate(g) })
		}
	}
}

// handshakeFirst starts another goroutine after the handshake: the stack that the handshake
// needed, 8 kB, would stay with this one.
func (l *clientListener) handshakeFirst(g *guardConn) {
	if l.handshake(g) {
		l.server.preauth.Go(func() { l.authenticate(g) })
	}
}

// authenticate hands a connection to redcon once its client is authenticated, or closes it.
func (l *clientListener) authenticate(g *guardConn) {
	if err := g.serveUntilAuthenticated(g.events.(*session)); err != nil {
		g.Close()
		return
	}
	l.handOver(g)
}

// handOver gives a connection to redcon.
func (l *clientListener) handOver(g *guardConn) {
	select {
	case l.ready <- g:
	case <-l.server.drained:
		g.Close()
	}
}

// serveUntilAuthenticated passes a client's commands to the session until it is authenticated.
func (g *guardConn) serveUntilAuthenticated(s *session) error {
	var p [len(placeholder)]byte
	g.bypassAll = true
	for !g.events.authenticated() {
		g.filled = 0
		if _, err := g.Read(p[:]); err != nil {
			return err
		}
		if args := g.takeBypass(); args != nil {
			s.receiveDirect(args)
		}
	}
	g.bypassAll, g.filled = false, 0
	return nil
}

// receiveDirect takes one command, as receive takes the commands of redcon.
func (s *session) receiveDirect(args []string) {
	defer s.recoverPanic("reader", func() { s.guard.Close() })
	s.server.counters.commands.Add(1)
	input := 0
	for _, arg := range args {
		input += len(arg)
	}
	s.append(s.newPending(max(input, longInput+1), 0).take(args))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.writerRuns {
		s.writerLoopLocked()
	}
}
