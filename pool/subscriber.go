// Event subscriber: a connection to one master that has subscribed and does nothing else.
//
// This package reads it, and not the client library: a subscription consists of replies
// without a request, and the library trusts them. What is read is bounded, and anything
// unexpected ends the connection.

package pool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxMessage bounds one string of a message; ours are below 100 kB.
	longestMessage = 1 << 20
	// subscribeRetry is the pause before a lost connection is replaced.
	hearerRetry = time.Second
	// maxQuiet is how long a master may send nothing before it receives a PING.
	hearerQuiet = 5 * time.Second
)

var errOddMessage = errors.New("sent something that is no message")

// eventSubscriber keeps a subscription to one master. It has a goroutine while it is
// connected or connecting, and a timer between two attempts.
type hearer struct {
	group *Group
	index int
	work  sync.WaitGroup // its goroutine

	mu     sync.Mutex
	cancel context.CancelFunc // of an attempt
	conn   net.Conn           // while it is subscribed
	since  time.Duration      // it is subscribed, on the pool's clock
	retry  Timer
	closed bool
}

// start begins an attempt.
func (h *hearer) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.group.pool.patience())
	h.cancel = cancel
	h.work.Add(1)
	go h.run(ctx)
}

// run reads until the connection ends, and schedules the next one.
func (h *hearer) run(ctx context.Context) {
	defer h.work.Done()
	o := &h.group.pool.options
	conn, err := subscribe(ctx, o.Masters[h.index], h.group.eventChannel(), h.group.pool.patience())
	if err == nil {
		err = h.listen(conn)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel()
	h.conn = nil
	if h.closed {
		return
	}
	o.Logger.Debug("no events from master for now", "master", o.Masters[h.index].Name, "err", err.Error())
	if h.retry == nil {
		h.retry = o.Clock.AfterFunc(hearerRetry, h.start)
		return
	}
	h.retry.Reset(hearerRetry)
}

// listen delivers messages until the connection ends.
func (h *hearer) listen(conn *subscription) error {
	defer conn.Close()
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return errClosed
	}
	h.conn, h.since = conn, h.group.now()
	h.mu.Unlock()
	for {
		words, err := conn.next()
		switch {
		case err != nil:
			return err
		case len(words) == 3 && words[0] == "message":
			h.group.hear(words[2])
		case len(words) != 2 || words[0] != "pong":
			return errOddMessage
		}
	}
}

// subscribedSince reports whether it has received everything since then.
func (h *hearer) hearsSince(then time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conn != nil && h.since < then
}

func (h *hearer) close() {
	h.mu.Lock()
	h.closed = true
	if h.cancel != nil {
		h.cancel()
	}
	if h.conn != nil {
		h.conn.Close()
	}
	if h.retry != nil {
		h.retry.Stop()
	}
	h.mu.Unlock()
	h.work.Wait()
}

// eventConn is a connection on RESP2 that has subscribed to one channel.
type subscription struct {
	net.Conn
	in      *bufio.Reader
	timeout time.Duration // of every step
	quiet   time.Duration // hearerQuiet
}

// subscribe opens one; every step may take timeout.
func subscribe(ctx context.Context, m Master, channel string, timeout time.Duration) (*subscription, error) {
	conn, err := dialMaster(ctx, m, timeout)
	if err != nil {
		return nil, err
	}
	s := newSubscription(conn, timeout)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if err := s.greet(m, channel); err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	if !stop() {
		return nil, ctx.Err()
	}
	return s, nil
}

func newSubscription(conn net.Conn, timeout time.Duration) *subscription {
	return &subscription{Conn: conn, in: bufio.NewReader(conn), timeout: timeout, quiet: hearerQuiet}
}

func (s *subscription) greet(m Master, channel string) error {
	_ = s.SetDeadline(time.Now().Add(s.timeout))
	var commands [][]string
	switch {
	case m.Username != "":
		commands = append(commands, []string{"AUTH", m.Username, m.Password})
	case m.Password != "":
		commands = append(commands, []string{"AUTH", m.Password})
	}
	commands = append(commands, []string{"CLIENT", "SETNAME", "redlockd-events"}, []string{"SUBSCRIBE", channel})
	for _, words := range commands {
		if err := s.say(words...); err != nil {
			return err
		}
		reply, err := s.read()
		if err != nil {
			return fmt.Errorf("%s: %w", words[0], err)
		}
		if len(reply) == 3 != (words[0] == "SUBSCRIBE") {
			return errOddMessage
		}
	}
	return s.SetDeadline(time.Time{})
}

func (s *subscription) say(words ...string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	_, err := io.WriteString(s.Conn, text.String())
	return err
}

// next waits for a message. A master that sends nothing for long receives a PING; one
// that does not answer it has ended.
func (s *subscription) next() ([]string, error) {
	_ = s.SetDeadline(time.Now().Add(s.quiet))
	_, err := s.in.Peek(1)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.SetDeadline(time.Now().Add(s.timeout))
		if err := s.say("PING"); err != nil {
			return nil, err
		}
		_, err = s.in.Peek(1)
	}
	if err != nil {
		return nil, err
	}
	_ = s.SetDeadline(time.Now().Add(s.timeout))
	return s.read()
}

// read returns a status, which is one word, or an array of strings and numbers.
func (s *subscription) read() ([]string, error) {
	kind, rest, err := s.line()
	if err != nil {
		return nil, err
	}
	switch kind {
	case '+':
		return []string{rest}, nil
	case '-':
		return nil, MasterError(rest)
	case '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > 4 {
			return nil, errOddMessage
		}
		words := make([]string, n)
		for i := range words {
			if words[i], err = s.word(); err != nil {
				return nil, err
			}
		}
		return words, nil
	}
	return nil, errOddMessage
}

func (s *subscription) word() (string, error) {
	kind, rest, err := s.line()
	if err != nil || kind == ':' {
		return rest, err
	}
	n, err := strconv.Atoi(rest)
	if kind != '$' || err != nil || n < 0 || n > longestMessage {
		return "", errOddMessage
	}
	bytes := make([]byte, n+2)
	if _, err := io.ReadFull(s.in, bytes); err != nil {
		return "", err
	}
	if bytes[n] != '\r' || bytes[n+1] != '\n' {
		return "", errOddMessage
	}
	return string(bytes[:n]), nil
}

// line reads up to a line end; no line of ours is longer than the reader's
// buffer.
func (s *subscription) line() (kind byte, rest string, err error) {
	line, err := s.in.ReadSlice('\n')
	if err != nil {
		return 0, "", err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return 0, "", errOddMessage
	}
	return line[0], string(line[1 : len(line)-2]), nil
}
