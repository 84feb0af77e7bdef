package proxy

// tls.go adds TLS to client connections, below the guard, so that all of its limits
// apply. The handshake is part of the time before the login, see guard/unauth.go, and has a
// deadline: a client that connects and sends nothing delays no other client.

import (
	"crypto/tls"
	"slices"

	"redlockd/commands"
	"redlockd/proxy/guard"
	"redlockd/proxy/preauth"
	"redlockd/proxy/tlsconf"
)

const tlsPrefix = "tls:"

// ReloadTLS reads the files again, for new handshakes, and ends the connections
// whose client's certificate the new CA did not sign. After an error the previous ones
// stay in use. Without TLS listeners there is nothing to do.
func (s *Server) ReloadTLS() error {
	if !slices.ContainsFunc(s.listeners, func(l *clientListener) bool { return l.secure }) {
		return nil
	}
	config, err := s.options.TLS.Load()
	if err != nil {
		return err
	}
	s.tls.Store(config)
	warnUnusable(s.options.Logger, config, s.options.TLS.CertFile)
	for _, c := range s.snapshot() {
		if why := unverified(c.guard, config); why != "" {
			c.expel(why)
		}
	}
	return nil
}

// handshake returns false if the connection is closed.
func (l *clientListener) handshake(g *guard.Conn) bool {
	if err := g.Handshake(); err != nil {
		logHandshake(&l.server.rareLog, g.RemoteAddr().String(), l.name, err)
		g.Close()
		return false
	}
	// A reload during the handshake did not check this certificate. Either the reload finds
	// the handshake done, or its CA is found here.
	if why := unverified(g, l.server.tls.Load()); why != "" {
		l.server.options.Logger.Info("connection ended by the daemon", "client", g.RemoteAddr().String(), "err", why)
		g.Close()
		return false
	}
	return true
}

// unverified returns why the configuration does not accept the client's certificate, "" if
// it does, or if there is none to verify.
func unverified(g *guard.Conn, config *tls.Config) commands.Expelled {
	conn, ok := g.Conn.(*preauth.TLSConn)
	if !ok {
		return ""
	}
	if err := tlsconf.Unverified(config, conn.PeerCertificates()); err != nil {
		return commands.Expelled("the client's certificate is no longer accepted (tls-ca was read again: " + err.Error() + "); this connection is closed")
	}
	return ""
}
