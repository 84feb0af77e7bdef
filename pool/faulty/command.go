// Commands of a test to a server directly, around everything that is being tested: one
// connection a command, so that nothing needs care when the server is
// killed, and RESP2, so that a reply is one of five things.

package faulty

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

const commandTimeout = maxWait // for a whole command; only a stopped server needs it

// ReplyError is an error reply of a server, without the leading '-'.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// roundTrip sends commands on a connection of its own and returns the last one's
// reply: string, int64, nil, []any of these, or a ReplyError as err. An error
// reply to an earlier command ends it.
func roundTrip(addr string, commands ...[]any) (reply any, err error) {
	conn, err := net.DialTimeout("tcp", addr, commandTimeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(commandTimeout))
	in := bufio.NewReader(conn)
	for _, words := range commands {
		if _, err := conn.Write(appendCommand(nil, words)); err != nil {
			return nil, err
		}
		if reply, err = readReply(in); err != nil {
			return nil, err
		}
		if refused, ok := reply.(ReplyError); ok {
			return nil, refused
		}
	}
	return reply, nil
}

func appendCommand(b []byte, words []any) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		if raw, ok := w.([]byte); ok {
			w = string(raw)
		}
		s := fmt.Sprint(w)
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(s), s)
	}
	return b
}

// readReply reads one RESP2 reply; an error reply is a ReplyError, not an err.
func readReply(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("reply %q is not RESP2", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return text, nil
	case '-':
		return ReplyError(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reply %q is not RESP2: %w", line, err)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		body := make([]byte, n+2)
		_, err := io.ReadFull(in, body)
		return string(body[:n]), err
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = readReply(in); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("reply %q is not RESP2", line)
}
