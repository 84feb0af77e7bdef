package proxy

// memlimit_test.go tests what unauthenticated clients may keep together, how long they may go on and
// how often they may come.

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/proxy/preauth"
)

func TestMemLimit_EvictsTheOldestReservationWhenExceeded(t *testing.T) {
	b := &memLimit{max: 100}
	var evicted []string
	make := func(name string) *memReservation {
		return &memReservation{limit: b, evict: func() { evicted = append(evicted, name) }}
	}
	first, second, third := make("first"), make("second"), make("third")
	if !first.Grow(40) || !second.Grow(40) || !first.Grow(60) {
		t.Fatal("what fits is refused")
	}
	if !third.Grow(30) || strings.Join(evicted, " ") != "first" || b.used != 70 {
		t.Fatalf("evicted %q, %d bytes held", evicted, b.used)
	}
	if first.Grow(1) {
		t.Error("an evicted share is raised")
	}
	if second.Grow(80) || b.used != 30 { // it is the oldest itself
		t.Errorf("the oldest grows at the cost of others; %d bytes held", b.used)
	}
	if len(evicted) != 1 {
		t.Errorf("evicted %q; who is refused need not be told", evicted)
	}
	third.Release()
	third.Release()
	first.Release() // begun again from the start
	if !first.Grow(100) || b.used != 100 || b.list.Len() != 1 || b.list.Front().Value != any(first) {
		t.Errorf("%d bytes held", b.used)
	}
	first.End()
	if first.Grow(1) || b.used != 0 || b.list.Len() != 0 {
		t.Errorf("%d bytes held after the end", b.used)
	}
}

// A user whose clients leave little unread does not pay for one whose many clients leave more, though
// each of those is smaller.
func TestMemLimit_EvictsFromTheUserThatUsesMost(t *testing.T) {
	b := &memLimit{max: 100, evictLargest: true}
	var evicted []string
	of := func(name, user string, size int) *memReservation {
		r := &memReservation{limit: b, evict: func() { evicted = append(evicted, name) }}
		r.resize(user, size)
		return r
	}
	of("one large", "small", 25)
	for range 4 {
		of("one of many", "many", 12)
	}
	of("unknown", "", 20)
	newest := of("newest", "third", 9)
	if got := strings.Join(evicted, ", "); got != "one of many" || newest.ended {
		t.Errorf("evicted %q", got)
	}
	evicted = nil
	of("a stranger", "", 70)
	if got := strings.Join(evicted, ", "); got != "" || b.used > b.max {
		t.Errorf("evicted %q for a client without a user that uses most itself; %d bytes are used", got, b.used)
	}
}

// park has a client send most of a command, and returns when the server keeps it.
func park(t *testing.T, s *Server, held int) *client {
	t.Helper()
	c := dial(t, s)
	c.send("*2\r\n$4\r\nECHO\r\n$16384\r\n" + strings.Repeat("x", 12_000))
	for end := time.Now().Add(testTimeout); ; time.Sleep(time.Millisecond) {
		s.unauthMemory.mu.Lock()
		now := s.unauthMemory.used
		s.unauthMemory.mu.Unlock()
		if now == held {
			return c
		}
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held, want %d", now, held)
		}
	}
}

func TestUnauth_TheOldestIncompleteCommandIsEvicted(t *testing.T) {
	s := serve(t, Options{UnauthMemory: 2 * preauth.LargeSize}, guarded(t))
	first, second := park(t, s, preauth.LargeSize), park(t, s, 2*preauth.LargeSize)
	third := park(t, s, 2*preauth.LargeSize)
	got, err := io.ReadAll(first.in)
	if err != nil || !strings.HasPrefix(string(got), "-ERR unauthenticated clients hold more than 135168 bytes") ||
		!strings.HasSuffix(string(got), "raise unauthenticated-memory\r\n") {
		t.Errorf("got %q, %v", got, err)
	}
	// A client that sends little is not touched, and the others complete their commands.
	small := dial(t, s)
	small.send(command("AUTH", "pw") + command("ECHO", strings.Repeat("x", 60_000)))
	small.expect("+OK\r\n$60000\r\n" + strings.Repeat("x", 60_000) + "\r\n")
	for _, c := range []*client{second, third} {
		c.send(strings.Repeat("x", 16<<10-12_000) + "\r\n" + command("AUTH", "pw") + command("QUIT"))
		c.expectEnd(noAuth + "+OK\r\n+OK\r\n")
		c.Close()
	}
	first.Close()
	small.Close()
	forgotten(t, s)
	s.unauthMemory.mu.Lock()
	defer s.unauthMemory.mu.Unlock()
	if s.unauthMemory.used != 0 || s.unauthMemory.list.Len() != 0 {
		t.Errorf("%d bytes are held without a reservation", s.unauthMemory.used)
	}
}

func TestServer_ResetsClientsThatConnectTooOften(t *testing.T) {
	s, err := New(Options{Listen: []string{"127.0.0.1:0"}, MaxConnects: 1, Logger: quiet()}, guarded(t))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.connRates = preauth.NewConnRates(1, func() time.Time { return now }) // no bucket fills again
	start(t, s)
	for range 5 {
		c := dial(t, s)
		c.send(command("PING"))
		c.expect(noAuth)
	}
	conn, err := net.Dial("tcp", s.Addrs()[0])
	if err == nil { // else reset already
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(testTimeout))
		if got, err := io.ReadAll(conn); len(got) > 0 || err == nil {
			t.Errorf("got %q, %v, want a reset", got, err)
		}
	}
	for end := time.Now().Add(testTimeout); s.Stats().Rejected != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d rejected, want 1", s.Stats().Rejected)
		}
	}
}

func TestTLS_AHandshakeHasFiveSeconds(t *testing.T) {
	a := newAuthority(t, "ca")
	config, err := secureOptions(t, a).TLS.Load()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &Server{run: newDispatcher(), options: completed(Options{Logger: quiet()}), sessions: map[*session]struct{}{}, hosts: map[string]int{}}
		s.openGuards()
		l := &clientListener{server: s, name: "test", secure: true}
		ours, theirs := net.Pipe()
		defer theirs.Close()
		s.tls.Store(config)
		g := l.take(ours)
		if g == nil {
			t.Fatal("nobody is let in")
		}
		start := time.Now()
		if l.handshake(g) {
			t.Error("a handshake with a silent client succeeded")
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(s.sessions) != 0 {
			t.Error("the silent client is still there")
		}
	})
}

func TestTLS_WhatAHelloAnnouncesComesOutOfTheBudget(t *testing.T) {
	const long, cost = "\x16\x03\x01\x40\x00", 24<<10 + 16<<10*3/2 // see handshakeCost
	s := guardless(Options{UnauthMemory: cost + cost/2})
	unauth := func(hello ...string) (*preauth.TLSConn, *witness) {
		conn, w := preauth.WrapTLS(&wire{pieces: hello, end: io.EOF}, &tls.Config{}), &witness{unauth: true}
		s.guards.Guard(conn, w)
		return conn, w
	}
	read := func(c *preauth.TLSConn) error {
		_, err := c.NetConn().Read(make([]byte, len(long)))
		return err
	}
	first, closed := unauth(long)
	second, known := unauth(bytewise(long)...) // a header that comes byte by byte
	if err := read(first); err != nil || s.unauthMemory.used != cost {
		t.Fatalf("%d bytes are held, want %d; %v", s.unauthMemory.used, cost, err)
	}
	for range long {
		if err := read(second); err != nil {
			t.Fatalf("the newer one is refused: %v", err)
		}
	}
	if !closed.closed {
		t.Error("the oldest handshake was not closed")
	}
	known.unauth = false
	if err := second.FinishHandshake(); err != nil || s.unauthMemory.used != 0 {
		t.Errorf("%d bytes are held for a client that is known; %v", s.unauthMemory.used, err)
	}
}
