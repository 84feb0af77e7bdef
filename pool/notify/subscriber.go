// Event subscriber: a connection to one master that has subscribed and does nothing else.
//
// This package reads it, and not the client library: a subscription consists of replies
// without a request, and the library trusts them. What is read is bounded, and anything
// unexpected ends the connection.

package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"redlockd/pool/wire"
	"redlockd/proxy/resp"
)

const (
	// maxMessage bounds the strings of a message; ours are below 100 kB.
	maxMessage = 1 << 20
	maxLine    = 4 << 10 // only error replies have long ones
	maxWords   = 4       // of a message
	// subscribeRetry is the pause before a lost connection is replaced.
	subscribeRetry = time.Second
	// maxQuiet is how long a master may send nothing before it receives a PING.
	maxQuiet = 5 * time.Second
)

var errUnexpectedMessage = errors.New("sent something that is no message")

// eventSubscriber keeps a subscription to one master, on a goroutine of its own.
type eventSubscriber struct {
	events *Events
	master wire.Master
	since  atomic.Int64 // ns of the pool's clock at which it subscribed, 0 = it is not subscribed
	stop   context.CancelFunc
	ended  chan struct{} // closed when the goroutine has ended
}

func newEventSubscriber(e *Events, m wire.Master) *eventSubscriber {
	ctx, stop := context.WithCancel(context.Background())
	h := &eventSubscriber{events: e, master: m, stop: stop, ended: make(chan struct{})}
	go h.run(ctx)
	return h
}

// run connects again and again, until ctx ends.
func (h *eventSubscriber) run(ctx context.Context) {
	defer close(h.ended)
	e := h.events
	for {
		err := h.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		e.Logger.Debug("no events from master for now", "master", h.master.Name, "err", err.Error())
		over, end := context.WithCancel(ctx)
		retry := e.Clock.AfterFunc(subscribeRetry, end)
		<-over.Done()
		retry.Stop()
		end()
	}
}

// listen delivers messages until the connection or ctx ends.
func (h *eventSubscriber) listen(ctx context.Context) error {
	e := h.events
	dial, cancel := context.WithTimeout(ctx, e.Timeout)
	conn, err := Subscribe(dial, h.master, e.Channel, e.Timeout)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	h.since.Store(max(int64(e.Clock.Now()), 1))
	defer h.since.Store(0)
	for {
		words, err := conn.next()
		switch {
		case err != nil:
			return err
		case len(words) == 3 && words[0] == "message":
			e.deliver(words[2])
		case len(words) != 2 || words[0] != "pong":
			return errUnexpectedMessage
		}
	}
}

// subscribedSince reports whether it has received everything since then.
func (h *eventSubscriber) subscribedSince(then time.Duration) bool {
	since := h.since.Load()
	return since != 0 && since < int64(then)
}

func (h *eventSubscriber) close() {
	h.stop()
	<-h.ended
}

// Subscription is a connection on RESP2 that has subscribed to one channel.
type Subscription struct {
	net.Conn
	in      *resp.Reader
	timeout time.Duration // of every step
	quiet   time.Duration // see maxQuiet
}

// Subscribe opens one; every step may take timeout.
func Subscribe(ctx context.Context, m wire.Master, channel string, timeout time.Duration) (*Subscription, error) {
	conn, err := wire.DialMaster(ctx, m, timeout)
	if err != nil {
		return nil, err
	}
	s := newSubscription(conn, timeout)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if err := s.login(m, channel); err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	if !stop() {
		return nil, ctx.Err()
	}
	return s, nil
}

func newSubscription(conn net.Conn, timeout time.Duration) *Subscription {
	in := resp.NewReader(conn)
	in.RESP2, in.MaxBytes, in.MaxLine, in.MaxItems, in.MaxDepth = true, maxMessage, maxLine, maxWords, 1
	return &Subscription{Conn: conn, in: in, timeout: timeout, quiet: maxQuiet}
}

func (s *Subscription) login(m wire.Master, channel string) error {
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
		if err := s.send(words...); err != nil {
			return err
		}
		reply, err := s.read()
		if err != nil {
			return fmt.Errorf("%s: %w", words[0], err)
		}
		if len(reply) == 3 != (words[0] == "SUBSCRIBE") {
			return errUnexpectedMessage
		}
	}
	return s.SetDeadline(time.Time{})
}

func (s *Subscription) send(words ...string) error {
	_, err := s.Conn.Write(resp.AppendCommand(nil, words...))
	return err
}

// next waits for a message. A master that sends nothing for long receives a PING; one
// that does not answer it has ended.
func (s *Subscription) next() ([]string, error) {
	_ = s.SetDeadline(time.Now().Add(s.quiet))
	_, err := s.in.Peek(1)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.SetDeadline(time.Now().Add(s.timeout))
		if err := s.send("PING"); err != nil {
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

// read returns a status, which is one word, or a list of strings and numbers.
func (s *Subscription) read() ([]string, error) {
	reply, err := s.in.ReadValue()
	var malformed *resp.Malformed
	switch {
	case errors.As(err, &malformed):
		return nil, errUnexpectedMessage
	case err != nil:
		return nil, err
	case reply.Kind == '+':
		return []string{reply.Text}, nil
	case reply.Kind == '-':
		return nil, wire.MasterError(reply.Text)
	}
	words := reply.Words()
	if words == nil {
		return nil, errUnexpectedMessage
	}
	return words, nil
}
