package proxy

// tls.go adds TLS to client connections, below the guard, so that all of its limits
// apply. The handshake is part of the time before the login, see preauth.go, and has a
// deadline: a client that connects and sends nothing delays no other client.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"redlockd/commands"
)

const (
	tlsPrefix        = "tls:"
	handshakeTimeout = 5 * time.Second // several round trips around the world
)

// ClientAuth is the policy for clients' certificates.
type ClientAuth string

const (
	AuthOff      ClientAuth = "off"      // no certificate is requested
	AuthOptional ClientAuth = "optional" // a certificate that is sent must be signed by the CA
	AuthRequired ClientAuth = "required" // every client must send one, signed by the CA
)

// TLS names PEM files.
type TLS struct {
	CertFile   string // the certificate and its chain to the CA
	KeyFile    string
	CAFile     string     // signs clients' certificates; needed unless ClientAuth is off
	ClientAuth ClientAuth // "" is AuthOff
}

// load reads the files; the error contains the file and its problem.
func (t TLS) load() (*tls.Config, error) {
	if t.CertFile == "" || t.KeyFile == "" {
		return nil, errors.New("proxy: Listen has an address with tls:, and TLS names no CertFile and KeyFile")
	}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("proxy: TLS certificate %q with key %q: %w", t.CertFile, t.KeyFile, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		CipherSuites: suites12(),
		// A resumed session would not see that the CA has changed.
		SessionTicketsDisabled: true,
	}
	switch t.ClientAuth {
	case AuthOff, "":
		return config, nil
	case AuthOptional:
		config.ClientAuth = tls.VerifyClientCertIfGiven
	case AuthRequired:
		config.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		return nil, fmt.Errorf("proxy: TLS client auth is %q, allowed are off, optional and required", t.ClientAuth)
	}
	authorities, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("proxy: TLS CA of clients: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("proxy: TLS CA of clients %q holds no certificate in PEM", t.CAFile)
	}
	return config, nil
}

// suites12 are the cipher suites of TLS 1.2 that authenticate what they encrypt. Go's
// own list still contains those with CBC, for which timing attacks are known. TLS 1.3
// has no others.
func suites12() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// ReloadTLS reads the files again, for new handshakes, and ends the connections
// whose client's certificate the new CA did not sign. After an error the previous ones
// stay in use. Without TLS listeners there is nothing to do.
func (s *Server) ReloadTLS() error {
	for _, l := range s.listeners {
		if !l.secure {
			continue
		}
		config, err := s.options.TLS.load()
		if err != nil {
			return err
		}
		s.tls.Store(config)
		for _, c := range s.snapshot() {
			if why := c.guard.unverified(config); why != "" {
				c.expel(why)
			}
		}
		return nil
	}
	return nil
}

// handshake runs with the socket's deadlines: a context would cost every unauthenticated
// client another goroutine. false means that the connection is closed.
func (l *clientListener) handshake(g *guardConn) bool {
	conn := g.Conn.(tlsConn)
	g.wait(g.pools.turns.reserve(handshakeTurns))
	g.setReadDeadline(handshakeTimeout)
	_ = conn.SetWriteDeadline(time.Now().Add(handshakeTimeout)) // fails on a closed socket only, which Handshake reports
	if err := conn.Handshake(); err != nil {
		l.server.options.Logger.Debug("TLS handshake failed", "client", g.RemoteAddr().String(), "listen", l.name, "err", err)
		g.Close()
		return false
	}
	g.setReadDeadline(0)
	if !recordsOf(conn).finishHandshake() {
		g.Close()
		return false
	}
	// A reload during the handshake did not check this certificate. Either the reload finds
	// the handshake done, or its CA is found here.
	if why := g.unverified(l.server.tls.Load()); why != "" {
		l.server.options.Logger.Info("connection ended by the daemon", "client", g.RemoteAddr().String(), "err", why)
		g.Close()
		return false
	}
	return true
}

// unverified returns why the configuration does not accept the client's certificate, "" if
// it does, or if there is none to verify.
func (g *guardConn) unverified(config *tls.Config) commands.Expelled {
	conn, ok := g.Conn.(tlsConn)
	if !ok || config.ClientCAs == nil || !recordsOf(conn).handshakeDone.Load() {
		return ""
	}
	shown := conn.ConnectionState().PeerCertificates
	if len(shown) == 0 {
		return "" // tls-client-auth optional
	}
	options := x509.VerifyOptions{
		Roots: config.ClientCAs, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, certificate := range shown[1:] {
		options.Intermediates.AddCert(certificate)
	}
	if _, err := shown[0].Verify(options); err != nil {
		return commands.Expelled("the client's certificate is no longer accepted (tls-ca was read again: " + err.Error() + "); this connection is closed")
	}
	return ""
}

// wrapTLS puts TLS over a socket.
func wrapTLS(conn net.Conn, config *tls.Config) tlsConn {
	return tlsConn{tls.Server(&tlsRecords{Conn: conn}, config)}
}

// attach makes the layer below TLS count for its guard.
func (r *tlsRecords) attach(g *guardConn) {
	r.guard = g
	r.memory = memReservation{limit: &g.pools.limit, evict: r.evict}
}

// tlsConn is a client's connection with TLS. It closes the socket at once:
// the alert that crypto/tls sends first may wait seconds for a client that does
// not read.
type tlsConn struct {
	*tls.Conn
}

func (c tlsConn) Close() error { return c.NetConn().Close() }
