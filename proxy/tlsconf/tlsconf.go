// Package tlsconf reads the certificate of listeners, and checks those of clients. It is used
// for clients and for the admin endpoint.
package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// ClientAuth is the policy for clients' certificates.
type ClientAuth string

const (
	AuthOff      ClientAuth = "off"      // no certificate is requested
	AuthOptional ClientAuth = "optional" // a certificate that is sent must be signed by the CA
	AuthRequired ClientAuth = "required" // every client must send one, signed by the CA
)

// Files names PEM files.
type Files struct {
	CertFile   string // the certificate and its chain to the CA
	KeyFile    string
	CAFile     string     // signs clients' certificates; needed unless ClientAuth is off
	ClientAuth ClientAuth // "" is AuthOff
}

// Load reads the files; the error contains the file and its problem.
func (f Files) Load() (*tls.Config, error) {
	if f.CertFile == "" || f.KeyFile == "" {
		return nil, errors.New("proxy: Listen has an address with tls:, and TLS names no CertFile and KeyFile")
	}
	pair, err := ReadPair(f.CertFile, f.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("proxy: TLS certificate %q with key %q: %w", f.CertFile, f.KeyFile, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		CipherSuites: suites12(),
		// A resumed session would not see that the CA has changed.
		SessionTicketsDisabled: true,
	}
	switch f.ClientAuth {
	case AuthOff, "":
		return config, nil
	case AuthOptional:
		config.ClientAuth = tls.VerifyClientCertIfGiven
	case AuthRequired:
		config.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		return nil, fmt.Errorf("proxy: TLS client auth is %q, allowed are off, optional and required", f.ClientAuth)
	}
	if config.ClientCAs, err = ReadAuthorities(f.CAFile); err != nil {
		return nil, fmt.Errorf("proxy: TLS CA of clients: %w", err)
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

// Unverified returns why the configuration does not accept a client's certificates, nil if
// it does, or if there is none to verify.
func Unverified(config *tls.Config, certificates []*x509.Certificate) error {
	if config.ClientCAs == nil || len(certificates) == 0 { // tls-client-auth optional
		return nil
	}
	options := x509.VerifyOptions{
		Roots: config.ClientCAs, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, certificate := range certificates[1:] {
		options.Intermediates.AddCert(certificate)
	}
	_, err := certificates[0].Verify(options)
	return err
}
