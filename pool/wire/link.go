// Link carries flushes to a master, on exactly one TCP connection that the client library
// cannot replace: a vote belongs to the connection that carried its command.

package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Command is one command for a master; its Args are reused from flush to flush.
type Command struct{ Args []string }

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

// Dialer opens one connection to a master in database db: authenticated,
// selected, and not yet admitted.
type Dialer func(ctx context.Context, m Master, db int) (Link, error)

// ErrLinkClosed is the error of a connection that has ended.
var (
	ErrLinkClosed = errors.New("connection ended")
	_             = Link((*rueidisLink)(nil))
)

// rueidisLink is a rueidis client that owns one connection and cannot dial a
// second one. It stays in rueidis' synchronous mode (one caller, no context):
// the flush is written and read on the lane's own goroutine, which saves the
// two wake-ups of rueidis' background reader and writer.
type rueidisLink struct {
	client rueidis.Client
	conn   net.Conn
	batch  []rueidis.Completed
}

// DialRueidis opens connections with rueidis; every step may take timeout.
func DialRueidis(timeout time.Duration) Dialer {
	return func(ctx context.Context, m Master, db int) (Link, error) {
		conn, err := DialMaster(ctx, m, timeout)
		if err != nil {
			return nil, err
		}
		return NewRueidisLink(conn, m, db, timeout)
	}
}

// DialMaster opens the socket, with TLS if the master has it.
func DialMaster(ctx context.Context, m Master, timeout time.Duration) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}
	conn, err := dialer.DialContext(ctx, m.Network, m.Address)
	if err != nil || m.TLS == nil {
		return conn, err
	}
	return handshake(ctx, conn, m)
}

// NewRueidisLink opens a Link on a connection on which nothing has been sent yet.
func NewRueidisLink(raw net.Conn, m Master, db int, timeout time.Duration) (Link, error) {
	conn := guardReplies(raw)
	var used atomic.Bool
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:           []string{m.Address},
		Username:              m.Username,
		Password:              m.Password,
		SelectDB:              db,
		ClientName:            "redlockd",
		ClientSetInfo:         rueidis.DisableClientSetInfo,
		ForceSingleClient:     true,
		DisableCache:          true,
		DisableRetry:          true,
		PipelineMultiplex:     -1,
		BlockingPipeline:      -1, // never move a large flush to a second connection
		RingScaleEachConn:     4,  // unused in synchronous mode
		ReadBufferEachConn:    16 << 10,
		WriteBufferEachConn:   32 << 10,
		ConnWriteTimeout:      timeout,
		Dialer:                net.Dialer{Timeout: timeout, KeepAlive: -1}, // no background PING: the heartbeat is ours
		DisableAutoPipelining: false,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tlsConfig) (net.Conn, error) {
			if used.Swap(true) {
				return nil, ErrLinkClosed
			}
			return conn, nil
		},
	})
	if err != nil {
		conn.Close()
		if client != nil {
			client.Close()
		}
		return nil, fmt.Errorf("greeting: %w", err)
	}
	return &rueidisLink{client: client, conn: conn}, nil
}

func (l *rueidisLink) Exchange(commands []Command, replies []Reply) []Reply {
	l.batch = l.batch[:0]
	for i := range commands {
		l.batch = append(l.batch, l.client.B().Arbitrary(commands[i].Args...).Build())
	}
	replies = replies[:0]
	for _, result := range l.client.DoMulti(context.Background(), l.batch...) {
		replies = append(replies, decode(result))
	}
	return replies
}

// Close cuts the socket first, so that rueidis has nothing to wait for.
func (l *rueidisLink) Close() {
	l.conn.Close()
	l.client.Close()
}

// ExchangeErr is the error of a connection that ended during an exchange.
func ExchangeErr(replies []Reply, want int) error {
	if len(replies) != want {
		return ErrLinkClosed
	}
	for _, r := range replies {
		var fromMaster MasterError
		if r.Err != nil && !errors.As(r.Err, &fromMaster) {
			return r.Err
		}
	}
	return nil
}
