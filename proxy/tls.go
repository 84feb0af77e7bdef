package proxy

// tls.go answers: how is TLS spoken with clients? Below the guard, so that all
// of its limits hold. The handshake runs on a goroutine of its own with a
// deadline: whoever connects and says nothing keeps nobody else waiting.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	tlsPrefix     = "tls:"
	handshakeTime = 5 * time.Second // several round trips around the world
)

// ClientAuth says what is asked of clients' certificates.
type ClientAuth string

const (
	AuthOff      ClientAuth = "off"      // nothing
	AuthOptional ClientAuth = "optional" // one that is shown must be signed by the CA
	AuthRequired ClientAuth = "required" // one must be shown, signed by the CA
)

// TLS names PEM files.
type TLS struct {
	CertFile   string // the certificate and what leads to its CA
	KeyFile    string
	CAFile     string     // signs clients' certificates; needed unless ClientAuth is off
	ClientAuth ClientAuth // "" is AuthOff
}

// load reads the files; the error names the file and what is wrong with it.
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

// ReloadTLS reads the files again, for the handshakes to come. After an error
// the former ones stay in force. Without TLS listeners there is nothing to do.
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
		return nil
	}
	return nil
}

// acceptSecure returns connections whose handshake is done.
func (l *listener) acceptSecure() (net.Conn, error) {
	l.greet.Do(func() { l.server.greeters.Go(l.acceptAndGreet) })
	select {
	case g := <-l.ready:
		return g, nil
	case <-l.server.drained:
		return nil, net.ErrClosed
	}
}

// acceptAndGreet starts a handshake for everybody who is let in. There are never
// more of them than clients may be connected.
func (l *listener) acceptAndGreet() {
	for {
		g, err := l.acceptNext()
		if err != nil {
			return
		}
		l.server.greeters.Go(func() { l.handshake(g) })
	}
}

// handshake hands the connection on, or closes it.
func (l *listener) handshake(g *guard) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	if err := g.Conn.(secured).HandshakeContext(ctx); err != nil {
		l.server.options.Logger.Debug("TLS handshake failed", "client", g.RemoteAddr().String(), "listen", l.name, "cause", err)
		g.Close()
		return
	}
	select {
	case l.ready <- g:
	case <-l.server.drained:
		g.Close()
	}
}

// secured is a client's connection with TLS in it. It closes the socket at once: the alert that crypto/tls sends first may
// wait seconds for a client that does not read.
type secured struct {
	*tls.Conn
}

func (c secured) Close() error { return c.NetConn().Close() }
