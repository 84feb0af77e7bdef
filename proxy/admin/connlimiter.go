package admin

// connlimiter.go limits the open connections of the admin endpoint, and reserves some of
// them for probes. They share the process' descriptors with the lock clients, and
// anybody who reaches the address may open them: /healthz needs no login.
//
// A connection without a complete request is evicted first, the oldest first: probes
// send theirs at once. When all connections are in use, those between two requests are
// evicted, too. Requests for other paths than the probes' leave some connections free.

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

const (
	maxConns        = 256 // in all
	maxConnsPerHost = 64  // of one address: enough for 16 pages, scrapers and balancers
	// So many of them serve only /healthz and /readyz.
	reservedForProbes        = 32
	reservedForProbesPerHost = 8
)

// connLimiter counts the open connections of each host.
type connLimiter struct {
	mu    sync.Mutex
	all   map[net.Conn]*httpConn
	hosts map[string]connCount
	sum   connCount
	last  int // sequence of the latest
}

// connCount is the number of open connections, and of those with a request in flight that
// is no probe.
type connCount struct{ open, served int }

// httpConn is one connection.
type httpConn struct {
	host     string
	sequence int
	complete bool // a request of it was complete
	busy     bool // a request is in flight
}

func newConnLimiter() *connLimiter {
	return &connLimiter{all: make(map[net.Conn]*httpConn), hosts: make(map[string]connCount)}
}

// connKey is the context key for the connection of a request.
type connKey struct{}

func (v *connLimiter) connContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// onStateChange is the server's hook for every change of a connection. A connection beyond
// the limit is closed before a byte of it is read.
func (v *connLimiter) onStateChange(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		if evicted := v.register(conn, host); evicted != nil {
			closeSocket(evicted)
		}
	case http.StateClosed, http.StateHijacked:
		v.unregister(conn)
	}
}

// closeSocket closes the socket at once: the alert that crypto/tls sends first may wait
// seconds, and this is the goroutine that accepts.
func closeSocket(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	conn.Close()
}

// register counts a connection; it returns the one to close, which may be this one.
func (v *connLimiter) register(conn net.Conn, host string) (evicted net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.hosts[host].open >= maxConnsPerHost:
		evicted = v.oldestLocked(func(one *httpConn) bool { return one.host == host && !one.complete })
	case v.sum.open >= maxConns:
		if evicted = v.oldestLocked(func(one *httpConn) bool { return !one.complete }); evicted == nil {
			evicted = v.oldestLocked(func(one *httpConn) bool { return !one.busy })
		}
	default:
		v.addLocked(conn, host)
		return nil
	}
	if evicted == nil {
		return conn
	}
	v.removeLocked(evicted)
	v.addLocked(conn, host)
	return evicted
}

// oldestLocked returns the oldest connection that may be evicted, nil if there is none.
func (v *connLimiter) oldestLocked(evictable func(*httpConn) bool) (oldest net.Conn) {
	for conn, one := range v.all {
		if evictable(one) && (oldest == nil || one.sequence < v.all[oldest].sequence) {
			oldest = conn
		}
	}
	return oldest
}

func (v *connLimiter) addLocked(conn net.Conn, host string) {
	v.last++
	v.all[conn] = &httpConn{host: host, sequence: v.last}
	v.countLocked(host, 1, 0)
}

func (v *connLimiter) removeLocked(conn net.Conn) {
	v.countLocked(v.all[conn].host, -1, 0)
	delete(v.all, conn)
}

// countLocked adds to the counts of a host and of all.
func (v *connLimiter) countLocked(host string, open, served int) {
	c := v.hosts[host]
	c = connCount{c.open + open, c.served + served}
	v.sum = connCount{v.sum.open + open, v.sum.served + served}
	if v.hosts[host] = c; c == (connCount{}) {
		delete(v.hosts, host)
	}
}

func (v *connLimiter) unregister(conn net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all[conn] != nil { // else it was evicted
		v.removeLocked(conn)
	}
}

// limitRequests serves a request unless the remaining connections are reserved for probes.
func (v *connLimiter) limitRequests(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		end, served := v.beginRequest(conn, probe)
		defer end()
		if !served {
			w.Header().Set("Connection", "close")
			writeText(w, http.StatusServiceUnavailable, "too many requests of this address, or of all together, are in flight; /healthz and /readyz are still served")
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// beginRequest counts a complete request; end ends it.
func (v *connLimiter) beginRequest(conn net.Conn, probe bool) (end func(), served bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one := v.all[conn]
	if one == nil { // closed just now
		return func() {}, true
	}
	one.complete, one.busy = true, true
	counted := 0
	served = probe || v.sum.served < maxConns-reservedForProbes && v.hosts[one.host].served < maxConnsPerHost-reservedForProbesPerHost
	if served && !probe {
		counted = 1
	}
	v.countLocked(one.host, 0, counted)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		one.busy = false
		v.countLocked(one.host, 0, -counted)
	}, served
}
