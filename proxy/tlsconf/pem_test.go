package tlsconf

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

// selfSigned is a certificate that is valid for an hour before and after now, and its key.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func write(t *testing.T, parts ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What follows a half certificate, or a half certificate itself, must not be left out silently.
func TestRead_RefusesAFileOfWhichAPartCannotBeRead(t *testing.T) {
	certificate, key := selfSigned(t)
	half, garbage := certificate[:len(certificate)/2], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
	keyFile := write(t, key)
	for name, c := range map[string]struct {
		parts [][]byte
		says  string // "": it is complete
	}{
		"one":                  {[][]byte{certificate}, ""},
		"two":                  {[][]byte{certificate, certificate}, ""},
		"comments and a key":   {[][]byte{[]byte("# ours\n"), certificate, key, []byte("\n# theirs\n"), certificate}, ""},
		"the second is half":   {[][]byte{certificate, half}, "1 of its 2 certificates are damaged or not complete"},
		"the second of three":  {[][]byte{certificate, half, []byte("\n"), certificate}, "are damaged or not complete"},
		"only a beginning":     {[][]byte{certificate, []byte("-----BEGIN CERTIFICATE-----\n")}, "1 of its 2"},
		"the second is no DER": {[][]byte{certificate, garbage}, "certificate 2 cannot be read"},
	} {
		file := write(t, c.parts...)
		_, err := ReadAuthorities(file)
		_, pairErr := ReadPair(file, keyFile)
		for _, err := range []error{err, pairErr} {
			if (err == nil) != (c.says == "") || err != nil && !(strings.Contains(err.Error(), c.says) && strings.Contains(err.Error(), file)) {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
		}
	}
	if _, err := ReadAuthorities(keyFile); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Error(err)
	}
}

func TestUnusable_NamesTheTime(t *testing.T) {
	certificate, key := selfSigned(t)
	pair, err := ReadPair(write(t, certificate), write(t, key))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	for at, want := range map[time.Time]string{
		now: "", now.Add(2 * time.Hour): "it has expired at 2026-11-28T01:00:00Z", now.Add(-2 * time.Hour): "it is not valid before 2026-11-27T23:00:00Z",
	} {
		if got := Unusable(config, at); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}
