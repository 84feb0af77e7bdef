// Link carries flushes to a master, on exactly one TCP connection that the client library
// cannot replace: a vote belongs to the connection that carried its command.

package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Command is one command for a master; its Args are reused from flush to flush.
type Command struct{ Args []string }

func Words(args ...string) Command { return Command{Args: args} }

// Set replaces the command's words.
func (c *Command) Set(args ...string) { c.Args = append(c.Args[:0], args...) }

// Link is one connection to one master. Commands of one Exchange, and of one
// Exchange after another, execute in order.
type Link interface {
	// Exchange sends the commands in one write and fills one reply each. When
	// the connection ends, the missing replies carry its error.
	Exchange(commands []Command, replies []Reply) []Reply
	// Close ends the connection at once; an Exchange under way fails.
	Close()
}

// WindowLink is a Link on which further flushes may be under way while earlier ones are unanswered.
type WindowLink interface {
	Link
	// ExchangeInWindow is an Exchange that calls onSent once the socket has taken the last byte of
	// the commands: from then on another goroutine may begin the next Exchange, whose commands
	// execute behind these. Without that call it may begin when this one has returned. onSent is
	// called at most once, and never after the return.
	ExchangeInWindow(commands []Command, replies []Reply, onSent func()) []Reply
}

type UnreadLink interface {
	// Unread reports whether the master has sent bytes that this process has not read.
	Unread() bool
}

// Dialer opens one connection to a master in database db: authenticated,
// selected, and not yet admitted.
type Dialer func(ctx context.Context, m Master, db int) (Link, error)

// TrackDialer opens a connection on which CLIENT CACHING YES makes the next
// command's key announce its changes: gone is called with the keys, or with nil
// when all of them may have changed.
type TrackDialer func(ctx context.Context, m Master, db int, gone func(keys []string)) (Link, error)

var ErrLinkClosed = errors.New("connection ended")

// rueidisLink is a rueidis client that owns one connection and cannot dial a second one.
type rueidisLink struct {
	client  rueidis.Client
	conn    *wire
	timeout time.Duration // of an Exchange; 0 = the client's own
	batch   []rueidis.Completed

	spare batches // of those in the window
}

// batches are the memory of batches that are not in use.
type batches struct {
	mu  sync.Mutex
	all [][]rueidis.Completed
}

var _ WindowLink = (*rueidisLink)(nil)

// DialRueidis opens connections; every step and every Exchange may take timeout.
func DialRueidis(timeout time.Duration) Dialer { return DialLane(timeout, timeout) }

// DialLane opens connections for lanes: an answer may take longer than a step of the dial.
func DialLane(timeout, answer time.Duration) Dialer {
	return func(ctx context.Context, m Master, db int) (Link, error) {
		conn, err := dialMaster(ctx, m, timeout)
		if err != nil {
			return nil, err
		}
		return NewRueidisLink(conn, m, db, timeout, answer)
	}
}

// NewRueidisLink opens a Link for a lane on a connection on which nothing has been sent yet.
// It begins in rueidis' synchronous mode (one caller, no context): the flush is written and
// read on the lane's own goroutine, which saves the two wake-ups of rueidis' background
// reader and writer. The first flush that is sent while another one is unanswered ends that
// mode: rueidis holds it back until the other's replies are read, once.
func NewRueidisLink(raw net.Conn, m Master, db int, timeout, answer time.Duration) (Link, error) {
	return newLink(raw, m, db, timeout, 0, rueidis.ClientOption{
		ClientName:          "redlockd",
		DisableCache:        true,
		ConnWriteTimeout:    answer,
		RingScaleEachConn:   6, // a window of flushes, and air
		WriteBufferEachConn: 32 << 10,
		Dialer:              net.Dialer{KeepAlive: -1}, // no background PING: the heartbeat is ours
	})
}

// DialTracking opens connections for tracking, with rueidis' background reader, which
// receives the announcements; every step may take timeout.
func DialTracking(timeout time.Duration) TrackDialer {
	return func(ctx context.Context, m Master, db int, gone func(keys []string)) (Link, error) {
		raw, err := dialMaster(ctx, m, timeout)
		if err != nil {
			return nil, err
		}
		return newLink(raw, m, db, timeout, timeout, rueidis.ClientOption{
			ClientName:            "redlockd-news",
			ClientTrackingOptions: []string{"OPTIN"},
			OnInvalidations:       onInvalidation(gone),
			CacheSizeEachConn:     1 << 10,
			RingScaleEachConn:     8,
			WriteBufferEachConn:   16 << 10,
			Dialer:                net.Dialer{KeepAlive: timeout},
		})
	}
}

// Subscribe keeps a connection that has subscribed to one channel, and passes the messages to
// onMessage, one at a time, until it or ctx ends. The error is the reason. A master that sends
// nothing for timeout receives a PING, and has as long to answer it.
func Subscribe(ctx context.Context, m Master, channel string, timeout time.Duration, onSubscribed func(), onMessage func(message string)) error {
	raw, err := dialMaster(ctx, m, timeout)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { raw.Close() })() // rueidis greets without a context
	l, err := newLink(raw, m, 0, timeout, 0, rueidis.ClientOption{
		ClientName:          "redlockd-events",
		DisableCache:        true,
		RingScaleEachConn:   1, // for SUBSCRIBE and PING
		WriteBufferEachConn: 4 << 10,
		Dialer:              net.Dialer{KeepAlive: timeout},
	})
	if err != nil {
		return err
	}
	defer l.Close()
	// The next request is SUBSCRIBE: rueidis begins to read and to send PING with it.
	l.conn.replies.subscribes = l.conn.requestCount.Load() + 1
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { onSubscribed() })
	err = l.client.Receive(hooked, l.client.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { onMessage(m.Message) })
	return cmp.Or(ctx.Err(), err)
}

// newLink completes the options with those of all links.
func newLink(raw net.Conn, m Master, db int, timeout, exchange time.Duration, o rueidis.ClientOption) (*rueidisLink, error) {
	conn := guardReplies(raw)
	o.InitAddress, o.Username, o.Password, o.SelectDB = []string{m.Address}, m.Username, m.Password, db
	o.ClientSetInfo = rueidis.DisableClientSetInfo
	o.ForceSingleClient, o.DisableRetry, o.PipelineMultiplex = true, true, -1
	o.BlockingPipeline = -1 // never move a large flush to a second connection
	o.ReadBufferEachConn = 16 << 10
	o.ConnWriteTimeout, o.Dialer.Timeout = cmp.Or(o.ConnWriteTimeout, timeout), timeout
	var used atomic.Bool
	o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		if used.Swap(true) {
			return nil, ErrLinkClosed
		}
		return conn, nil
	}
	client, err := rueidis.NewClient(o)
	if err != nil {
		conn.Close()
		if client != nil {
			client.Close()
		}
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			op.Source, op.Addr = nil, nil // with another port each dial would fail for another reason
		}
		return nil, fmt.Errorf("greeting: %w%s%s", err, certificateHint(raw, err), loginHint(m, err))
	}
	return &rueidisLink{client: client, conn: conn, timeout: exchange}, nil
}

// certificateHint is about a connection that ended after the handshake: with TLS 1.3 a master checks
// the client's certificate only then, and what it reports may be lost with the connection.
func certificateHint(conn net.Conn, err error) string {
	var reply *rueidis.RedisError
	var late net.Error
	if _, secured := conn.(*tls.Conn); !secured || errors.As(err, &reply) || errors.As(err, &late) && late.Timeout() {
		return ""
	}
	return " (after the TLS handshake: if the master refuses this daemon's certificate, correct cert= and key= of its URL, or tls-ca-cert-file of the master)"
}

// loginHint tells how to give the login that a master wants.
func loginHint(m Master, err error) string {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) || !strings.HasPrefix(reply.Error(), "NOAUTH") && !strings.HasPrefix(reply.Error(), "WRONGPASS") {
		return ""
	}
	m.Username, m.Password = cmp.Or(m.Username, "USER"), "-" // its String shows none
	return " (give the login in its entry: " + m.String() + ", without USER where it has requirepass; --masters-file takes a file with an entry a line)"
}

// onInvalidation turns an invalidation into keys; rueidis passes nil for all of
// them, also when the connection has ended.
func onInvalidation(gone func(keys []string)) func([]rueidis.RedisMessage) {
	return func(messages []rueidis.RedisMessage) {
		if messages == nil {
			gone(nil)
			return
		}
		keys := make([]string, 0, len(messages))
		for i := range messages {
			if key, err := messages[i].ToString(); err == nil {
				keys = append(keys, key)
			}
		}
		gone(keys)
	}
}

func (l *rueidisLink) Exchange(commands []Command, replies []Reply) []Reply {
	ctx := context.Background()
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
		l.batch = nil // rueidis may still read that of an Exchange that timed out
	}
	replies, l.batch = l.exchange(ctx, commands, replies, l.batch)
	return replies
}

func (l *rueidisLink) exchange(ctx context.Context, commands []Command, replies []Reply, batch []rueidis.Completed) ([]Reply, []rueidis.Completed) {
	batch = batch[:0]
	for i := range commands {
		batch = append(batch, l.client.B().Arbitrary(commands[i].Args...).Build())
	}
	replies = replies[:0]
	for _, result := range l.client.DoMulti(ctx, batch...) {
		replies = append(replies, decode(result))
	}
	return replies, batch
}

// ExchangeInWindow relies on rueidis to write what it was given first, first: a goroutine that
// finds the socket ahead of it has found it behind the commands of the one before.
func (l *rueidisLink) ExchangeInWindow(commands []Command, replies []Reply, onSent func()) []Reply {
	end := l.conn.notifySent(int64(len(commands)), onSent)
	replies, batch := l.exchange(context.Background(), commands, replies, l.spare.take())
	end()
	l.spare.put(batch)
	return replies
}

func (b *batches) take() (batch []rueidis.Completed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.all); n > 0 {
		batch, b.all = b.all[n-1], b.all[:n-1]
	}
	return batch
}

func (b *batches) put(batch []rueidis.Completed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, batch)
}

// Unread reports whether the master has sent bytes that this process has not read.
func (l *rueidisLink) Unread() bool { return l.conn.unread() }

// Close cuts the socket first, so that rueidis has nothing to wait for.
func (l *rueidisLink) Close() {
	l.conn.Close()
	l.client.Close()
}

// Ask sends commands and returns their replies, or the error of a connection that ended
// meanwhile. Error replies of the master stand in the replies.
func Ask(link Link, commands ...Command) ([]Reply, error) {
	replies := link.Exchange(commands, nil)
	if len(replies) != len(commands) {
		return nil, ErrLinkClosed
	}
	for _, r := range replies {
		var fromMaster MasterError
		if r.Err != nil && !errors.As(r.Err, &fromMaster) {
			return nil, r.Err
		}
	}
	return replies, nil
}

func AskOne(link Link, args ...string) (Reply, error) {
	replies, err := Ask(link, Words(args...))
	if err != nil {
		return Reply{}, err
	}
	return replies[0], nil
}
