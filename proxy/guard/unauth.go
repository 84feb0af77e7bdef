package guard

// unauth.go serves connections until their clients are authenticated. redcon takes 8 kB of
// buffers for each connection, too much for an unauthenticated client. So a goroutine per
// connection serves it until the login: it passes the guard's commands directly to the
// session, one by one. redcon receives authenticated clients only.

import (
	"errors"
	"os"
	"time"

	"redlockd/proxy/preauth"
	"redlockd/proxy/resp"
)

// ErrUnreadReplies ends an unauthenticated client that sends much without reading.
var ErrUnreadReplies = errors.New("more replies are due than an unauthenticated client may leave unread")

// limits are small until the client is authenticated.
func (g *Conn) limits() *resp.Limits {
	if g.Events.Authenticated() {
		return &g.group.options.Limits
	}
	return &g.group.unauth
}

// receiveUnauth reads from an unauthenticated client straight into the guard's buffer. Its
// commands are handed over one by one, since a batch of short ones would cost a pending
// reply each.
func (g *Conn) receiveUnauth() error {
	g.takeTurns(1)
	g.credit = preauth.CommandsPerTurn
	g.awaitLogin()
	free, ok := g.buffer.Space()
	if !ok {
		g.refuse(preauth.MemoryFault(g.group.options.UnauthMemory))
		return nil
	}
	n, err := g.Conn.Read(free)
	g.buffer.Filled(n)
	if errors.Is(err, os.ErrDeadlineExceeded) && !g.finished.Load() && (g.evicted.Load() || g.Events.Authenticated() || g.Events.Busy()) {
		return nil // Read checks the new state
	}
	return err
}

// awaitLogin gives an unauthenticated client one deadline for all its input before the
// login.
func (g *Conn) awaitLogin() {
	if g.loginBy.IsZero() {
		g.loginBy = time.Now().Add(g.group.options.LoginTimeout)
	}
	g.replyBytes.Store(0)
	g.setReadDeadline(max(time.Nanosecond, time.Until(g.loginBy)))
}

// endLoginLimits ends the limits of the time before the login; a client that logs out later
// gets a new deadline.
func (g *Conn) endLoginLimits() {
	g.loginBy = time.Time{}
	g.buffer.EndReservation()
}

// spendCredit makes an unauthenticated client wait for another turn after CommandsPerTurn
// replies.
func (g *Conn) spendCredit() {
	if g.Events.Authenticated() {
		return
	}
	if g.credit--; g.credit < 0 {
		g.takeTurns(1)
		g.credit = preauth.CommandsPerTurn - 1
	}
}

// takeTurns waits for n turns, but not beyond the end of the connection or of its
// reservation.
func (g *Conn) takeTurns(n int) {
	wait := g.group.turns.ReserveN(time.Now(), n).Delay()
	if wait == 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.closed:
	case <-g.wake:
	}
}

// ServeUntilAuthenticated passes a client's commands to the session until it is authenticated.
func (g *Conn) ServeUntilAuthenticated() error {
	var p [len(placeholder)]byte
	g.bypassAll = true
	for !g.Events.Authenticated() {
		g.filled = 0
		if _, err := g.Read(p[:]); err != nil {
			return err
		}
		if args := g.TakeBypass(); args != nil {
			g.Events.Receive(args)
		}
	}
	g.bypassAll, g.filled = false, 0
	return nil
}

// Handshake does the handshake of TLS. It uses the socket's deadlines: a context would cost
// every unauthenticated client another goroutine.
func (g *Conn) Handshake() error {
	conn := g.Conn.(*preauth.TLSConn)
	g.takeTurns(preauth.HandshakeTurns)
	g.setReadDeadline(preauth.HandshakeTimeout)
	_ = conn.SetWriteDeadline(time.Now().Add(preauth.HandshakeTimeout)) // fails on a closed socket only, which Handshake reports
	if err := conn.Handshake(); err != nil {
		return err
	}
	g.setReadDeadline(0)
	return conn.FinishHandshake()
}
