package admin

// visitors.go answers: how many connections may be open at this door? They share
// the process' descriptors with the lock clients, and anybody who reaches the
// address may open them: /healthz asks for no login.

import (
	"net"
	"net/http"
	"sync"
)

const (
	mostVisitors = 256 // in all
	mostOfHost   = 64  // of one address: 16 pages, scrapers and balancers have room
)

// visitors counts the open connections of each host.
type visitors struct {
	mu   sync.Mutex
	all  int
	from map[string]int
	away map[net.Conn]bool // turned away, and not yet closed by the server
}

// note is the server's hook for every change of a connection. One too many is
// closed before a byte of it is read.
func (v *visitors) note(conn net.Conn, state http.ConnState) {
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	switch state {
	case http.StateNew:
		if !v.enter(conn, host) {
			conn.Close()
		}
	case http.StateClosed, http.StateHijacked:
		v.leave(conn, host)
	}
}

func (v *visitors) enter(conn net.Conn, host string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all >= mostVisitors || v.from[host] >= mostOfHost {
		v.away[conn] = true
		return false
	}
	v.all++
	v.from[host]++
	return true
}

func (v *visitors) leave(conn net.Conn, host string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.away[conn] {
		delete(v.away, conn)
		return
	}
	v.all--
	if v.from[host]--; v.from[host] == 0 {
		delete(v.from, host)
	}
}
