package admin

// connlimiter.go limits the open connections of the admin endpoint, and reserves some of
// them for probes. They share the process' descriptors with the lock clients, and
// anybody who reaches the address may open them: /healthz needs no login.
//
// When all connections, or all of one address, are in use, a new one takes the place of an
// older one: probes often share their address with others, behind a proxy or on one machine.
// The oldest connection without a complete request is evicted, because probes send theirs at
// once; else the oldest one between two requests. Requests for other paths than the probes'
// leave some connections free.

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

const (
	maxConns        = 256 // in all
	maxConnsPerHost = 64  // of one address: enough for 16 pages, scrapers and balancers
	// So many of them serve only /healthz and /readyz.
	reservedForProbes        = 32
	reservedForProbesPerHost = 8
)

// connLimiter has the open connections: so few that it counts by looking at all of them.
type connLimiter struct {
	mu  sync.Mutex
	all []*httpConn // the oldest first
}

// httpConn is one connection. All but conn and host is guarded by connLimiter.mu.
type httpConn struct {
	conn     net.Conn
	host     string
	complete bool // a request of it was complete
	busy     bool // a request is in flight
	served   bool // that request is no probe
}

// connKey is the context key for the httpConn of a request.
type connKey struct{}

// connContext is the server's hook for every new connection. A connection beyond the limit
// is closed before a byte of it is read.
func (cl *connLimiter) connContext(ctx context.Context, conn net.Conn) context.Context {
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	c := &httpConn{conn: conn, host: host}
	if evicted := cl.register(c); evicted != nil {
		closeSocket(evicted.conn)
	}
	return context.WithValue(ctx, connKey{}, c)
}

// onStateChange is the server's hook for every change of a connection.
func (cl *connLimiter) onStateChange(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		cl.unregister(conn)
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

// register adds a connection; it returns the one to close, which may be this one.
func (cl *connLimiter) register(c *httpConn) (evicted *httpConn) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	rival := func(one *httpConn) bool { return one.host == c.host } // gives its place to c
	if cl.countLocked(rival) < maxConnsPerHost {
		if len(cl.all) < maxConns {
			cl.all = append(cl.all, c)
			return nil
		}
		rival = func(*httpConn) bool { return true }
	}
	if evicted = cl.removeLocked(func(one *httpConn) bool { return rival(one) && !one.complete }); evicted == nil {
		evicted = cl.removeLocked(func(one *httpConn) bool { return rival(one) && !one.busy })
	}
	if evicted == nil {
		return c
	}
	cl.all = append(cl.all, c)
	return evicted
}

func (cl *connLimiter) unregister(conn net.Conn) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.removeLocked(func(one *httpConn) bool { return one.conn == conn }) // none if it was evicted
}

// removeLocked removes the oldest such connection and returns it, nil if there is none.
func (cl *connLimiter) removeLocked(such func(*httpConn) bool) *httpConn {
	at := slices.IndexFunc(cl.all, such)
	if at < 0 {
		return nil
	}
	removed := cl.all[at]
	cl.all = slices.Delete(cl.all, at, at+1)
	return removed
}

func (cl *connLimiter) countLocked(such func(*httpConn) bool) (n int) {
	for _, one := range cl.all {
		if such(one) {
			n++
		}
	}
	return n
}

// limitRequests serves a request unless the remaining connections are reserved for probes.
func (cl *connLimiter) limitRequests(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connKey{}).(*httpConn)
		probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		served := cl.beginRequest(c, probe)
		defer cl.endRequest(c)
		if !served {
			w.Header().Set("Connection", "close")
			writeText(w, http.StatusServiceUnavailable, "too many requests of this address, or of all together, are in flight; /healthz and /readyz are still served")
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// beginRequest notes a complete request; endRequest ends it.
func (cl *connLimiter) beginRequest(c *httpConn, probe bool) (served bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	all := cl.countLocked(func(one *httpConn) bool { return one.served })
	ofHost := cl.countLocked(func(one *httpConn) bool { return one.served && one.host == c.host })
	served = probe || all < maxConns-reservedForProbes && ofHost < maxConnsPerHost-reservedForProbesPerHost
	c.complete, c.busy, c.served = true, true, served && !probe
	return served
}

func (cl *connLimiter) endRequest(c *httpConn) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	c.busy, c.served = false, false
}
