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
func (c *Conn) limits() *resp.Limits {
	if c.Events.Authenticated() {
		return &c.group.options.Limits
	}
	return &c.group.unauth
}

// receiveUnauth reads from an unauthenticated client straight into the guard's buffer. Its
// commands are handed over one by one, since a batch of short ones would cost a pending
// reply each.
func (c *Conn) receiveUnauth() error {
	c.takeTurns(1)
	c.credit = preauth.CommandsPerTurn
	c.awaitLogin()
	free, ok := c.buffer.Space()
	if !ok {
		c.refuse(preauth.MemoryFault(c.group.options.UnauthMemory))
		return nil
	}
	n, err := c.Conn.Read(free)
	c.buffer.Filled(n)
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.finished.Load() && (c.evicted.Load() || c.Events.Authenticated() || c.Events.Busy()) {
		return nil // Read checks the new state
	}
	return err
}

// awaitLogin gives an unauthenticated client one deadline for all its input before the
// login.
func (c *Conn) awaitLogin() {
	if c.loginBy.IsZero() {
		c.loginBy = time.Now().Add(c.group.options.LoginTimeout)
	}
	c.replyBytes.Store(0)
	c.setReadDeadline(max(time.Nanosecond, time.Until(c.loginBy)))
}

// endLoginLimits ends the limits of the time before the login; a client that logs out later
// gets a new deadline.
func (c *Conn) endLoginLimits() {
	c.loginBy = time.Time{}
	c.buffer.EndReservation()
}

// spendCredit makes an unauthenticated client wait for another turn after CommandsPerTurn
// replies.
func (c *Conn) spendCredit() {
	if c.Events.Authenticated() {
		return
	}
	if c.credit--; c.credit < 0 {
		c.takeTurns(1)
		c.credit = preauth.CommandsPerTurn - 1
	}
}

// takeTurns waits for n turns, but not beyond the end of the connection or of its
// reservation.
func (c *Conn) takeTurns(n int) {
	wait := c.group.turns.ReserveN(time.Now(), n).Delay()
	if wait == 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closed:
	case <-c.wake:
	}
}

// ServeUntilAuthenticated passes a client's commands to the session until it is authenticated.
func (c *Conn) ServeUntilAuthenticated() error {
	var p [len(placeholder)]byte
	c.bypassAll = true
	for !c.Events.Authenticated() {
		c.filled = 0
		if _, err := c.Read(p[:]); err != nil {
			return err
		}
		if args := c.TakeBypass(); args != nil {
			c.Events.Receive(args)
		}
	}
	c.bypassAll, c.filled = false, 0
	return nil
}

// Handshake does the handshake of TLS. It uses the socket's deadlines: a context would cost
// every unauthenticated client another goroutine.
func (c *Conn) Handshake() error {
	conn := c.Conn.(*preauth.TLSConn)
	c.takeTurns(preauth.HandshakeTurns)
	c.setReadDeadline(preauth.HandshakeTimeout)
	_ = conn.SetWriteDeadline(time.Now().Add(preauth.HandshakeTimeout)) // fails on a closed socket only, which Handshake reports
	if err := conn.Handshake(); err != nil {
		return err
	}
	c.setReadDeadline(0)
	return conn.FinishHandshake()
}
