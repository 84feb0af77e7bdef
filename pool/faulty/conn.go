// Conn is one connection of a test to a server, for one command at a time, with a timeout
// after which the answer is taken as lost: a client that waits for ever finds nothing out.

package faulty

import (
	"net"
	"time"

	"redlockd/proxy/resp"
)

// Conn is one connection to a server that speaks RESP2, for one goroutine at a
// time. After an error that is not a ReplyError it is of no more use.
type Conn struct {
	conn    net.Conn
	in      *resp.Reader
	timeout time.Duration
}

// Dial connects to host:port. timeout bounds the dialling and each command.
func Dial(addr string, timeout time.Duration) (*Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, in: newReader(conn), timeout: timeout}, nil
}

// Do sends one command and returns its reply, as Server.Do does.
func (c *Conn) Do(args ...any) (any, error) {
	if err := c.Send(args...); err != nil {
		return nil, err
	}
	return readReply(c.in)
}

// Send sends one command and leaves the reply unread, as a client that disconnects
// does: close the connection next.
func (c *Conn) Send(args ...any) error {
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(appendCommand(nil, args))
	return err
}

// Close ends the connection.
func (c *Conn) Close() { c.conn.Close() }
