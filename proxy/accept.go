package proxy

// accept.go decides which sockets become sessions, and rejects the others.

import (
	"fmt"
	"net"
	"strings"
	"time"

	"redlockd/proxy/guard"
	"redlockd/proxy/preauth"
)

// accept makes a session of a socket, or rejects it and returns nil.
func (s *Server) accept(conn net.Conn, listen string) *guard.Conn {
	g, refusal := s.register(conn, listen)
	if g != nil {
		s.counters.total.Add(1)
		if c := g.Events.(*session); !c.Authenticated() {
			c.unauth.Grow(1)
		} else {
			s.connRates.Trust(c.client.Host)
		}
		return g
	}
	if refusal != "" {
		s.counters.rejected.Add(1)
		s.rareLog.Warn("connection rejected", "client", conn.RemoteAddr().String(), "listen", listen, "err", strings.Trim(refusal, "-\r\n"))
		if !strings.HasPrefix(listen, tlsPrefix) { // a TLS client could not read it
			_ = conn.SetWriteDeadline(time.Now().Add(rejectTimeout))
			_, _ = conn.Write([]byte(refusal)) // a client that cannot receive it sees the close
		}
	}
	conn.Close()
	return nil
}

const (
	tooManyClients = "-ERR max number of clients reached: %d of %s\r\n" // begins as that of Redis, which clients match
	protectedMode  = "-DENIED redlockd is in protected mode: it has no password and no users, so it serves its own machine alone, and you come from another one. " +
		"Set --requirepass or --users; or listen on 127.0.0.1 alone; or, where every client that reaches this port may do everything, set --protected-mode off.\r\n"
)

// register adds a session for a socket, or returns the error to send. "" means that the
// server has stopped and sends none.
func (s *Server) register(conn net.Conn, listen string) (g *guard.Conn, refusal string) {
	host, local := preauth.Origin(conn.RemoteAddr())
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.options.MaxPerAddress
	switch {
	case s.stopped:
		return nil, ""
	case s.options.LocalOnly && !local:
		return nil, protectedMode
	case len(s.sessions) >= s.options.MaxClients:
		return nil, fmt.Sprintf(tooManyClients, s.options.MaxClients, "this daemon (max-clients)")
	case host != "" && limit > 0 && s.hosts[host] >= limit:
		return nil, fmt.Sprintf(tooManyClients, limit, "your address (max-clients-per-address)")
	}
	session := s.newSession(conn, listen)
	session.client.Host = host
	s.sessions[session] = struct{}{}
	s.hosts[host]++
	return session.guard, ""
}

// evictUnauth closes an unauthenticated client in favour of a newer one. They may use half of
// MaxClients. Beyond that the oldest is closed, as for their memory, because an honest
// client authenticates at once. Redis rejects the newest at maxclients; that would lock
// honest clients out for as long as idle ones stay. A client counts until its first login:
// one that logs out later has already proved a password.
func (s *session) evictUnauth() {
	if s.Authenticated() { // just now
		return
	}
	s.server.counters.rejected.Add(1)
	s.server.rareLog.Warn("unauthenticated connections hold half of max-clients; oldest closed", "client", s.client.Addr,
		"max-clients", s.options.MaxClients, "hint", "clients have to authenticate right after they connect; look for scanners, and lower max-connects")
	s.guard.Close()
}

// connectsTooFast reports whether a socket exceeds the connection rate of its address. It
// resets such a socket: no reply, no port in TIME_WAIT, no session.
func (s *Server) connectsTooFast(conn net.Conn) bool {
	if s.connRates.Allow(conn.RemoteAddr()) {
		return false
	}
	s.counters.rejected.Add(1)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a socket that is closed already
	}
	conn.Close()
	s.rareLog.Warn("connection rate limit of an address reached; connections reset", "client", conn.RemoteAddr().String(),
		"max-connects", s.options.MaxConnects, "hint", "raise max-connects if these clients are meant to connect so often")
	return true
}
