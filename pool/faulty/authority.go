// Authority issues the certificates that servers and clients present in one test. Its files
// are deleted with the test.

package faulty

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates. Its methods are for the test's own goroutine.
type Authority struct {
	t      testing.TB
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	dir    string
	issued int64

	CAFile string // PEM
}

// Certificate is presented by one side of a connection.
type Certificate struct{ CertFile, KeyFile string } // PEM

// NewAuthority makes an authority that is trusted only by programs that read its
// CAFile.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	raw := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of " + t.Name()},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, &a.key)
	var err error
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	a.CAFile = a.write("ca.pem", "CERTIFICATE", raw)
	return a
}

// Issue signs a certificate for both ends of a connection under these names, each
// a host or an IP address.
func (a *Authority) Issue(names ...string) Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "issued to a test"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	var key *ecdsa.PrivateKey
	cert := a.sign(template, &key)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return Certificate{
		CertFile: a.write(fmt.Sprintf("cert-%d.pem", a.issued), "CERTIFICATE", cert),
		KeyFile:  a.write(fmt.Sprintf("key-%d.pem", a.issued), "PRIVATE KEY", raw),
	}
}

// sign makes a key and a certificate of it; the first one signs itself.
func (a *Authority) sign(template *x509.Certificate, key **ecdsa.PrivateKey) []byte {
	a.t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	*key = made
	parent := a.cert
	if parent == nil {
		parent = template
	}
	a.issued++
	template.SerialNumber = big.NewInt(a.issued)
	// A day either way: a test may step the clocks of its servers.
	template.NotBefore, template.NotAfter = time.Now().AddDate(0, 0, -1), time.Now().AddDate(0, 0, 1)
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &made.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return raw
}

func (a *Authority) write(name, kind string, raw []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}
