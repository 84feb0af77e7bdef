package faulty

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
)

// greet shakes hands with a server in a name and asks it something.
func greet(address, name string, trusted *Authority, shown ...tls.Certificate) (reply string, err error) {
	pem, err := os.ReadFile(trusted.CAFile)
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: name, Certificates: shown})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err = conn.Write([]byte("PING\r\n")); err != nil {
		return "", err
	}
	answer := make([]byte, len("+PONG\r\n"))
	n, err := conn.Read(answer)
	return string(answer[:n]), err
}

func TestServer_SpeaksTLSToThoseWhoTrustItsAuthority(t *testing.T) {
	a := NewAuthority(t)
	s := WithTLS(a.Issue("127.0.0.1", "master.test")).Start(t)
	for restarted := range 2 {
		for _, name := range []string{"127.0.0.1", "master.test"} {
			if reply, err := greet(s.TLSAddr(), name, a); reply != "+PONG\r\n" {
				t.Errorf("as %s, after %d restarts: %q, %v", name, restarted, reply, err)
			}
		}
		s.Restart()
	}
	if _, err := greet(s.TLSAddr(), "127.0.0.1", NewAuthority(t)); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("trusting another authority: %v", err)
	}
	if _, err := greet(s.TLSAddr(), "other.test", a); err == nil || !strings.Contains(err.Error(), "other.test") {
		t.Errorf("in another name: %v", err)
	}
	if _, err := roundTrip(s.TLSAddr(), []any{"PING"}); err == nil {
		t.Error("the port for TLS answers without it")
	}
}

func TestServer_AsksClientsForCertificatesIfItsArgumentsSaySo(t *testing.T) {
	a := NewAuthority(t)
	s := WithTLS(a.Issue("127.0.0.1")).Start(t, "--tls-auth-clients", "yes", "--tls-ca-cert-file", a.CAFile)
	if reply, err := greet(s.TLSAddr(), "127.0.0.1", a); err == nil {
		t.Errorf("a client without a certificate: %q", reply)
	}
	mine := a.Issue("client.test")
	pair, err := tls.LoadX509KeyPair(mine.CertFile, mine.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := greet(s.TLSAddr(), "127.0.0.1", a, pair); reply != "+PONG\r\n" {
		t.Errorf("a client with a certificate: %q, %v", reply, err)
	}
}
