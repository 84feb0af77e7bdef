// Package admin is the operator's door: a live page, figures, health and profiles
// over HTTP. It decides nothing and serves nobody who takes locks.
//
// Who may: /healthz and /readyz answer everybody who reaches the address, because
// probes have no passwords, and they tell nothing but yes, no, how many
// masters vote and that bootstrap is set. /metrics needs a user with the category read and /debug/pprof one
// with the category admin, by HTTP's Basic authentication, wherever the port needs
// a login; the page at / needs read, shows the keys that the user may use, and
// releases locks by force for users with that category; nobody is exempt for coming from this machine, for a proxy in front
// makes everybody come from there. Where the port needs no login and protected
// mode is on, both serve this machine alone, as the port does.
package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlockd/commands"
)

// tlsPrefix stands before an address on which TLS is spoken, as for the port.
const tlsPrefix = "tls:"

const (
	headerTime = 5 * time.Second  // a probe sends its few lines at once
	idleTime   = 2 * time.Minute  // longer than the interval of most scrapers
	mostHeader = 16 << 10         // bytes
	reaperTime = 30 * time.Second // for a request, but for profiles
)

// Login tells who may look, see commands.Table.
type Login interface {
	Visit(host, name, password string) (commands.Visitor, error)
	NeedsLogin() bool
}

var _ Login = (*commands.Table)(nil)

// Options of a Server.
type Options struct {
	Listen    string                      // "host:port" or "tls:host:port"; port 0 picks a free one
	TLS       func() (*tls.Config, error) // reads the certificates; needed with tls:
	LocalOnly bool                        // protected mode: figures for this machine alone
	Pprof     bool                        // serve /debug/pprof
	Cmdline   []string                    // what /debug/pprof/cmdline shows: the command line without passwords
	Login     Login
	Figures   prometheus.Gatherer
	Sources   Sources // of the page
	Desk      Desk    // does what the page asks for
	// Ready says whether locks can be granted now, and why, in one line.
	Ready  func() (ready bool, why string)
	Logger *slog.Logger
}

// Server is the door. Its address is taken by New, its clients are served from
// Serve until Shutdown.
type Server struct {
	options  Options
	listener net.Listener
	server   *http.Server
	tls      atomic.Pointer[tls.Config] // nil without TLS
	draining atomic.Bool
	lookouts *lookouts     // nil without a page
	streams  chan struct{} // mostStreams: pages that are open
	readers  readers       // of those pages
	asking   chan struct{} // mostAsked: commands under way
	serving  bool          // Serve was called
	done     chan struct{} // closed when nobody is accepted any more
}

// New takes the address; the error names it.
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
	visitors := newVisitors()
	s.server = &http.Server{
		Handler:           visitors.keepingFree(s.routes()),
		ReadHeaderTimeout: headerTime, ReadTimeout: reaperTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader,
		ErrorLog:  slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnState: visitors.note, ConnContext: visitors.context,
	}
	return s, nil
}

// newServer has no address yet.
func newServer(o Options) *Server {
	s := &Server{options: o, done: make(chan struct{}), streams: make(chan struct{}, mostStreams), asking: make(chan struct{}, mostAsked)}
	if o.Sources.Looks != nil {
		s.lookouts = newLookouts(o.Sources, o.Logger)
	}
	return s
}

// URL is where it listens.
func (s *Server) URL() string {
	scheme := "http"
	if strings.HasPrefix(s.options.Listen, tlsPrefix) {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// ReloadTLS reads the certificates again, for handshakes to come; after an error
// the former stay in force. Without TLS there is nothing to do.
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
	s.serving = true
	go s.accept()
}

func (s *Server) accept() {
	defer close(s.done)
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.options.Logger.Error("the admin door closed by itself", "listen", s.options.Listen, "cause", err)
	}
}

// Drain makes /readyz say no from now on, so that balancers send nobody any more.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown ends accepting at once and requests under way when ctx ends. It
// returns when nothing runs any more.
func (s *Server) Shutdown(ctx context.Context) {
	s.Drain()
	if s.lookouts != nil {
		s.lookouts.close() // pages would never end by themselves
	}
	if !s.serving {
		s.listener.Close()
		return
	}
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close() // who is still there has had its time
	}
	<-s.done
}
