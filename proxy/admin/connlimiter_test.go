package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	conn.Close()
	if served {
		t.Errorf("connection %d of one address was served", maxConnsPerHost+1)
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
