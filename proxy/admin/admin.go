package admin

// admin.go contains the Server of the admin endpoint: its options, start and shutdown.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
)

// tlsPrefix marks an address that uses TLS, as for the port.
const tlsPrefix = "tls:"

const (
	headerTimeout  = 5 * time.Second  // a probe sends its few lines at once
	idleTimeout    = 2 * time.Minute  // longer than the interval of most scrapers
	maxHeader      = 16 << 10         // bytes
	requestTimeout = 30 * time.Second // for a request, except profiles
)

// Options of a Server.
type Options struct {
	Listen    string                      // "host:port" or "tls:host:port"; port 0 picks a free one
	TLS       func() (*tls.Config, error) // reads the certificates; needed with tls:
	LocalOnly bool                        // protected mode: serve this machine alone
	Pprof     bool                        // serve /debug/pprof
	Cmdline   []string                    // for /debug/pprof/cmdline: the command line without passwords
	Login     *access.Users
	Sources   Sources         // of metrics and page
	Commands  *commands.Table // runs the commands of the page
	// Ready reports whether locks can be granted now, by any group of masters or by the one that is
	// named, as a status of HTTP, and why, a line for each group.
	Ready  func(group string) (status int, why string)
	Logger *slog.Logger
}

// Server is the admin endpoint. New opens its address; it serves clients from Serve until
// Shutdown.
type Server struct {
	options      Options
	listener     net.Listener
	server       *http.Server
	limiter      connLimiter
	tls          atomic.Pointer[tls.Config] // nil without TLS
	draining     atomic.Bool
	watches      watches
	requestSlots chan struct{} // capacity maxRequests: requests of pages in flight
	walkSlot     chan struct{} // capacity 1: a step over the list of locks is under way
	accepting    sync.WaitGroup
}

// New opens the address; the error contains it.
func New(o Options) (*Server, error) {
	s := newServer(o)
	address, secure := strings.CutPrefix(o.Listen, tlsPrefix)
	if secure {
		if err := s.ReloadTLS(); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("admin-listen %q: %w", o.Listen, err)
	}
	if secure {
		ln = tls.NewListener(ln, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return s.tls.Load(), nil
		}})
	}
	s.listener = ln
	s.server = &http.Server{
		Handler:           s.limiter.limitRequests(s.routes()),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:  slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnState: s.limiter.onStateChange, ConnContext: s.limiter.connContext,
	}
	return s, nil
}

// newServer builds a server without an address.
func newServer(o Options) *Server {
	return &Server{
		options: o, watches: watches{locks: o.Sources.Locks, all: map[int]*watch{}},
		requestSlots: make(chan struct{}, maxRequests), walkSlot: make(chan struct{}, 1),
	}
}

// URL returns the address that it listens on.
func (s *Server) URL() string {
	scheme := "http"
	if strings.HasPrefix(s.options.Listen, tlsPrefix) {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// ReloadTLS reads the certificates again, for new handshakes; after an error
// the previous ones stay in use. Without TLS there is nothing to do.
func (s *Server) ReloadTLS() error {
	if !strings.HasPrefix(s.options.Listen, tlsPrefix) {
		return nil
	}
	config, err := s.options.TLS()
	if err != nil {
		return err
	}
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	s.tls.Store(config)
	return nil
}

// Serve accepts clients until Shutdown, on a goroutine that Shutdown waits for.
func (s *Server) Serve() {
	s.accepting.Go(func() {
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.options.Logger.Error("admin endpoint ended", "listen", s.options.Listen, "err", err)
		}
	})
}

// Drain makes /readyz fail from now on, so that balancers send no more clients.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown stops accepting at once and ends requests in flight when ctx ends. It
// returns when nothing runs anymore.
func (s *Server) Shutdown(ctx context.Context) {
	s.Drain()
	s.watches.end(nil)
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close() // the remaining requests have had their time
	}
	_ = s.listener.Close() // it is closed already if Serve was called
	s.accepting.Wait()
}
