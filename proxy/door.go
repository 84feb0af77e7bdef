package proxy

// door.go answers: who is let in, and what are the others told?

import (
	"net"
	"strings"
	"time"
)

// admit makes a session of a socket, or turns it away and returns nil.
func (s *Server) admit(conn net.Conn, door string) *guard {
	g, refusal := s.enter(conn, door)
	if g != nil {
		s.counters.total.Add(1)
		g.receiver.(*session).takePlace()
		return g
	}
	if refusal != "" {
		s.counters.rejected.Add(1)
		if !strings.HasPrefix(door, tlsPrefix) { // who speaks TLS could not read it
			_ = conn.SetWriteDeadline(time.Now().Add(rejectTime))
			_, _ = conn.Write([]byte(refusal)) // whoever cannot take it learns by the close
		}
	}
	conn.Close()
	return nil
}

const (
	tooMany   = "-ERR max number of clients reached\r\n"
	localOnly = "-DENIED redlockd is in protected mode: it has no password and no users, so it serves its own machine alone, and you come from another one. " +
		"Set --requirepass or --users; or listen on 127.0.0.1 alone; or, where everybody who reaches this port may do everything, set --protected-mode off.\r\n"
)

// enter gives a socket its place, or says why there is none: "" means that
// nobody is let in any more.
func (s *Server) enter(conn net.Conn, door string) (g *guard, refusal string) {
	host, local := origin(conn.RemoteAddr())
	s.mu.Lock()
	defer s.mu.Unlock()
	counted := host != "" && s.options.MaxPerAddress > 0
	switch {
	case s.stopped:
		return nil, ""
	case s.options.LocalOnly && !local:
		return nil, localOnly
	case len(s.sessions) >= s.options.MaxClients, counted && s.hosts[host] >= s.options.MaxPerAddress:
		return nil, tooMany
	}
	session := s.newSession(conn, door)
	if r := recordsOf(conn); r != nil {
		r.guardedBy(session.guard)
	}
	session.client.Host = host
	s.sessions[session] = struct{}{}
	if counted {
		s.hosts[host]++
	}
	return session.guard, ""
}

// takePlace counts a client among those that have not signed in. They may take half of
// MaxClients; then the oldest is closed, as for their memory, because an honest client
// signs in at once. To turn the new one away, as Redis does at maxclients, would keep
// honest clients out for as long as silent ones stay. The count ends with the login, for
// good: a client that signs out has shown a password.
func (s *session) takePlace() {
	if !s.known() {
		s.place.raise(1)
	}
}

// makeRoom closes a client that has not signed in, for a newer one.
func (s *session) makeRoom() {
	if s.known() { // just now
		return
	}
	s.server.counters.rejected.Add(1)
	if s.server.silent.now() {
		s.log.Warn("unauthenticated connections hold half of max-clients; oldest closed", "client", s.client.Addr,
			"max-clients", s.options.MaxClients, "hint", "clients that connect have to sign in at once; look for scanners, and lower max-connects")
	}
	s.guard.Close()
}

// origin is whom a connection counts for: an IPv4 address, or an IPv6 network of
// 64 bits, since whoever has one such address has all of them. "" and local is
// what does not come over IP.
func origin(remote net.Addr) (host string, local bool) {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return "", true
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if network, err := ip.Prefix(64); err == nil && ip.Is6() {
		return network.Masked().String(), ip.IsLoopback()
	}
	return ip.String(), ip.IsLoopback()
}

// hurry tells whether a socket comes too soon after others of its address. Then
// it is reset: no farewell, no port kept for its past, nothing made for it.
func (s *Server) hurry(conn net.Conn) bool {
	if s.arrivals.admit(conn.RemoteAddr()) {
		return false
	}
	s.counters.rejected.Add(1)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails on a socket that is gone, which is as good
	}
	conn.Close()
	if s.hasty.now() {
		s.options.Logger.Warn("clients of one address connect too often and are reset; raise max-connects if they are meant to",
			"client", conn.RemoteAddr().String(), "max-connects", s.options.MaxConnects)
	}
	return true
}

// warnOfBrowser logs at most once a minute: such requests come in floods.
func (s *Server) warnOfBrowser(client string) {
	if s.browsers.now() {
		s.options.Logger.Warn("possible attack: an HTTP request was sent to this port; the connection is closed", "client", client)
	}
}
