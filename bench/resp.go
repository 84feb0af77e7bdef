// A small RESP client, for places where a client library would be a part of the
// measurement. Queued commands leave in one write, and replies are read one by one.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// ioTimeout bounds every write and read: an operation that takes longer hangs.
const ioTimeout = 10 * time.Second

// reply is one RESP2 reply.
type reply struct {
	kind   byte // '+', '-', ':', '$', '*', or '_' for nil
	text   string
	number int64
	items  []reply
}

// err returns the error of an error reply, else nil.
func (r *reply) err() error {
	if r.kind == '-' {
		return errors.New(r.text)
	}
	return nil
}

// respConn is one connection, used by one goroutine.
type respConn struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

func dialRESP(ctx context.Context, address string) (*respConn, error) {
	dialer := net.Dialer{Timeout: ioTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &respConn{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}, nil
}

func (c *respConn) close() { c.conn.Close() }

// queue adds a command to the buffer that flush sends.
func (c *respConn) queue(words ...string) {
	c.out = append(c.out, '*')
	c.out = strconv.AppendInt(c.out, int64(len(words)), 10)
	for _, w := range words {
		c.out = append(c.out, "\r\n$"...)
		c.out = strconv.AppendInt(c.out, int64(len(w)), 10)
		c.out = append(c.out, "\r\n"...)
		c.out = append(c.out, w...)
	}
	c.out = append(c.out, "\r\n"...)
}

func (c *respConn) flush() error {
	if err := c.conn.SetDeadline(time.Now().Add(ioTimeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// do sends one command and returns its reply. An error reply is an error.
func (c *respConn) do(words ...string) (reply, error) {
	c.queue(words...)
	if err := c.flush(); err != nil {
		return reply{}, err
	}
	r, err := c.read()
	if err != nil {
		return reply{}, err
	}
	return r, r.err()
}

// read returns the next reply. err is an error of the connection only.
func (c *respConn) read() (reply, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return reply{}, err
	}
	if len(line) < 3 {
		return reply{}, fmt.Errorf("reply %q is not RESP2", line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	if kind == '+' || kind == '-' {
		return reply{kind: kind, text: string(rest)}, nil
	}
	n, err := strconv.ParseInt(string(rest), 10, 64)
	switch {
	case err != nil:
		return reply{}, fmt.Errorf("reply %q is not RESP2", line)
	case kind == ':':
		return reply{kind: kind, number: n}, nil
	case n < 0:
		return reply{kind: '_'}, nil
	case kind == '$':
		return c.readBulk(n)
	case kind == '*':
		return c.readArray(n)
	}
	return reply{}, fmt.Errorf("reply %q is not RESP2", line)
}

func (c *respConn) readBulk(n int64) (reply, error) {
	if n+2 <= int64(c.in.Size()) {
		body, err := c.in.Peek(int(n + 2))
		if err != nil {
			return reply{}, err
		}
		r := reply{kind: '$', text: string(body[:n])}
		_, err = c.in.Discard(len(body))
		return r, err
	}
	body := make([]byte, n+2)
	_, err := io.ReadFull(c.in, body)
	return reply{kind: '$', text: string(body[:n])}, err
}

func (c *respConn) readArray(n int64) (reply, error) {
	r := reply{kind: '*', items: make([]reply, n)}
	for i := range r.items {
		var err error
		if r.items[i], err = c.read(); err != nil {
			return r, err
		}
	}
	return r, nil
}
