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
func (c *Conn) refuse(text string) (n int) {
	c.refused = true
	c.release()
	c.Events.Refuse(text)
	return 0
}

// discardInput reads and drops input. So a close by the client is still noticed while
// earlier commands are in flight, and the last reply is not lost to a reset, which closing
// with unread bytes would cause. It ends at the deadline of CloseGracefully or after
// lingerBytes.
func (c *Conn) discardInput() error {
	c.release()
	if c.readErr != nil {
		return c.readErr
	}
	if c.deadlineSet {
		c.setReadDeadline(0)
	}
	space, _ := c.buffer.Space() // there is always a small one
	defer c.buffer.Release()
	rest := lingerBytes
	if !c.Events.Authenticated() {
		rest = unauthLingerBytes
	}
	for rest > 0 {
		n, err := c.Conn.Read(space)
		if err != nil {
			return err
		}
		rest -= n
	}
	return errStillSending
}

// CloseGracefully ends the sending side. The client receives the end of the stream and has
// a moment to read its replies; Read ends when the client closes its side.
func (c *Conn) CloseGracefully() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished.Store(true)
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = c.Conn.SetReadDeadline(time.Now()) // no write side to close: Read ends now and closes the connection
		return
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTimeout))
}

// evict is called when the reservation was evicted. It only wakes the reader, which owns
// the memory.
func (c *Conn) evict() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished.Load() {
		return
	}
	c.evicted.Store(true)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	_ = c.Conn.SetReadDeadline(time.Now())
}

// takeEviction is true once after evict; from then on deadlines are set again.
func (c *Conn) takeEviction() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicted.Swap(false)
}

// setReadDeadline must not replace the deadline of CloseGracefully or evict; 0 means none.
func (c *Conn) setReadDeadline(after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished.Load() || c.evicted.Load() {
		return
	}
	c.deadlineSet, c.restSet = after > 0, false
	deadline := time.Time{}
	if after > 0 {
		deadline = time.Now().Add(after)
	}
	_ = c.Conn.SetReadDeadline(deadline) // fails on a closed socket only, which Read reports
}

// Close closes the socket and notifies the session, once.
func (c *Conn) Close() error {
	var err error
	c.once.Do(func() {
		err = c.Conn.Close()
		close(c.closed)
		c.buffer.Memory.End()
		if secure, ok := c.Conn.(*preauth.TLSConn); ok {
			secure.End()
		}
		c.Events.SocketClosed()
	})
	return err
}
