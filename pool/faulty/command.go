// Commands of a test to a server directly, around everything that is being tested: one
// connection a command, so that nothing needs care when the server is
// killed, and RESP2, so that a reply is one of five things.

package faulty

import (
	"fmt"
	"net"
	"time"

	"redlockd/proxy/resp"
)

const commandTimeout = maxWait // for a whole command; only a stopped server needs it

// ReplyError is an error reply of a server, without the leading '-'.
type ReplyError = resp.Error

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
	in := newReader(conn)
	for _, words := range commands {
		if _, err := conn.Write(appendCommand(nil, words)); err != nil {
			return nil, err
		}
		if reply, err = readReply(in); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

func appendCommand(b []byte, words []any) []byte {
	texts := make([]string, len(words))
	for i, w := range words {
		if raw, ok := w.([]byte); ok {
			w = string(raw)
		}
		texts[i] = fmt.Sprint(w)
	}
	return resp.AppendCommand(b, texts...)
}

// newReader reads what a test may make a server answer: much.
func newReader(conn net.Conn) *resp.Reader {
	in := resp.NewReader(conn)
	in.RESP2, in.MaxBytes, in.MaxItems = true, 1<<30, 1<<24
	return in
}

// readReply reads one reply; an error reply is a ReplyError.
func readReply(in *resp.Reader) (any, error) {
	reply, err := in.ReadValue()
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return nil, err
	}
	return reply.Any(), nil
}
