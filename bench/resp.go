// A small RESP client, for places where a client library would be a part of the
// measurement. Queued commands leave in one write, and replies are read one by one.

package main

import (
	"bufio"
	"context"
	"net"
	"time"

	"redlockd/proxy/resp"
)

// ioTimeout bounds every write and read: an operation that takes longer hangs.
const ioTimeout = 10 * time.Second

// respConn is one connection, used by one goroutine.
type respConn struct {
	conn net.Conn
	in   *resp.Reader
	out  []byte
}

func dialRESP(ctx context.Context, address string) (*respConn, error) {
	dialer := net.Dialer{Timeout: ioTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	in := resp.NewReader(bufio.NewReaderSize(conn, 16<<10))
	in.MaxBytes, in.MaxItems = 1<<30, 1<<24 // of a listing
	return &respConn{conn: conn, in: in}, nil
}

func (c *respConn) close() { c.conn.Close() }

// queue adds a command to the buffer that flush sends.
func (c *respConn) queue(words ...string) { c.out = resp.AppendCommand(c.out, words...) }

func (c *respConn) flush() error {
	if err := c.conn.SetDeadline(time.Now().Add(ioTimeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// do sends one command and returns its reply. An error reply is an error.
func (c *respConn) do(words ...string) (resp.Value, error) {
	c.queue(words...)
	if err := c.flush(); err != nil {
		return resp.Value{}, err
	}
	r, err := c.read()
	if err != nil {
		return resp.Value{}, err
	}
	return r, r.Err()
}

// read returns the next reply. err is an error of the connection only.
func (c *respConn) read() (resp.Value, error) { return c.in.ReadValue() }
