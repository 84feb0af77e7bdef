package admin

// routes.go contains the paths of the admin endpoint and the access checks.

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redlockd/commands/access"
	"redlockd/commands/diagnosis"
)

// maxScrapes bounds the scrapes that run at once: a few scrapers, and people.
const maxScrapes = 4

// profileTimeout is enough for the longest useful profile and its delivery.
const profileTimeout = 5 * time.Minute

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

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	// Whether masters vote is no reason to restart this process.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.readyz)
	figures := promhttp.HandlerFor(newFigures(s.options.Sources), promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: requestTimeout, EnableOpenMetrics: true,
	})
	mux.Handle("GET /metrics", s.guarded(access.CategoryRead, figures))
	if s.options.Pprof {
		for path, handler := range map[string]http.HandlerFunc{
			"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": s.cmdline, "/debug/pprof/profile": pprof.Profile,
			"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
		} {
			mux.Handle("GET "+path, s.guarded(access.CategoryAdmin, withProfileTimeout(handler)))
		}
	}
	s.routePage(mux)
	return mux
}

func (s *Server) routePage(mux *http.ServeMux) {
	read := func(path string, serve userHandler) {
		mux.Handle("GET "+path, s.protected(s.authorized(access.CategoryRead, serve)))
	}
	entries, _ := web.ReadDir("web") // it is in the binary
	for _, e := range entries {
		read("/"+e.Name(), file)
	}
	read("/{$}", file)
	read("/about", s.about)
	read("/state", s.limited(s.state))
	read("/locks", s.locks)
	read("/lock", s.limited(s.command("DINFO")))
	mux.Handle("POST /force", s.protected(s.authorized(access.CategoryForce, sentAsJSON(s.limited(s.command("DFORCE"))))))
}

// limited serves maxRequests at once.
func (s *Server) limited(serve userHandler) userHandler {
	return func(w http.ResponseWriter, r *http.Request, visitor access.HTTPUser) {
		select {
		case s.requestSlots <- struct{}{}:
			defer func() { <-s.requestSlots }()
			serve(w, r, visitor)
		case <-r.Context().Done():
		}
	}
}

// withProfileTimeout gives a profile the time that it was requested to take.
func withProfileTimeout(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(profileTimeout)) // a test's recorder has none
		handler.ServeHTTP(w, r)
	})
}

// cmdline serves the command line without passwords, in the form of net/http/pprof.
func (s *Server) cmdline(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, strings.Join(s.options.Cmdline, "\x00")) // a client that has left needs no reply
}

// readyz: a client that connects now can be granted a lock.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	status, why := s.options.Ready(r.URL.Query().Get("group"))
	if s.draining.Load() {
		status, why = http.StatusServiceUnavailable, "draining"
	}
	writeText(w, status, why)
}

// guarded serves users with the category, see doc.go.
func (s *Server) guarded(category string, inner http.Handler) http.Handler {
	return s.authorized(category, func(w http.ResponseWriter, r *http.Request, _ access.HTTPUser) { inner.ServeHTTP(w, r) })
}

// authorized is guarded for handlers that depend on the user.
func (s *Server) authorized(category string, serve userHandler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, local := origin(r.RemoteAddr)
		if s.options.LocalOnly && !local {
			writeText(w, http.StatusForbidden, "protected mode: without requirepass and users only this machine is served; set one of them, or --protected-mode off")
			return
		}
		if !s.options.Login.NeedsLogin() && !ownName(r.Host) {
			writeText(w, http.StatusForbidden, "without requirepass and users this is served under an address or a name without dots only, "+
				"because the owner of the name "+diagnosis.Printable(r.Host)+" could point it here; use an address, or set one of them")
			return
		}
		name, password, _ := r.BasicAuth()
		visitor, err := s.options.Login.Authenticate(host, name, password)
		switch {
		case err == nil && visitor.May(category):
			serve(w, r, visitor)
		case err == nil:
			writeText(w, http.StatusForbidden, access.ErrNoPermission.Error()+": the category "+category+" is needed")
		case errors.Is(err, access.ErrTooManyFailures):
			writeText(w, http.StatusTooManyRequests, err.Error())
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="redlockd", charset="UTF-8"`)
			writeText(w, http.StatusUnauthorized, err.Error())
		}
	})
}
