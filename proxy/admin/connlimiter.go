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
	mostVisitors = 256 // in all
	mostOfHost   = 64  // of one address: enough for 16 pages, scrapers and balancers
	// So many of them serve only /healthz and /readyz.
	keptForProbes       = 32
	keptForProbesOfHost = 8
)

// connLimiter counts the open connections of each host.
type visitors struct {
	mu   sync.Mutex
	all  map[net.Conn]*visit
	from map[string]*crowd
	sum  crowd
	last int // sequence of the latest
}

// connCount is the number of open connections, and of those with a request in flight that
// is no probe.
type crowd struct{ open, served int }

// httpConn is one connection.
type visit struct {
	host     string
	sequence int
	complete bool // a request of it was complete
	busy     bool // a request is in flight
}

func newVisitors() *visitors {
	return &visitors{all: make(map[net.Conn]*visit), from: make(map[string]*crowd)}
}

// connKey is the context key for the connection of a request.
type visitKey struct{}

func (v *visitors) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitKey{}, conn)
}

// onStateChange is the server's hook for every change of a connection. A connection beyond
// the limit is closed before a byte of it is read.
func (v *visitors) note(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		if evicted := v.enter(conn, host); evicted != nil {
			shut(evicted)
		}
	case http.StateClosed, http.StateHijacked:
		v.leave(conn)
	}
}

// closeSocket closes the socket at once: the alert that crypto/tls sends first may wait
// seconds, and this is the goroutine that accepts.
func shut(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	conn.Close()
}

// register counts a connection; it returns the one to close, which may be this one.
func (v *visitors) enter(conn net.Conn, host string) (evicted net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ofHost := v.from[host]
	switch {
	case ofHost != nil && ofHost.open >= mostOfHost:
		evicted = v.oldestLocked(func(one *visit) bool { return one.host == host && !one.complete })
	case v.sum.open >= mostVisitors:
		if evicted = v.oldestLocked(func(one *visit) bool { return !one.complete }); evicted == nil {
			evicted = v.oldestLocked(func(one *visit) bool { return !one.busy })
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
func (v *visitors) oldestLocked(evictable func(*visit) bool) (oldest net.Conn) {
	for conn, one := range v.all {
		if evictable(one) && (oldest == nil || one.sequence < v.all[oldest].sequence) {
			oldest = conn
		}
	}
	return oldest
}

func (v *visitors) addLocked(conn net.Conn, host string) {
	v.last++
	v.all[conn] = &visit{host: host, sequence: v.last}
	if v.from[host] == nil {
		v.from[host] = &crowd{}
	}
	v.from[host].open++
	v.sum.open++
}

func (v *visitors) removeLocked(conn net.Conn) {
	one := v.all[conn]
	delete(v.all, conn)
	v.from[one.host].open--
	v.sum.open--
	v.forgetLocked(one.host)
}

func (v *visitors) forgetLocked(host string) {
	if *v.from[host] == (crowd{}) {
		delete(v.from, host)
	}
}

func (v *visitors) leave(conn net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all[conn] != nil { // else it was evicted
		v.removeLocked(conn)
	}
}

// limitRequests serves a request unless the remaining connections are reserved for probes.
func (v *visitors) keepingFree(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(visitKey{}).(net.Conn)
		probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		end, served := v.begin(conn, probe)
		defer end()
		if !served {
			w.Header().Set("Connection", "close")
			answer(w, http.StatusServiceUnavailable, "too many requests of this address, or of all together, are in flight; /healthz and /readyz are still served")
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// beginRequest counts a complete request; end ends it.
func (v *visitors) begin(conn net.Conn, probe bool) (end func(), served bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one := v.all[conn]
	if one == nil { // closed just now
		return func() {}, true
	}
	one.complete, one.busy = true, true
	of := v.from[one.host]
	served = probe || v.sum.served < mostVisitors-keptForProbes && of.served < mostOfHost-keptForProbesOfHost
	counted := served && !probe
	if counted {
		v.sum.served++
		of.served++
	}
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		one.busy = false
		if counted {
			v.sum.served--
			of.served--
			v.forgetLocked(one.host)
		}
	}, served
}
