package guard

// unauth.go has the limits of clients until they are authenticated.

import (
	"errors"
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
