package proxy

// memlimit_test.go tests what unauthenticated clients may keep together, how long they may go on and
// how often they may come.

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemLimit_EvictsTheOldestReservationWhenExceeded(t *testing.T) {
	b := &memLimit{max: 100}
	var evicted []string
	make := func(name string) *memReservation {
		return &memReservation{limit: b, evict: func() { evicted = append(evicted, name) }}
	}
	first, second, third := make("first"), make("second"), make("third")
	if !first.grow(40) || !second.grow(40) || !first.grow(60) {
		t.Fatal("what fits is refused")
	}
	if !third.grow(30) || strings.Join(evicted, " ") != "first" || b.used != 70 {
		t.Fatalf("evicted %q, %d bytes held", evicted, b.used)
	}
	if first.grow(1) {
		t.Error("an evicted share is raised")
	}
	if second.grow(80) || b.used != 30 { // it is the oldest itself
		t.Errorf("the oldest grows at the cost of others; %d bytes held", b.used)
	}
	if len(evicted) != 1 {
		t.Errorf("evicted %q; who is refused need not be told", evicted)
	}
	third.release()
	third.release()
	first.release() // begun again from the start
	if !first.grow(100) || b.used != 100 || b.oldest != first || b.newest != first {
		t.Errorf("%d bytes held", b.used)
	}
	first.end()
	if first.grow(1) || b.used != 0 || b.oldest != nil || b.newest != nil {
		t.Errorf("%d bytes held after the end", b.used)
	}
}

// park has a client send most of a command, and returns when the server keeps it.
func park(t *testing.T, s *Server, held int) *client {
	t.Helper()
	c := dial(t, s)
	c.send("*2\r\n$4\r\nECHO\r\n$16384\r\n" + strings.Repeat("x", 12_000))
	for end := time.Now().Add(testTimeout); ; time.Sleep(time.Millisecond) {
		s.buffers.limit.mu.Lock()
		now := s.buffers.limit.used
		s.buffers.limit.mu.Unlock()
		if now == held {
			return c
		}
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held, want %d", now, held)
		}
	}
}

func TestUnauth_TheOldestIncompleteCommandIsEvicted(t *testing.T) {
	s := serve(t, Options{UnauthMemory: 2 * largeBufSize}, guarded(t))
	first, second := park(t, s, largeBufSize), park(t, s, 2*largeBufSize)
	third := park(t, s, 2*largeBufSize)
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
	s.buffers.limit.mu.Lock()
	defer s.buffers.limit.mu.Unlock()
	if s.buffers.limit.used != 0 || s.buffers.limit.oldest != nil {
		t.Errorf("%d bytes are held without a reservation", s.buffers.limit.used)
	}
}

// flood is a socket whose peer never stops talking.
type flood struct {
	wire
	read int
}

func (f *flood) Read(p []byte) (int, error) { f.read += len(p); return len(p), nil }

func TestGuard_ReadsABoundedNumberOfBytesFromARejectedClient(t *testing.T) {
	for _, c := range []struct {
		known bool
		most  int
	}{{true, lingerBytes}, {false, unauthLingerBytes}} {
		source := &flood{}
		g, w := guardOver(source, Options{})
		w.unauth = !c.known
		g.refuse("no")
		_, err := g.Read(make([]byte, redconBuffer))
		if !errors.Is(err, errStillSending) || source.read < c.most || source.read > c.most+smallBufSize {
			t.Errorf("known %t: %d bytes were read, want %d; %v", c.known, source.read, c.most, err)
		}
	}
}

func TestTokenRate_RefillsWithTime(t *testing.T) {
	start := time.Unix(1, 0)
	p := perSecond(10, 3)
	var full time.Time
	for i, step := range []struct {
		at, wait time.Duration
	}{{0, -200}, {0, -100}, {0, 0}, {0, 100}, {100, 100}, {400, -100}, {5000, -200}} {
		var wait time.Duration
		full, wait = p.take(full, start.Add(step.at*time.Millisecond), 1)
		if wait != step.wait*time.Millisecond {
			t.Errorf("%d: wait %v, want %v ms", i, wait, int64(step.wait))
		}
	}
}

func TestConnRates_AreCountedByAddressAndRemoved(t *testing.T) {
	now := time.Unix(1, 0)
	var a connRates
	a.setRate(10)
	a.now = func() time.Time { return now }
	from := func(ip string) bool { return a.allow(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1}) }
	for i := range 10 * connBurst {
		if !from("10.0.0.1") {
			t.Fatalf("number %d at once is turned away", i)
		}
	}
	if from("10.0.0.1") || !from("10.0.0.2") || !a.allow(&net.UnixAddr{}) {
		t.Error("the burst is not the address' own")
	}
	now = now.Add(100 * time.Millisecond)
	if !from("10.0.0.1") || from("10.0.0.1") {
		t.Error("a tenth of a second is not worth one connection")
	}
	now = now.Add(time.Minute)
	for i := range minSweepSize {
		from(net.IPv4(10, 1, byte(i>>8), byte(i)).String())
		now = now.Add(time.Second)
	}
	if n := len(a.full); n > 3 {
		t.Errorf("%d addresses are remembered whose buckets are full", n)
	}
}

func TestServer_ResetsClientsThatConnectTooOften(t *testing.T) {
	s := serve(t, Options{MaxConnects: 1}, newDispatcher())
	now := time.Now()
	s.connRates.mu.Lock()
	s.connRates.now = func() time.Time { return now } // no bucket fills again
	s.connRates.mu.Unlock()
	for range connBurst {
		c := dial(t, s)
		c.send(command("PING"))
		c.expect("+PONG\r\n")
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

// All unauthenticated clients together get so many turns; each read and each four commands is one.
func TestUnauth_WorksNoFasterThanItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pools := &bufferPools{}
		pools.open(1 << 20)
		pools.turns.rate = perSecond(10, 1)
		options := Options{}.withDefaults()
		start := time.Now()
		for range 2 {
			w := &witness{unauth: true}
			g := newGuard(&wire{pieces: []string{strings.Repeat("PING\r\n", 9), "PING\r\n"}, end: io.EOF}, &options, pools, w)
			for p := make([]byte, redconBuffer); ; {
				if _, err := g.Read(p); err != nil {
					break
				}
			}
		}
		// Each: a read, four commands; a turn, four; a turn, one; a read, one; the read of the end.
		if took, want := time.Since(start), (2*5-1)*100*time.Millisecond; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

func TestTLS_AHandshakeHasFiveSeconds(t *testing.T) {
	a := newAuthority(t, "ca")
	config, err := secureOptions(t, a).TLS.load()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &Server{run: newDispatcher(), options: Options{Logger: quiet()}.withDefaults(), sessions: map[*session]struct{}{}}
		s.buffers.open(s.options.UnauthMemory)
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
		if took := time.Since(start); took != handshakeTimeout || handshakeTimeout != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(s.sessions) != 0 {
			t.Error("the silent client is still there")
		}
	})
}

func TestTLS_WhatAHelloAnnouncesComesOutOfTheBudget(t *testing.T) {
	const long, cost = "\x16\x03\x01\x40\x00", handshakeCost + 16<<10*3/2
	pools := &bufferPools{}
	pools.open(cost + cost/2)
	options := Options{}.withDefaults()
	unauth := func() (*tlsRecords, *witness) {
		conn, w := &wire{}, &witness{unauth: true}
		r := &tlsRecords{Conn: conn}
		r.attach(newGuard(conn, &options, pools, w))
		return r, w
	}
	first, _ := unauth()
	second, known := unauth()
	if !first.follow([]byte(long)) || pools.limit.used != cost {
		t.Fatalf("%d bytes are held, want %d", pools.limit.used, cost)
	}
	for i := range len(long) { // a header that comes byte by byte
		if !second.follow([]byte{long[i]}) {
			t.Fatal("the newer one is refused")
		}
	}
	select {
	case <-first.guard.closed:
	default:
		t.Error("the oldest handshake was not closed")
	}
	known.unauth = false
	if !second.finishHandshake() || pools.limit.used != 0 {
		t.Errorf("%d bytes are held for a client that is known", pools.limit.used)
	}
}
