package admin

// visitors.go bounds the connections that are open at this door, and keeps some of
// them for probes. They share the process' descriptors with the lock clients, and
// anybody who reaches the address may open them: /healthz asks for no login.
//
// A connection without a complete request is the first to go, the oldest first: probes
// send theirs at once. When all connections are taken, those between two requests go,
// too. Requests for anything but the probes' paths leave some connections free.

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

const (
	mostVisitors = 256 // in all
	mostOfHost   = 64  // of one address: 16 pages, scrapers and balancers have room
	// So many of them answer /healthz and /readyz alone.
	keptForProbes       = 32
	keptForProbesOfHost = 8
)

// visitors counts the open connections of each host.
type visitors struct {
	mu   sync.Mutex
	all  map[net.Conn]*visit
	from map[string]*crowd
	sum  crowd
	last int // sequence of the latest
}

// crowd is how many connections there are, and how many of them have a request under
// way that is no probe.
type crowd struct{ open, served int }

// visit is one connection.
type visit struct {
	host     string
	sequence int
	complete bool // a request of it was complete
	busy     bool // one is under way
}

func newVisitors() *visitors {
	return &visitors{all: make(map[net.Conn]*visit), from: make(map[string]*crowd)}
}

// visitKey finds the connection of a request.
type visitKey struct{}

func (v *visitors) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitKey{}, conn)
}

// note is the server's hook for every change of a connection. One too many is
// closed before a byte of it is read.
func (v *visitors) note(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		if away := v.enter(conn, host); away != nil {
			shut(away)
		}
	case http.StateClosed, http.StateHijacked:
		v.leave(conn)
	}
}

// shut closes the socket at once: the alert that crypto/tls sends first may wait
// seconds, and this is the goroutine that accepts.
func shut(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	conn.Close()
}

// enter counts a connection; it returns the one that has to go, which may be this one.
func (v *visitors) enter(conn net.Conn, host string) (away net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	crowdOf := v.from[host]
	switch {
	case crowdOf != nil && crowdOf.open >= mostOfHost:
		away = v.oldestLocked(func(one *visit) bool { return one.host == host && !one.complete })
	case v.sum.open >= mostVisitors:
		if away = v.oldestLocked(func(one *visit) bool { return !one.complete }); away == nil {
			away = v.oldestLocked(func(one *visit) bool { return !one.busy })
		}
	default:
		v.addLocked(conn, host)
		return nil
	}
	if away == nil {
		return conn
	}
	v.removeLocked(away)
	v.addLocked(conn, host)
	return away
}

// oldestLocked is the oldest connection that may go, nil if there is none.
func (v *visitors) oldestLocked(mayGo func(*visit) bool) (oldest net.Conn) {
	for conn, one := range v.all {
		if mayGo(one) && (oldest == nil || one.sequence < v.all[oldest].sequence) {
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
	if v.all[conn] != nil { // else it was turned away
		v.removeLocked(conn)
	}
}

// keepingFree serves a request unless the connections that are left are for probes.
func (v *visitors) keepingFree(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(visitKey{}).(net.Conn)
		probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		end, served := v.begin(conn, probe)
		defer end()
		if !served {
			w.Header().Set("Connection", "close")
			answer(w, http.StatusServiceUnavailable, "as many requests are under way as this address or all may have; those of /healthz and /readyz are still served")
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// begin notes a complete request; end notes its end.
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
