package admin

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// knock connects and requests /healthz on a connection that stays open; it tells
// whether it was answered.
func knock(t *testing.T, address string) (net.Conn, bool) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return conn, false
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	switch {
	case err == nil:
		response.Body.Close()
		return conn, response.StatusCode == http.StatusOK
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return conn, false
	}
	t.Fatal(err)
	return nil, false
}

func TestServer_LetsOneAddressOpenSoManyConnections(t *testing.T) {
	s, err := New(figures())
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	defer s.Shutdown(context.Background())
	address := strings.TrimPrefix(s.URL(), "http://")
	var open []net.Conn
	for i := range maxConnsPerHost {
		conn, served := knock(t, address)
		defer conn.Close()
		if !served {
			t.Fatalf("connection %d of %d was turned away", i+1, maxConnsPerHost)
		}
		open = append(open, conn)
	}
	conn, served := knock(t, address)
	defer conn.Close()
	if !served {
		t.Errorf("connection %d of one address was turned away, although the others have no request in flight", maxConnsPerHost+1)
	}
	if _, err := open[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest of %d connections of one address stays open: %v", maxConnsPerHost+1, err)
	}
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	if n := len(s.limiter.all); n != maxConnsPerHost {
		t.Errorf("one address has %d connections, allowed are %d", n, maxConnsPerHost)
	}
}

// Half requests from one address: the oldest of them makes room for each probe.
func TestServer_HalfRequestsKeepNoProbeOut(t *testing.T) {
	s, err := New(figures())
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	defer s.Shutdown(context.Background())
	address := strings.TrimPrefix(s.URL(), "http://")
	for i := range 360 {
		half, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer half.Close()
		if _, err := io.WriteString(half, "GET /healthz HTTP/1.1\r\nHost: loc"); err != nil {
			t.Fatal(err)
		}
		if i%9 != 8 {
			continue
		}
		conn, served := knock(t, address)
		conn.Close()
		if !served {
			t.Fatalf("a probe was turned away after %d half requests", i+1)
		}
	}
}

// slowly opens a connection that keeps the server waiting, and does not wait itself. Over TLS
// the handshake comes first, unless the client sends nothing.
func slowly(t *testing.T, address string, secure bool, sends string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if sends == "" {
		return conn
	}
	if secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	_, _ = io.WriteString(conn, sends) // one that is turned away need not send
	return conn
}

// Probes come from the address of the attack: behind a proxy, and on one machine, all share it.
func TestServer_AnswersProbesBesideFiveHundredSlowConnections(t *testing.T) {
	const plain, secure = "127.0.0.1:0", "tls:127.0.0.1:0"
	const half = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
	for _, c := range []struct{ name, listen, sends string }{
		{"silent", plain, ""},
		{"half a request", plain, half},
		{"kept alive", plain, half + "\r\n"},
		{"a body that never comes", plain, half + "Content-Length: 100000\r\n\r\n"},
		{"many requests at once", plain, strings.Repeat(half+"\r\n", 100)},
		{"no handshake", secure, ""},
		{"kept alive over TLS", secure, half + "\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := figures()
			o.Listen, o.TLS = c.listen, func() (*tls.Config, error) { return certificate(t, 1), nil }
			s, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			s.Serve()
			defer s.Shutdown(context.Background())
			for i := range 500 {
				defer slowly(t, s.listener.Addr().String(), c.listen == secure, c.sends).Close()
				if i%50 == 49 {
					// The server may notice the end of the two probes before late: they took two places.
					awaitRequests(t, s, c.sends, min(i+1, maxConnsPerHost-2))
					wantProbed(t, s)
				}
			}
		})
	}
}

func wantProbed(t *testing.T, s *Server) {
	t.Helper()
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := fetch(t, s.URL()+path); status != http.StatusOK {
			t.Fatalf("%s is %d", path, status)
		}
	}
}

// awaitRequests returns when so many connections have had a complete request, or none if that
// is what they send: an attack that has not arrived proves nothing.
func awaitRequests(t *testing.T, s *Server, sends string, want int) {
	t.Helper()
	if !strings.Contains(sends, "\r\n\r\n") {
		return
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.limiter.mu.Lock()
		n := s.limiter.countLocked(func(c *httpConn) bool { return c.complete && !c.busy })
		s.limiter.mu.Unlock()
		if n >= want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections have had a complete request, want %d", n, want)
		}
	}
}

// named is a connection that is only counted.
type named struct {
	net.Conn
	name string
}

func TestConnLimiter_EvictsWhenAllConnectionsAreInUse(t *testing.T) {
	v := &connLimiter{}
	enter := func(name, host string) (c *httpConn, away string) {
		c = &httpConn{conn: &named{name: name}, host: host}
		if gone := v.register(c); gone != nil {
			away = gone.conn.(*named).name
		}
		return c, away
	}
	var busy []*httpConn
	for i := range maxConns - 2 {
		c, _ := enter("busy", fmt.Sprint("host", i%100))
		served := v.beginRequest(c, false)
		if want := i < maxConns-reservedForProbes; served != want {
			t.Fatalf("request %d is served: %t", i, served)
		}
		busy = append(busy, c)
	}
	idle, _ := enter("idle", "a")
	served := v.beginRequest(idle, true)
	if v.endRequest(idle); !served {
		t.Error("a probe is not served")
	}
	enter("silent", "a")
	for _, want := range []string{"silent", "second", "third"} { // the idle one is older, and stays
		next := map[string]string{"silent": "second", "second": "third", "third": "fourth"}[want]
		if _, away := enter(next, "b"); away != want {
			t.Errorf("%q makes room, want %q", away, want)
		}
	}
	complete, _ := enter("complete", "b") // in place of the fourth
	v.beginRequest(complete, true)
	if _, away := enter("fifth", "b"); away != "idle" {
		t.Errorf("%q makes room, want the idle one", away)
	}
	for _, c := range slices.Clone(v.all) {
		v.unregister(c.conn)
	}
	for _, c := range busy {
		v.endRequest(c)
	}
	again, _ := enter("again", "host1")
	if served := v.beginRequest(again, false); !served || len(v.all) != 1 {
		t.Errorf("%d connections are counted after all have gone, and another is served: %t", len(v.all), served)
	}
}

func TestConnLimiter_ReservesSomeConnectionsOfAHostForProbes(t *testing.T) {
	v := &connLimiter{}
	all := make([]*httpConn, maxConnsPerHost)
	for i := range all {
		all[i] = &httpConn{conn: &named{}, host: "a"}
		if gone := v.register(all[i]); gone != nil {
			t.Fatalf("connection %d is turned away", i)
		}
	}
	for i, c := range all {
		if want := i < maxConnsPerHost-reservedForProbesPerHost; v.beginRequest(c, false) != want {
			t.Errorf("request %d of one host is served: %t", i, !want)
		}
	}
	if another := (&httpConn{conn: &named{}, host: "a"}); v.register(another) != another {
		t.Error("a connection with a request in flight makes room")
	}
	last := all[len(all)-1]
	v.endRequest(last)
	if !v.beginRequest(last, true) {
		t.Error("a probe is not served")
	}
	v.endRequest(last)
	v.endRequest(all[0])
	if !v.beginRequest(last, false) {
		t.Error("a request is not served although another one has ended")
	}
}
