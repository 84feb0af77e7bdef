package admin

// admin.go contains the Server of the admin endpoint: its options, start and shutdown.

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/proxy/preauth"
)

// tlsPrefix marks an address that uses TLS, as for the port.
const tlsPrefix = "tls:"

const (
	headerTimeout  = 5 * time.Second  // a probe sends its few lines at once
	idleTimeout    = 2 * time.Minute  // longer than the interval of most scrapers
	maxHeader      = 16 << 10         // bytes
	requestTimeout = 30 * time.Second // for a request, except profiles
	maxRequests    = 8                // of pages, at once
)

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

// userHandler serves an authorized user.
type userHandler func(http.ResponseWriter, *http.Request, access.HTTPUser)

// origin returns the host that a request counts for, in the same form as at the port.
func origin(remote string) (host string, local bool) {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "", false
	}
	return preauth.Origin(net.TCPAddrFromAddrPort(address))
}
