package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

type tlsConfig = tls.Config

// handshake finishes TLS before anything else is read, so that a wrong
// certificate is reported as such and not as a broken greeting.
func handshake(ctx context.Context, raw net.Conn, m Master) (net.Conn, error) {
	config := m.TLS.Clone()
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(m.Address)
		if err != nil {
			host = m.Address
		}
		config.ServerName = host
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return conn, nil
}
