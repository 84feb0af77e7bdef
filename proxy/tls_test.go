package proxy

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockd/proxy/tlsconf"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	a.write(a.file, "CERTIFICATE", a.cert.Raw)
	return a
}

// sign makes a certificate of a new key; without a parent it signs itself.
func (a *authority) sign(template *x509.Certificate, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// issue writes a certificate for 127.0.0.1 and its key, over what is there.
func (a *authority) issue(name, certFile, keyFile string) {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(certFile, "CERTIFICATE", cert.Raw)
	a.write(keyFile, "PRIVATE KEY", raw)
}

func (a *authority) write(path, kind string, raw []byte) {
	a.t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// pair is a certificate of the authority for a client.
func (a *authority) pair(name string) tls.Certificate {
	a.t.Helper()
	dir := a.t.TempDir()
	certFile, keyFile := filepath.Join(dir, "c"), filepath.Join(dir, "k")
	a.issue(name, certFile, keyFile)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// trusting is a client's configuration.
func (a *authority) trusting(certificates ...tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, Certificates: certificates, ServerName: "127.0.0.1"}
}

// secureOptions has one TLS listener, with a certificate of a named "server".
func secureOptions(t *testing.T, a *authority) Options {
	dir := t.TempDir()
	o := Options{Listen: []string{"tls:127.0.0.1:0"}, TLS: tlsconf.Files{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}}
	a.issue("server", o.TLS.CertFile, o.TLS.KeyFile)
	return o
}

func bareAddress(s *Server) string { return strings.TrimPrefix(s.Addrs()[0], tlsPrefix) }

// dialTLS is a client whose handshake is done on both sides, or the reason why not.
func dialTLS(t *testing.T, s *Server, config *tls.Config) (*client, error) {
	t.Helper()
	raw, err := net.Dial("tcp", bareAddress(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(testTimeout))
	conn := tls.Client(raw, config)
	c := &client{Conn: conn, t: t, in: bufio.NewReader(conn)}
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	c.send(command("PING")) // with TLS 1.3 the server may refuse after the client is done
	if _, err := c.in.Peek(1); err != nil {
		return nil, err
	}
	c.expect("+PONG\r\n")
	return c, nil
}

func TestTLS_CarriesCommandsAndTheLastReply(t *testing.T) {
	a := newAuthority(t, "ca")
	s := serve(t, secureOptions(t, a), newDispatcher())
	c, err := dialTLS(t, s, a.trusting())
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 60_000)
	c.send(command("ECHO", long) + "PING\r\n" + command("QUIT"))
	c.expectEnd("$60000\r\n" + long + "\r\n+PONG\r\n+OK\r\n") // the end is announced, not cut
	if v := c.Conn.(*tls.Conn).ConnectionState().Version; v < tls.VersionTLS12 {
		t.Errorf("version %x", v)
	}
}

func TestTLS_RefusesWhatIsOlderThan12(t *testing.T) {
	a := newAuthority(t, "ca")
	s := serve(t, secureOptions(t, a), newDispatcher())
	config := a.trusting()
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, err := dialTLS(t, s, config); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	config = a.trusting()
	config.MaxVersion = tls.VersionTLS12
	if _, err := dialTLS(t, s, config); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
}

func TestTLS_RefusesSuitesWithoutAuthenticatedEncryption(t *testing.T) {
	a := newAuthority(t, "ca")
	s := serve(t, secureOptions(t, a), newDispatcher())
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: false, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: true,
	} {
		config := a.trusting()
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{suite}
		if _, err := dialTLS(t, s, config); (err == nil) != want {
			t.Errorf("%s: %v, want accepted = %v", tls.CipherSuiteName(suite), err, want)
		}
	}
}

func TestTLS_ClosesOnPlaintextWithoutExecutingIt(t *testing.T) {
	a := newAuthority(t, "ca")
	d := newDispatcher()
	s := serve(t, secureOptions(t, a), d)
	for _, words := range []string{command("PING"), "PING\r\n", "GET / HTTP/1.1\r\n\r\n"} {
		raw, err := net.Dial("tcp", bareAddress(s))
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(testTimeout))
		if _, err := io.WriteString(raw, words); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(raw) // a reset is as good an end
		if strings.Contains(string(got), "PONG") || strings.Contains(string(got), "ERR") {
			t.Errorf("%q got %q", words, got)
		}
	}
	forgotten(t, s)
	if got := d.started(); len(got) != 0 {
		t.Errorf("started %q", got)
	}
}

// Who runs the daemon cannot see otherwise why clients fail, such as after the end of a certificate.
func TestTLS_WarnsOfFailedHandshakesOnceAMinuteAndNotOfProbes(t *testing.T) {
	a := newAuthority(t, "ca")
	var log strings.Builder // written under the handler's lock, read after the server has ended its clients
	options := secureOptions(t, a)
	options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, options, newDispatcher())
	for _, words := range []string{"", "PING\r\n", "PING\r\n", ""} {
		raw, err := net.Dial("tcp", bareAddress(s))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(raw, words)
		_ = raw.(*net.TCPConn).CloseWrite()
		_ = raw.SetDeadline(time.Now().Add(testTimeout))
		_, _ = io.ReadAll(raw)
		raw.Close()
	}
	forgotten(t, s)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "TLS handshake failed") != 1 || !strings.Contains(text, "does not look like a TLS handshake") {
		t.Errorf("got %s", text)
	}
}

// Row 34: a hello of TLS on the plain port is no command, and nothing of it is executed. The
// connection is closed at once: no deadline ends it here.
func TestTLS_OnThePlainPortIsNeverACommand(t *testing.T) {
	d := newDispatcher()
	var log bytes.Buffer
	s := serve(t, Options{CommandTimeout: time.Hour, LoginTimeout: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))}, d)
	for range 3 {
		raw, err := net.Dial("tcp", s.Addrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(testTimeout))
		var record tls.RecordHeaderError
		if err := tls.Client(raw, &tls.Config{ServerName: "127.0.0.1"}).Handshake(); !errors.As(err, &record) || string(record.RecordHeader[:]) != "-ERR " {
			t.Errorf("the handshake ended with %v, want an error of RESP", err)
		}
	}
	forgotten(t, s)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "TLS handshake on a port without TLS") != 1 || !strings.Contains(text, "hint=") {
		t.Errorf("got %s", text)
	}
	if got := d.started(); len(got) != 0 {
		t.Errorf("started %q", got)
	}
}

// Clients that connect and send nothing delay no other client, and the listener closes
// over handshakes that never end.
func TestTLS_ASilentClientDelaysNoOtherClient(t *testing.T) {
	a := newAuthority(t, "ca")
	s := serve(t, secureOptions(t, a), newDispatcher())
	for range 20 {
		raw, err := net.Dial("tcp", bareAddress(s))
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
	}
	if _, err := dialTLS(t, s, a.trusting()); err != nil {
		t.Error(err)
	}
}

func TestTLS_RequestsClientCertificatesAsConfigured(t *testing.T) {
	servers, clients, others := newAuthority(t, "servers"), newAuthority(t, "clients"), newAuthority(t, "others")
	good, foreign := clients.pair("good"), others.pair("foreign")
	for _, c := range []struct {
		mode                tlsconf.ClientAuth
		none, good, foreign bool
	}{
		{"", true, true, true}, {tlsconf.AuthOff, true, true, true}, {tlsconf.AuthOptional, true, true, false}, {tlsconf.AuthRequired, false, true, false},
	} {
		options := secureOptions(t, servers)
		options.TLS.CAFile, options.TLS.ClientAuth = clients.file, c.mode
		s := serve(t, options, newDispatcher())
		try := func(what string, want bool, certificates ...tls.Certificate) {
			config := servers.trusting()
			// Sent whatever the server accepts, as an attacker would.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &certificates[0], nil
			}
			if _, err := dialTLS(t, s, config); (err == nil) != want {
				t.Errorf("%q, %s: %v", c.mode, what, err)
			}
		}
		try("no certificate", c.none)
		try("a good one", c.good, good)
		try("a foreign one", c.foreign, foreign)
	}
}

func TestTLS_ReloadsCertificatesWithoutDroppingClients(t *testing.T) {
	a := newAuthority(t, "ca")
	options := secureOptions(t, a)
	s := serve(t, options, newDispatcher())
	name := func(c *client) string {
		return c.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	before, err := dialTLS(t, s, a.trusting())
	if err != nil {
		t.Fatal(err)
	}
	a.issue("renewed", options.TLS.CertFile, options.TLS.KeyFile)
	if err := s.ReloadTLS(); err != nil {
		t.Fatal(err)
	}
	after, err := dialTLS(t, s, a.trusting())
	if err != nil || name(before) != "server" || name(after) != "renewed" {
		t.Fatalf("got %q, then %q, %v", name(before), name(after), err)
	}
	if err := os.WriteFile(options.TLS.CertFile, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.ReloadTLS(); err == nil || !strings.Contains(err.Error(), options.TLS.CertFile) {
		t.Errorf("got %v", err)
	}
	if c, err := dialTLS(t, s, a.trusting()); err != nil || name(c) != "renewed" {
		t.Errorf("a reload that failed left something else: %v", err)
	}
	before.send("PING\r\n")
	before.expect("+PONG\r\n")
}

func TestNew_ReportsWhatIsWrongWithTLS(t *testing.T) {
	a := newAuthority(t, "ca")
	for part, change := range map[string]func(*tlsconf.Files){
		"names no CertFile and KeyFile":          func(o *tlsconf.Files) { *o = tlsconf.Files{} },
		"no such file":                           func(o *tlsconf.Files) { o.CertFile = "/does/not/exist" },
		"allowed are off, optional and required": func(o *tlsconf.Files) { o.ClientAuth = "perhaps" },
		"TLS CA of clients":                      func(o *tlsconf.Files) { o.ClientAuth = tlsconf.AuthRequired },
		"holds no certificate":                   func(o *tlsconf.Files) { o.ClientAuth, o.CAFile = tlsconf.AuthRequired, o.KeyFile },
	} {
		options := secureOptions(t, a)
		options.Logger = quiet()
		change(&options.TLS)
		if _, err := New(options, newDispatcher()); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q", err, part)
		}
	}
}

func TestTLS_RejectsUncountedConnectionsWithoutPlaintext(t *testing.T) {
	a := newAuthority(t, "ca")
	options := secureOptions(t, a)
	options.MaxPerAddress = 1
	s := serve(t, options, newDispatcher())
	if _, err := dialTLS(t, s, a.trusting()); err != nil {
		t.Fatal(err)
	}
	raw, err := net.Dial("tcp", bareAddress(s))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(testTimeout))
	if got, _ := io.ReadAll(raw); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// A CA file that was written half must not close the connections of the CA that is missing in it.
func TestTLS_AReloadOfAHalfFileKeepsThePreviousCAs(t *testing.T) {
	a, foreign := newAuthority(t, "ca"), newAuthority(t, "foreign")
	options := secureOptions(t, a)
	options.TLS.ClientAuth, options.TLS.CAFile = tlsconf.AuthRequired, filepath.Join(t.TempDir(), "clients.pem")
	both := append(pemOf(t, foreign), pemOf(t, a)...)
	if err := os.WriteFile(options.TLS.CAFile, both, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, options, newDispatcher())
	c, err := dialTLS(t, s, a.trusting(a.pair("client")))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(options.TLS.CAFile, both[:len(both)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.ReloadTLS(); err == nil || !strings.Contains(err.Error(), options.TLS.CAFile+": 1 of its 2 certificates") {
		t.Errorf("got %v", err)
	}
	c.send(command("PING"))
	c.expect("+PONG\r\n")

	stranger := newAuthority(t, "stranger")
	if _, err := dialTLS(t, s, a.trusting(stranger.pair("stranger"))); err == nil {
		t.Error("a client of another CA is served")
	}
	if _, err := dialTLS(t, s, a.trusting()); err == nil {
		t.Error("a client without a certificate is served")
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, `msg="client certificate rejected"`) != 1 || !strings.Contains(text, "tls-ca has signed") {
		t.Errorf("got %s", text)
	}
}

func pemOf(t *testing.T, a *authority) []byte {
	t.Helper()
	text, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
