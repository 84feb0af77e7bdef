package guard

// close.go ends connections: the client can still read its last reply, and the connection
// stays open no longer than that takes.

import (
	"errors"
	"time"

	"redlockd/proxy/preauth"
)

const (
	lingerTimeout = time.Second // for a client to read the last reply before the socket is torn down
	// lingerBytes is how much input of a rejected client is read and discarded: a
	// pipeline that was under way when it was rejected.
	lingerBytes = 256 << 10
	// unauthLingerBytes is the same before the login, where honest clients send little.
	unauthLingerBytes = 16 << 10
)

// errStillSending ends a connection whose client does not stop sending.
var errStillSending = errors.New("the client goes on sending although the connection is being closed")

// refuse ends the hand-over; the session sends text after all earlier replies.
func (g *Conn) refuse(text string) (n int) {
	g.refused = true
	g.release()
	g.Events.Refuse(text)
	return 0
}

// discardInput reads and drops input. So a close by the client is still noticed while
// earlier commands are in flight, and the last reply is not lost to a reset, which closing
// with unread bytes would cause. It ends at the deadline of CloseGracefully or after
// lingerBytes.
func (g *Conn) discardInput() error {
	g.release()
	if g.readErr != nil {
		return g.readErr
	}
	if g.deadlineSet {
		g.setReadDeadline(0)
	}
	space, _ := g.buffer.Space() // there is always a small one
	defer g.buffer.Release()
	rest := lingerBytes
	if !g.Events.Authenticated() {
		rest = unauthLingerBytes
	}
	for rest > 0 {
		n, err := g.Conn.Read(space)
		if err != nil {
			return err
		}
		rest -= n
	}
	return errStillSending
}

// CloseGracefully ends the sending side. The client receives the end of the stream and has
// a moment to read its replies; Read ends when the client closes its side.
func (g *Conn) CloseGracefully() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.finished.Store(true)
	half, ok := g.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = g.Conn.SetReadDeadline(time.Now()) // no write side to close: Read ends now and closes the connection
		return
	}
	_ = g.Conn.SetReadDeadline(time.Now().Add(lingerTimeout))
}

// evict is called when the reservation was evicted. It only wakes the reader, which owns
// the memory.
func (g *Conn) evict() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished.Load() {
		return
	}
	g.evicted.Store(true)
	select {
	case g.wake <- struct{}{}:
	default:
	}
	_ = g.Conn.SetReadDeadline(time.Now())
}

// takeEviction is true once after evict; from then on deadlines are set again.
func (g *Conn) takeEviction() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.evicted.Swap(false)
}

// setReadDeadline must not replace the deadline of CloseGracefully or evict; 0 means none.
func (g *Conn) setReadDeadline(after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished.Load() || g.evicted.Load() {
		return
	}
	g.deadlineSet, g.restSet = after > 0, false
	deadline := time.Time{}
	if after > 0 {
		deadline = time.Now().Add(after)
	}
	_ = g.Conn.SetReadDeadline(deadline) // fails on a closed socket only, which Read reports
}

// Close closes the socket and notifies the session, once.
func (g *Conn) Close() error {
	var err error
	g.once.Do(func() {
		err = g.Conn.Close()
		close(g.closed)
		g.buffer.Memory.End()
		if secure, ok := g.Conn.(*preauth.TLSConn); ok {
			secure.End()
		}
		g.Events.SocketClosed()
	})
	return err
}
