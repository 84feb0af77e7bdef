// The daemon with TLS: the same client, to measure the cost of encryption.

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/rueidis"
)

func secureScenarios() []scenario {
	const n = 64
	return []scenario{{
		name: "daemon, one multiplexed client, TLS, " + callers(n),
		page: pageModes, peer: multiplexedName(n), run: pairs(n, openSecure),
	}}
}

// openSecure starts a daemon with TLS that uses the masters of the testbed.
func openSecure(ctx context.Context, tb *testbed, n int) (workerSet, error) {
	dir, err := os.MkdirTemp(tb.dir, "tls")
	if err != nil {
		return workerSet{}, err
	}
	cert, key, known, err := issue(dir)
	if err != nil {
		return workerSet{}, err
	}
	d, err := tb.startDaemon("secure", "--listen", "tls:127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	if err != nil {
		return workerSet{}, err
	}
	if err := d.ready(ctx); err != nil {
		d.process.terminate()
		return workerSet{}, err
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{d.secure}, TLSConfig: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS13},
	})
	if err != nil {
		d.process.terminate()
		return workerSet{}, err
	}
	return workerSet{workers: multiplexedWorkers(client, 0, n), daemons: []*daemon{d}, close: func() {
		client.Close()
		d.process.terminate()
	}}, nil
}

// issue writes a self-signed certificate for this machine, valid for a day.
func issue(dir string) (cert, key string, known *x509.CertPool, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return "", "", nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", nil, err
	}
	shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public})
	known = x509.NewCertPool()
	known.AppendCertsFromPEM(shown)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := os.WriteFile(cert, shown, 0o600); err != nil {
		return "", "", nil, err
	}
	return cert, key, known, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}
