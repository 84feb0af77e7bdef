// One master's news: a second connection, with CLIENT TRACKING in OPTIN mode,
// on which only the keys are asked for that somebody waits for, or holds with HOLD.
//
// PTTL is asked for right behind CLIENT CACHING YES: the answer says how the key
// stands, and every change after it is announced, once. Between the two there is
// no gap. Nothing that is decided rests on it.
package pool

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// inquiries is how many keys one exchange asks for at most.
	inquiries = 128
	// trackerRetry is the pause after a connection for news could not be had.
	trackerRetry = time.Second
)

// TrackDialer opens a connection on which CLIENT CACHING YES makes the next
// command's key announce its changes: gone is called with the keys, or with nil
// when all of them may have changed.
type TrackDialer func(ctx context.Context, m Master, db int, gone func(keys []string)) (Link, error)

// inquiry is a key somebody wants news of.
type inquiry struct {
	key     string
	round   uint64
	watcher Watcher
}

type tracker struct {
	group *Group
	index int

	mu      sync.Mutex
	queue   []inquiry
	running bool
	closed  bool
	link    Link // used by the running task alone, closed by anybody
	retryAt time.Duration
}

// ask queues an inquiry. What does not fit is dropped: the watcher polls.
func (t *tracker) ask(q inquiry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.queue) >= t.group.pool.options.MaxQueue {
		return
	}
	t.queue = append(t.queue, q)
	if t.running {
		return
	}
	t.running = t.group.pool.tasks.Submit(t.run) == nil
}

// run answers what is queued; there is one at a time.
func (t *tracker) run() {
	for {
		t.mu.Lock()
		n := min(len(t.queue), inquiries)
		if n == 0 || t.closed {
			t.queue, t.running = nil, false
			t.mu.Unlock()
			return
		}
		batch := t.queue[:n:n]
		t.queue = t.queue[n:]
		link, patient := t.link, t.group.now() < t.retryAt
		t.mu.Unlock()
		if link == nil && !patient {
			link = t.dial()
		}
		if link != nil {
			t.exchange(link, batch)
		}
	}
}

// dial opens the connection, or notes when to try again.
func (t *tracker) dial() Link {
	p := t.group.pool
	ctx, cancel := context.WithTimeout(context.Background(), p.patience())
	defer cancel()
	link, err := p.track(ctx, p.options.Masters[t.index], t.group.db, func(keys []string) {
		t.group.changed(t.index, keys)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.retryAt = t.group.now() + trackerRetry
		p.options.Logger.Debug("no news from a master; waiters poll it", "master", p.options.Masters[t.index].Name, "because", err.Error())
		return nil
	}
	if t.closed {
		link.Close()
		return nil
	}
	t.link = link
	return link
}

// exchange asks for a batch of keys and hands the answers out.
func (t *tracker) exchange(link Link, batch []inquiry) {
	tracked := !t.group.pool.embedded()
	each := 1
	if tracked {
		each = 2
	}
	commands := make([]Command, 0, each*len(batch))
	for _, q := range batch {
		if tracked {
			commands = append(commands, Command{Args: []string{"CLIENT", "CACHING", "YES"}})
		}
		commands = append(commands, Command{Args: []string{"PTTL", q.key}})
	}
	replies := link.Exchange(commands, nil)
	if err := gone(replies, len(commands)); err != nil {
		t.drop(link)
		return
	}
	for i, q := range batch {
		r := replies[each*i+each-1]
		if r.Kind != ReplyInt {
			continue
		}
		left := time.Duration(min(r.Int, 1<<40)) * time.Millisecond
		switch r.Int {
		case -2:
			left = 0
		case -1:
			left = -1
		}
		q.watcher.Remains(t.index, q.round, left, tracked && replies[each*i].Err == nil)
	}
}

// drop ends a connection that failed. What it tracked is not announced any more.
func (t *tracker) drop(link Link) {
	t.mu.Lock()
	if t.link == link {
		t.link = nil
		t.retryAt = t.group.now() + trackerRetry
	}
	t.mu.Unlock()
	link.Close()
}

func (t *tracker) close() {
	t.mu.Lock()
	t.closed = true
	link := t.link
	t.link = nil
	t.mu.Unlock()
	if link != nil {
		link.Close()
	}
}

// trackLink is a rueidis client with its background reader, which hears the
// announcements.
type trackLink struct {
	client  rueidis.Client
	conn    net.Conn
	timeout time.Duration
}

var _ = Link((*trackLink)(nil))

// DialTracking opens connections for news with rueidis; every step may take timeout.
func DialTracking(timeout time.Duration) TrackDialer {
	return func(ctx context.Context, m Master, db int, gone func(keys []string)) (Link, error) {
		raw, err := dialMaster(ctx, m, timeout)
		if err != nil {
			return nil, err
		}
		conn := guardReplies(raw)
		var used atomic.Bool
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{m.Address}, Username: m.Username, Password: m.Password, SelectDB: db,
			ClientName: "redlockd-news", ClientSetInfo: rueidis.DisableClientSetInfo,
			ClientTrackingOptions: []string{"OPTIN"}, OnInvalidations: announced(gone),
			ForceSingleClient: true, DisableRetry: true, PipelineMultiplex: -1, BlockingPipeline: -1,
			RingScaleEachConn: 8, ReadBufferEachConn: 16 << 10, WriteBufferEachConn: 16 << 10, CacheSizeEachConn: 1 << 10,
			ConnWriteTimeout: timeout, Dialer: net.Dialer{Timeout: timeout, KeepAlive: timeout},
			DialCtxFn: func(context.Context, string, *net.Dialer, *tlsConfig) (net.Conn, error) {
				if used.Swap(true) {
					return nil, errLinkOver
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

// announced turns an invalidation into keys; rueidis hands over nil for all of
// them, also when the connection has ended.
func announced(gone func(keys []string)) func([]rueidis.RedisMessage) {
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
