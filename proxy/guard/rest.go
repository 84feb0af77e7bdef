package guard

// rest.go lets a connection rest while its client sends nothing. redcon keeps 8 kB of buffers
// for a connection, and a stack that grew to 8 kB with the first lock. A connection that rests
// has none of them: its redcon has ended, and a goroutine with a small stack waits for the
// first byte of the next command. It takes 8 kB in place of 23 (4,000 clients that greet with
// HELLO and CLIENT SETINFO, lock once and stay).
//
// When a rest begins, redcon has handled all that it was given, and the guard holds nothing.
// So only the socket may have bytes, and they stay there until the next redcon reads them.
// What the session has in flight does not matter: replies do not pass redcon.

import (
	"errors"
	"io"
	"os"
)

// setRestDeadline sets the deadline after which an idle connection rests. It stays while
// commands arrive, because to set it for each would cost more than to look at it again when
// it is over. So a connection rests after one to two such times.
func (c *Conn) setRestDeadline() {
	c.setReadDeadline(c.group.options.RestAfter)
	c.restSet, c.used = true, false
}

// restDue is called at that deadline. It ends redcon, as a closed socket does, if nothing was
// received since it was set.
func (c *Conn) restDue() error {
	c.restSet = false
	if c.used {
		return nil
	}
	c.resting.Store(true)
	return io.EOF
}

// TakeRest reports, once, that the connection is to rest: redcon has ended, and the caller
// is to call Rest instead of Close.
func (c *Conn) TakeRest() bool { return c.resting.Swap(false) }

// Rest waits until the client sends something, which is for a new redcon, or until the
// connection ends. What else ends the wait is for Read to handle.
func (c *Conn) Rest() error {
	c.filled = 0
	c.setReadDeadline(0)
	var first [1]byte
	n, err := c.Conn.Read(first[:])
	c.buffer.Add(first[:n])
	if n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
