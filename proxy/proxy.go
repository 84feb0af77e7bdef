// Package proxy is the clients' side of redlockd: sockets, framing, order and
// limits. It knows no lock; what a command means is the Dispatcher's business.
package proxy

// proxy.go answers: who is connected, and how does the server start and end?
//
// Goroutines: one per listener (Serve), one per connection (redcon's, ends with
// its socket), and tasks of the writers' pool while there is something to write.

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
	"redlockd/redlock"

	"github.com/tidwall/redcon"
)

// Server accepts clients and runs their commands.
type Server struct {
	options   Options
	run       Dispatcher
	listeners []*listener
	writers   *writers
	pages     sync.Pool // of *[pageSize]byte, the guards'
	outs      sync.Pool // of *outBuffer, the pumps'
	counters  counters
	send      func(*redlock.Batch) // what queues a read batch's operations; tests watch it
	stopping  chan struct{}        // closed when Shutdown begins
	drained   chan struct{}        // closed when the last connection has ended
	released  chan struct{}        // closed when nothing runs any more
	tls       atomic.Pointer[tls.Config]
	greeters  sync.WaitGroup // accept and shake hands for TLS

	mu       sync.Mutex
	sessions map[*session]struct{}
	hosts    map[string]int // connections by Client.Host, with MaxPerAddress
	served   bool
	stopped  bool
	empty    chan struct{} // closed once stopped and no session is left
	browser  time.Time     // when a browser was last warned of
}

const outSize = 4096 // replies of some eighty locks

type outBuffer [outSize]byte

type counters struct {
	lastID, total, rejected, panics, commands, answeredTwice, slow, lost atomic.Int64
}

// Stats counts since New; Connected is now.
type Stats struct {
	Connected     int   // clients being served
	Total         int64 // clients accepted
	Rejected      int64 // clients turned away, see MaxClients
	Panics        int64 // panics contained; each cost a connection at most
	Commands      int64 // commands read
	AnsweredTwice int64 // second answers dropped; anything but 0 is a bug
	SlowClients   int64 // clients cut off because they did not read
	Lost          int64 // late answers whose client had gone
}

// New opens all listeners, or none: the error names the field and its value, or
// the address and why it could not be had. Nobody is served before Serve.
func New(options Options, run Dispatcher) (*Server, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	if run == nil {
		return nil, errors.New("proxy: the dispatcher is nil")
	}
	s := &Server{
		options:  options,
		run:      run,
		send:     (*redlock.Batch).Send,
		pages:    sync.Pool{New: func() any { return new([pageSize]byte) }},
		outs:     sync.Pool{New: func() any { return new(outBuffer) }},
		stopping: make(chan struct{}),
		drained:  make(chan struct{}),
		released: make(chan struct{}),
		sessions: make(map[*session]struct{}),
		hosts:    make(map[string]int),
		empty:    make(chan struct{}),
	}
	for _, address := range options.Listen {
		l, err := listen(address, options.UnixMode)
		if err != nil {
			s.closeListeners()
			return nil, err
		}
		l.server = s
		s.listeners = append(s.listeners, l)
	}
	if err := s.ReloadTLS(); err != nil {
		s.closeListeners()
		return nil, err
	}
	var err error
	s.writers, err = newWriters(options.MaxClients, options.Logger, func() { s.counters.panics.Add(1) })
	if err != nil {
		s.closeListeners()
		return nil, fmt.Errorf("proxy: writers' pool for MaxClients %d: %w", options.MaxClients, err)
	}
	return s, nil
}

// Addrs are the addresses listened on, in the order of Options.Listen, with the
// port the kernel chose; with TLS it is "tls:host:port", a unix socket is "unix:/path".
func (s *Server) Addrs() []string {
	names := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		names[i] = l.name
	}
	return names
}

// Serve serves until ctx ends, and then shuts down within DrainTimeout, or until
// Shutdown is called. It returns when nothing runs any more; nil means that
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
		accepting.Go(func() { s.accept(l) })
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
	s.greeters.Wait()
	return err
}

// accept runs redcon on one listener; it returns when the server has drained.
func (s *Server) accept(l *listener) {
	handle := func(conn redcon.Conn, command redcon.Command) {
		sessionOf(conn).receive(conn, command)
	}
	welcome := func(redcon.Conn) bool { return true }
	farewell := func(redcon.Conn, error) {} // the guard's Close has told the session
	server := redcon.NewServerNetwork(l.Addr().Network(), l.name, handle, welcome, farewell)
	if err := server.Serve(l); err != nil {
		s.options.Logger.Error("redcon ended", "listen", l.name, "cause", err)
	}
}

func sessionOf(conn redcon.Conn) *session {
	return conn.NetConn().(*guard).receiver.(*session)
}

func (s *Server) newSession(conn net.Conn, door string) *session {
	address := conn.RemoteAddr().String()
	if conn.RemoteAddr().Network() == "unix" {
		address = door
	}
	c := &session{
		options: &s.options,
		run:     s.run,
		server:  s,
		log:     s.options.Logger,
		client:  commands.Client{ID: s.counters.lastID.Add(1), Addr: address, Proto: 2, Since: time.Now()},
	}
	c.describeLocked() // nobody else has it yet
	c.room.L = &c.mu
	c.task = c.pumpTask
	c.guard = &guard{Conn: conn, options: &s.options, pages: &s.pages, receiver: c}
	return c
}

// Describe implements commands.Connections.
func (s *Server) Describe() []commands.Description {
	all := s.snapshot()
	list := make([]commands.Description, len(all))
	for i, c := range all {
		c.mu.Lock()
		list[i] = c.shown
		c.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b commands.Description) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Cut implements commands.Connections: whatever is in flight is lost to the
// client, and what it was granted is given back.
func (s *Server) Cut(id int64) bool {
	for _, c := range s.snapshot() {
		if c.client.ID == id {
			c.guard.Close()
			return true
		}
	}
	return false
}

var _ commands.Connections = (*Server)(nil)

// forget is called once per admitted session, when its socket is closed.
func (s *Server) forget(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.sessions[c]; !there {
		return
	}
	delete(s.sessions, c)
	if host := c.client.Host; host != "" && s.options.MaxPerAddress > 0 {
		if s.hosts[host]--; s.hosts[host] == 0 {
			delete(s.hosts, host)
		}
	}
	s.noteEmptyLocked()
}

func (s *Server) noteEmptyLocked() {
	if !s.stopped || len(s.sessions) > 0 {
		return
	}
	select {
	case <-s.empty:
	default:
		close(s.empty)
	}
}

// Shutdown stops accepting at once, lets commands in flight finish and their
// replies be written, and closes. When ctx ends first, the rest is cut off and
// the error says how many clients that were. Further calls wait likewise.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.stop() {
		select {
		case <-s.released:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.closeListeners()
	for _, c := range s.snapshot() {
		c.drain()
	}
	var err error
	select {
	case <-s.empty:
	case <-ctx.Done():
		cut := s.snapshot()
		for _, c := range cut {
			c.guard.Close()
		}
		<-s.empty
		if len(cut) > 0 {
			err = fmt.Errorf("proxy: %d clients were cut off with commands in flight: %w", len(cut), ctx.Err())
		}
	}
	close(s.drained)
	if failed := s.writers.close(); failed != nil {
		err = errors.Join(err, fmt.Errorf("proxy: writers' pool: %w", failed))
	}
	close(s.released)
	return err
}

// stop is true for the one caller that has to do the work.
func (s *Server) stop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.stopped = true
	close(s.stopping)
	s.noteEmptyLocked()
	return true
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		_ = l.Close() // a listener that cannot be closed is closed
	}
}

func (s *Server) snapshot() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*session, 0, len(s.sessions))
	for c := range s.sessions {
		all = append(all, c)
	}
	return all
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// pause waits, but not beyond the beginning of Shutdown.
func (s *Server) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopping:
	}
}

// warnOfBrowser logs at most once a minute: such requests come in floods.
func (s *Server) warnOfBrowser(client string) {
	s.mu.Lock()
	quiet := !s.browser.IsZero() && time.Since(s.browser) < time.Minute
	if !quiet {
		s.browser = time.Now()
	}
	s.mu.Unlock()
	if !quiet {
		s.options.Logger.Warn("possible attack: an HTTP request was sent to this port; the connection is closed", "client", client)
	}
}

// Stats is a snapshot; its fields are read one after another.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	connected := len(s.sessions)
	s.mu.Unlock()
	return Stats{
		Connected:     connected,
		Total:         s.counters.total.Load(),
		Rejected:      s.counters.rejected.Load(),
		Panics:        s.counters.panics.Load(),
		Commands:      s.counters.commands.Load(),
		AnsweredTwice: s.counters.answeredTwice.Load(),
		SlowClients:   s.counters.slow.Load(),
		Lost:          s.counters.lost.Load(),
	}
}
