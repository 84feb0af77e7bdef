package chaos

// talk_test.go: a connection in RESP3, for clients that wait long or listen. It
// knows an instant at which the answer was not there yet: what is valid from the
// receipt of the reply is valid from then at least, however late we look.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/faulty"
)

// slice is how long one look at the socket lasts.
const slice = 25 * time.Millisecond

// talk is used by one goroutine; after an error that is not a ReplyError it is
// of no more use.
type talk struct {
	conn  net.Conn
	in    *bufio.Reader
	now   func() time.Duration
	ends  time.Duration     // of our patience
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
	t.in = bufio.NewReader(t)
	if _, err := t.do(callTimeout, "HELLO", 3); err != nil {
		conn.Close()
		return nil, err
	}
	return t, nil
}

// Read looks again and again until there is something.
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
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		s := fmt.Sprint(w)
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(s), s)
	}
	t.empty = t.now()
	_ = t.conn.SetWriteDeadline(time.Now().Add(callTimeout))
	_, err := t.conn.Write(b)
	return err
}

// answer is the next reply that is no push.
func (t *talk) answer(patience time.Duration) (any, error) {
	t.ends = t.now() + patience
	for {
		reply, err := t.reply()
		if err != nil {
			return nil, err
		}
		switch r := reply.(type) {
		case pushed:
			t.onPush(r)
		case faulty.ReplyError:
			return nil, r
		default:
			return reply, nil
		}
	}
}

func (t *talk) do(patience time.Duration, words ...any) (any, error) {
	if err := t.send(words...); err != nil {
		return nil, err
	}
	return t.answer(patience)
}

// hears waits for the news that a lock was lost; "" if there was none in time.
func (t *talk) awaitLoss(token string, patience time.Duration) (reason string, err error) {
	until := t.now() + patience
	for t.lost[token] == "" {
		t.ends = until
		if _, err := t.in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			return "", nil
		}
		t.ends = t.now() + callTimeout
		reply, err := t.reply()
		if err != nil {
			return "", err
		}
		if news, ok := reply.(pushed); ok {
			t.onPush(news)
		}
	}
	return t.lost[token], nil
}

func (t *talk) onPush(p pushed) {
	if len(p) == 4 && p[0] == "dlock-lost" {
		t.lost[fmt.Sprint(p[2])] = fmt.Sprint(p[3])
	}
}

type pushed []any

func (t *talk) reply() (any, error) {
	line, err := t.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty line is no reply")
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+':
		return text, nil
	case '-':
		return faulty.ReplyError(text), nil
	case '_':
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reply %q: %w", line, err)
	}
	switch kind {
	case ':':
		return n, nil
	case '$':
		body := make([]byte, n+2)
		_, err := io.ReadFull(t.in, body)
		return string(body[:n]), err
	case '%':
		return t.list(2 * n)
	case '*', '~':
		return t.list(n)
	case '>':
		list, err := t.list(n)
		return pushed(list), err
	}
	return nil, fmt.Errorf("reply %q is of no kind that is expected", line)
}

func (t *talk) list(n int64) ([]any, error) {
	list := make([]any, n)
	for i := range list {
		var err error
		if list[i], err = t.reply(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
