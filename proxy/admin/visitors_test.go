package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// knock connects and asks for /healthz on a connection that stays open; it tells
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
	for i := range mostOfHost {
		conn, served := knock(t, address)
		defer conn.Close()
		if !served {
			t.Fatalf("connection %d of %d was turned away", i+1, mostOfHost)
		}
		open = append(open, conn)
	}
	conn, served := knock(t, address)
	conn.Close()
	if served {
		t.Errorf("connection %d of one address was served", mostOfHost+1)
	}
	open[0].Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // the server sees it go
		conn, served := knock(t, address)
		conn.Close()
		if served {
			return
		}
		if time.Now().After(end) {
			t.Fatal("one has gone, and nobody else is served")
		}
	}
}
