package tlsconf

// pem.go reads PEM files as a whole. crypto/x509 and crypto/tls skip what they cannot read: of a
// file that was written half, a CA or the end of a chain would be missing without an error.

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// ReadAuthorities returns all certificates of a PEM file; the error names the file.
func ReadAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	certificates, err := parse(file, text)
	authorities := x509.NewCertPool()
	for _, certificate := range certificates {
		authorities.AddCert(certificate)
	}
	return authorities, err
}

// ReadPair returns a certificate with its chain, and its key. It reads each file once: they may be
// pipes.
func ReadPair(certFile, keyFile string) (tls.Certificate, error) {
	chain, err := os.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(chain, key) // first: it has the better errors
	if err == nil {
		_, err = parse(certFile, chain)
	}
	return pair, err
}

func parse(file string, text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d cannot be read: %w", file, len(all)+1, err)
		}
		all = append(all, certificate)
	}
	switch begun := bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----")); {
	case begun > len(all):
		return nil, fmt.Errorf("%s: %d of its %d certificates are damaged or not complete; write the file again", file, begun-len(all), begun)
	case len(all) == 0:
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return all, nil
}

// Unusable returns why clients do not accept the certificate at this time, "" if its time is right.
func Unusable(config *tls.Config, now time.Time) string {
	leaf := config.Certificates[0].Leaf
	switch {
	case leaf == nil:
	case now.After(leaf.NotAfter):
		return "it has expired at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		return "it is not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}
