package proxy

// proxy.go contains the Server: its construction, its start and its list of connections.
//
// Goroutines: one per listener (Serve), one per connection (redcon's, or another one while
// the connection rests; ends with its socket), and tasks of the writers' pool while there is something to write.

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/commands"
	"redlockd/proxy/guard"
	"redlockd/proxy/preauth"
	"redlockd/redlock"

	"github.com/tidwall/redcon"
)

// Server accepts clients and runs their commands.
type Server struct {
	options       Options
	run           Dispatcher
	listeners     []*clientListener
	writers       *writers
	guards        *guard.Group
	unauthMemory  memLimit // of incomplete commands and TLS of unauthenticated clients
	memory        memLimit // of all clients' buffers
	unauthClients memLimit // connections of unauthenticated clients
	connRates     *preauth.ConnRates
	outBuffers    sync.Pool // of *outBuffer, for the writer loops
	counters      serverCounters
	rareLog       rareLog
	largeReply    chan struct{} // capacity 1: only one session encodes large replies
	shares        shareQueue
	send          func(*redlock.Batch) // queues the operations of a read batch; tests replace it
	stopping      chan struct{}        // closed when Shutdown begins
	drained       chan struct{}        // closed when the last connection has ended
	released      chan struct{}        // closed when nothing runs anymore
	tls           atomic.Pointer[tls.Config]
	preauth       sync.WaitGroup // goroutines that accept, handshake and serve until the login

	mu       sync.Mutex
	sessions map[*session]struct{}
	hosts    map[string]int // connections by Client.Host
	served   bool
	stopped  bool
	empty    chan struct{} // closed once stopped and no session is left

}

const outSize = 4096 // replies of some eighty locks

type outBuffer [outSize]byte

// New opens all listeners, or none: the error names the field and its value, or
// the address and the reason why it cannot be used. Serve starts to accept clients.
func New(options Options, run Dispatcher) (*Server, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	if run == nil {
		return nil, errors.New("proxy: the dispatcher is nil")
	}
	s := &Server{
		options:    options,
		run:        run,
		send:       (*redlock.Batch).Send,
		outBuffers: sync.Pool{New: func() any { return new(outBuffer) }},
		largeReply: make(chan struct{}, 1),
		stopping:   make(chan struct{}),
		drained:    make(chan struct{}),
		released:   make(chan struct{}),
		sessions:   make(map[*session]struct{}),
		hosts:      make(map[string]int),
		empty:      make(chan struct{}),
	}
	s.openGuards()
	s.unauthClients.max = max(1, options.MaxClients/2)
	s.memory.max, s.memory.evictLargest = options.ClientMemory, true
	s.connRates = preauth.NewConnRates(options.MaxConnects, time.Now)
	s.shares.open()
	if err := s.open(); err != nil {
		s.closeListeners()
		return nil, err
	}
	return s, nil
}

// open opens listeners, certificates and the writers' pool.
func (s *Server) open() error {
	o := &s.options
	for _, address := range o.Listen {
		l, err := listen(address, o.UnixMode)
		if err != nil {
			return err
		}
		l.server = s
		s.listeners = append(s.listeners, l)
	}
	if err := s.ReloadTLS(); err != nil {
		return err
	}
	var err error
	s.writers, err = newWriters(o.MaxClients, o.Logger, func() { s.counters.panics.Add(1) })
	if err != nil {
		return fmt.Errorf("proxy: writers' pool for MaxClients %d: %w", o.MaxClients, err)
	}
	return nil
}

// Addrs returns the addresses of the listeners, in the order of Options.Listen, with the
// port the kernel chose; with TLS it is "tls:host:port", a unix socket is "unix:/path".
func (s *Server) Addrs() []string {
	names := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		names[i] = l.name
	}
	return names
}

// Serve serves until ctx ends, and then shuts down within DrainTimeout, or until
// Shutdown is called. It returns when nothing runs anymore; nil means that
// everything in flight was answered.
func (s *Server) Serve(ctx context.Context) error {
	s.mu.Lock()
	again := s.served
	s.served = true
	s.mu.Unlock()
	if again {
		return errors.New("proxy: Serve may be called once")
	}
	var accepting sync.WaitGroup
	for _, l := range s.listeners {
		accepting.Go(func() { s.runRedcon(l) })
	}
	var err error
	select {
	case <-ctx.Done():
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.DrainTimeout)
		err = s.Shutdown(limit)
		cancel()
	case <-s.released:
	}
	accepting.Wait()
	s.preauth.Wait()
	return err
}

// runRedcon runs redcon on one listener; it returns when the server has drained.
func (s *Server) runRedcon(l *clientListener) {
	handle := func(conn redcon.Conn, command redcon.Command) {
		sessionOf(conn.NetConn()).receive(conn, command)
	}
	onAccept := func(redcon.Conn) bool { return true }
	onClose := func(redcon.Conn, error) {} // the guard's Close has already notified the session
	server := redcon.NewServerNetwork(l.Addr().Network(), l.name, handle, onAccept, onClose)
	if err := server.Serve(l); err != nil {
		s.options.Logger.Error("redcon ended", "listen", l.name, "err", err)
	}
}

func sessionOf(conn net.Conn) *session { return conn.(servedConn).Events.(*session) }

// openGuards makes the guards' group from the options.
func (s *Server) openGuards() {
	o := &s.options
	s.rareLog.out, s.unauthMemory.max = o.Logger, o.UnauthMemory
	s.guards = guard.NewGroup(guard.Options{
		Limits:         requestLimits,
		CommandTimeout: o.CommandTimeout, LoginTimeout: o.LoginTimeout, WriteTimeout: o.WriteTimeout, IdleTimeout: o.IdleTimeout, RestAfter: o.restAfter,
		UnauthMemory: o.UnauthMemory,
		Reserve:      func(evict func()) preauth.Memory { return &memReservation{limit: &s.unauthMemory, evict: evict} },
	})
}

func (s *Server) newSession(conn net.Conn, listen string) *session {
	address := conn.RemoteAddr().String()
	if conn.RemoteAddr().Network() == "unix" {
		address = listen
	}
	c := &session{
		options: &s.options,
		run:     s.run,
		server:  s,
		log:     s.options.Logger,
		client:  commands.Client{ID: s.counters.lastID.Add(1), Addr: address, Proto: 2, Since: time.Now()},
	}
	c.unauth = memReservation{limit: &s.unauthClients, evict: c.evictUnauth}
	c.memory = memReservation{limit: &s.memory, evict: c.evicted}
	c.describeLocked() // without mu: no other goroutine has the session yet
	c.windowSpace.L = &c.mu
	c.flushTask = c.flush
	c.client.Push = c.push
	c.client.SetTracked = func(bytes int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tracked = bytes
		c.updateMemoryLocked()
	}
	c.client.Expel = c.expel
	c.guard = s.guards.Guard(conn, c)
	return c
}

// Describe implements commands.Connections.
func (s *Server) Describe() []commands.Description {
	all := s.snapshot()
	list := make([]commands.Description, len(all))
	for i, c := range all {
		c.mu.Lock()
		list[i] = c.description
		c.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b commands.Description) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Cut implements commands.Connections. The client receives no reply to commands in
// flight, and locks granted by them are released.
func (s *Server) Cut(id int64) bool {
	c := s.sessionBy(id)
	if c != nil {
		c.guard.Close()
	}
	return c != nil
}

// Client implements commands.Connections.
func (s *Server) Client(id int64) *commands.Client {
	if c := s.sessionBy(id); c != nil {
		return &c.client
	}
	return nil
}

func (s *Server) sessionBy(id int64) *session {
	for _, c := range s.snapshot() {
		if c.client.ID == id {
			return c
		}
	}
	return nil
}

// Stats returns a snapshot; its fields are read one after another.
func (s *Server) Stats() commands.ClientCounts {
	s.mu.Lock()
	connected := len(s.sessions)
	s.mu.Unlock()
	c := &s.counters
	return commands.ClientCounts{
		Connected: connected, Limit: s.options.MaxClients, Memory: s.memory.bytes(),
		Accepted: c.total.Load(), Rejected: c.rejected.Load(), Commands: c.commands.Load(),
		Slow: c.slow.Load(), Evicted: c.evicted.Load(), Panics: c.panics.Load(),
	}
}

var _ commands.Connections = (*Server)(nil)
