package chaos

// talk_test.go: a connection in RESP3, for clients that wait long or receive pushes. It
// records an instant at which the answer was not there yet: what is valid from the
// receipt of the reply is valid from then at least, however late it is read.

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"redlockd/proxy/resp"
)

// slice is how long one read of the socket waits.
const slice = 25 * time.Millisecond

// talk is used by one goroutine; after an error that is not a resp.Error it is
// of no more use.
type talk struct {
	conn  net.Conn
	in    *resp.Reader
	now   func() time.Duration
	ends  time.Duration     // of the timeout
	sent  time.Duration     // the last command
	empty time.Duration     // nothing was there to be read at this instant
	open  time.Duration     // the connection had not ended yet at this instant
	lost  map[string]string // token of a lock that was lost -> reason
}

func dialTalk(address string, now func() time.Duration) (*talk, error) {
	conn, err := net.DialTimeout("tcp", address, callTimeout)
	if err != nil {
		return nil, err
	}
	t := &talk{conn: conn, now: now, open: now(), lost: map[string]string{}}
	t.in = resp.NewReader(t)
	if _, err := t.do(callTimeout, "HELLO", 3); err != nil {
		conn.Close()
		return nil, err
	}
	return t, nil
}

// Read polls until there is something to read.
func (t *talk) Read(p []byte) (int, error) {
	for {
		began := t.now()
		_ = t.conn.SetReadDeadline(time.Now().Add(slice))
		n, err := t.conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		t.empty, t.open = began, began
		if t.now() > t.ends {
			return 0, err
		}
	}
}

func (t *talk) send(words ...any) error {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = fmt.Sprint(w)
	}
	t.sent = t.now()
	t.empty = t.sent
	_ = t.conn.SetWriteDeadline(time.Now().Add(callTimeout))
	_, err := t.conn.Write(resp.AppendCommand(nil, texts...))
	return err
}

// answer is the next reply that is no push.
func (t *talk) answer(timeout time.Duration) (any, error) {
	t.ends = t.now() + timeout
	for {
		reply, err := t.in.ReadValue()
		switch {
		case err != nil:
			return nil, err
		case reply.Kind == '>':
			t.onPush(reply)
		case reply.Kind == '-':
			return nil, resp.Error(reply.Text)
		default:
			return reply.Any(), nil
		}
	}
}

func (t *talk) do(timeout time.Duration, words ...any) (any, error) {
	if err := t.send(words...); err != nil {
		return nil, err
	}
	return t.answer(timeout)
}

// awaitLoss waits for the push that a lock was lost; "" if there was none in time.
func (t *talk) awaitLoss(token string, timeout time.Duration) (reason string, err error) {
	until := t.now() + timeout
	for t.lost[token] == "" {
		t.ends = until
		if _, err := t.in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			return "", nil
		}
		t.ends = t.now() + callTimeout
		reply, err := t.in.ReadValue()
		if err != nil {
			return "", err
		}
		t.onPush(reply)
	}
	return t.lost[token], nil
}

func (t *talk) onPush(push resp.Value) {
	if words := push.Words(); push.Kind == '>' && len(words) == 4 && words[0] == "dlock-lost" {
		t.lost[words[2]] = words[3]
	}
}
