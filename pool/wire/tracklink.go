// Tracking link: a connection on which a master announces changes of keys.

package wire

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// TrackDialer opens a connection on which CLIENT CACHING YES makes the next
// command's key announce its changes: gone is called with the keys, or with nil
// when all of them may have changed.
type TrackDialer func(ctx context.Context, m Master, db int, gone func(keys []string)) (Link, error)

// trackLink is a rueidis client with its background reader, which receives the
// announcements.
type trackLink struct {
	client  rueidis.Client
	conn    net.Conn
	timeout time.Duration
}

var _ = Link((*trackLink)(nil))

// DialTracking opens connections for tracking with rueidis; every step may take timeout.
func DialTracking(timeout time.Duration) TrackDialer {
	return func(ctx context.Context, m Master, db int, gone func(keys []string)) (Link, error) {
		raw, err := DialMaster(ctx, m, timeout)
		if err != nil {
			return nil, err
		}
		conn := guardReplies(raw)
		var used atomic.Bool
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{m.Address}, Username: m.Username, Password: m.Password, SelectDB: db,
			ClientName: "redlockd-news", ClientSetInfo: rueidis.DisableClientSetInfo,
			ClientTrackingOptions: []string{"OPTIN"}, OnInvalidations: onInvalidation(gone),
			ForceSingleClient: true, DisableRetry: true, PipelineMultiplex: -1, BlockingPipeline: -1,
			RingScaleEachConn: 8, ReadBufferEachConn: 16 << 10, WriteBufferEachConn: 16 << 10, CacheSizeEachConn: 1 << 10,
			ConnWriteTimeout: timeout, Dialer: net.Dialer{Timeout: timeout, KeepAlive: timeout},
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
			return nil, err
		}
		return &trackLink{client: client, conn: conn, timeout: timeout}, nil
	}
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

func (l *trackLink) Exchange(commands []Command, replies []Reply) []Reply {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	batch := make([]rueidis.Completed, 0, len(commands))
	for i := range commands {
		batch = append(batch, l.client.B().Arbitrary(commands[i].Args...).Build())
	}
	for _, result := range l.client.DoMulti(ctx, batch...) {
		replies = append(replies, decode(result))
	}
	return replies
}

func (l *trackLink) Close() {
	l.conn.Close()
	l.client.Close()
}
