//go:build linux

// The cost of each attack when a thousand unauthenticated clients run only this one, as
// fast as the daemon lets them. In a mix the cheap attacks would hide the expensive ones.

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	attackSpan = 15 * time.Second
	attackRest = 50 * time.Millisecond // between two visits of one client: the attackers use most of the machine
)

func TestCrowd_NoAttackByItselfFattensTheDaemon(t *testing.T) {
	needCrowd(t)
	for _, w := range attacks() {
		t.Run(strings.ReplaceAll(w.name, " ", "-"), func(t *testing.T) {
			plain, secure, d := launchWithTLS(t)
			guest := newGuest(t, d)
			guest.work(func() bool { return guest.turns.total+uint64(guest.failures) < firstComers })
			c := &crowd{name: w.name, address: plain, ways: []way{w.way}, rest: attackRest}
			if w.secure {
				c.address = secure
			}
			c.beside(t, d, guest, crowdSpan(attackSpan))
			if guest.failures > 0 || guest.turns.total == 0 {
				t.Errorf("%d turns of the well-behaved client failed, the last with: %v", guest.failures, guest.last)
			}
			if c.weight > hostileCeiling {
				t.Errorf("%d bytes per hostile connection, at most %d are allowed", c.weight, hostileCeiling)
			}
			if strings.Contains(d.process.text(), "panic") {
				t.Error("something panicked; the daemon's log is below")
			}
			c.leave(t, guest)
		})
	}
}

// Connections of a flood from one address are reset on accept. Clients that are connected
// already continue to work.
func TestCrowd_AFloodOfConnectionsIsTurnedAway(t *testing.T) {
	needCrowd(t)
	d := launchLocked(t)
	guest := newGuest(t, d)
	guest.work(func() bool { return guest.turns.total+uint64(guest.failures) < firstComers })
	c := &crowd{name: "flooding", address: d.address, rest: time.Millisecond, alone: true, ways: []way{{"nothing", func(_ context.Context, v *visit) error {
		return v.Conn.(*net.TCPConn).SetLinger(0)
	}}}}
	c.beside(t, d, guest, crowdSpan(attackSpan))
	if guest.failures > 0 || guest.turns.total == 0 {
		t.Errorf("%d turns of the well-behaved client failed, the last with: %v", guest.failures, guest.last)
	}
	info, err := guest.do("INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info.Text, "rejected_connections:")
	line, _, _ := strings.Cut(rest, "\r\n")
	if n, err := strconv.Atoi(line); err != nil || n == 0 {
		t.Errorf("rejected_connections is %q after %d visits", line, c.visited())
	}
	t.Logf("rejected_connections:%s of %d", line, c.visited())
}

// launchWithTLS is launchLocked with a second listener for TLS.
func launchWithTLS(t *testing.T) (plain, secure string, d *daemon) {
	t.Helper()
	cert, key := certificate(t)
	d = launchLocked(t, "--listen", "tls:127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	if d.secure == "" {
		t.Fatalf("the daemon listens on %s only", d.address)
	}
	return d.address, d.secure, d
}

// certificate writes an untrusted certificate and its key.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	err = errors.Join(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

// attack is a way, and the listener that it uses.
type attack struct {
	way
	secure bool
}

func attacks() []attack {
	word := "$16384\r\n" + strings.Repeat("x", 16<<10) + "\r\n"
	thousand := strings.Repeat("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", 1000)
	park := func(text string) func(context.Context, *visit) error {
		return func(_ context.Context, v *visit) error {
			_ = v.write(text)
			return v.end()
		}
	}
	return []attack{
		{way: way{"60 kB of a command", park("*9\r\n" + strings.Repeat(word, 3) + word[:12_000])}},
		{way: way{"16 kB of a command", park("*2\r\n$4\r\nECHO\r\n" + word[:16_000])}},
		{way: way{"2 kB of a command", park("*2\r\n$4\r\nECHO\r\n" + word[:2_000])}},
		{way: way{"60 kB of a line", park(strings.Repeat("x", 60_000))}},
		{way: way{"wrong passwords", park(strings.Repeat("AUTH guess\r\n", 3))}},
		{way: way{"big headers", park("*10\r\n$16384\r\n")}},
		{way: way{"GETs without reading", func(_ context.Context, v *visit) error {
			for range 20 {
				if v.write(thousand) != nil {
					break
				}
			}
			return v.end()
		}}},
		{way: way{"half a hello", park(longHello())}, secure: true},
		{way: way{"a record behind the handshake", halfRecord}, secure: true},
	}
}

// longHello is 63 kB of a client's hello of 64 kB, in records of the largest size.
func longHello() string {
	const record = 16 << 10
	header := "\x16\x03\x01" + string([]byte{record >> 8, record & 0xff})
	hello := "\x01\x00\xff\xff\x03\x03" + strings.Repeat("x", 4*record)
	var text strings.Builder
	for i := range 4 {
		text.WriteString(header + hello[i*record:(i+1)*record])
	}
	return text.String()[:text.Len()-record/16]
}

// halfRecord shakes hands and announces a record of the largest size.
func halfRecord(ctx context.Context, v *visit) error {
	if tls.Client(v, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) != nil {
		return nil // the daemon had no room for it
	}
	_ = v.write("\x17\x03\x03\x40\x11" + strings.Repeat("x", 16_000))
	_, err := io.Copy(io.Discard, v.Conn) // the content is encrypted and does not matter
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errIgnored
	}
	return nil
}
