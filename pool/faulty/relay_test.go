package faulty

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a master that sends back what it receives; it returns its address.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				io.Copy(conn, conn)
			})
		}
	})
	return ln.Addr().String()
}

func relayTo(t *testing.T, target string) *Relay {
	t.Helper()
	r := NewRelay(target)
	t.Cleanup(r.Close)
	return r
}

func dial(t *testing.T, r *Relay) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatalf("Write(%q): %v", text, err)
	}
}

func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(maxWait))
	got := make([]byte, len(text))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v; want %q", got[:n], err, text)
	}
}

// expectSilence gives what should not come some time to come: too short a time
// can only hide a defect, never invent one.
func expectSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	got := make([]byte, 64)
	if n, err := conn.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %q, %v; want nothing", got[:n], err)
	}
}

// awaitCounts returns when the relay has seen so much.
func awaitCounts(t *testing.T, r *Relay, enough func(Counts) bool) {
	t.Helper()
	if err := until(nil, func() bool { return enough(r.Counts()) }); err != nil {
		t.Fatalf("%+v: %v", r.Counts(), err)
	}
}

func TestRelay_PassesEverythingBothWaysAndTheEndBehindIt(t *testing.T) {
	r := relayTo(t, echo(t))
	conn := dial(t, r)
	text := strings.Repeat("0123456789", 100_000)
	go func() {
		io.WriteString(conn, text)
		conn.CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != text {
		t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(text))
	}
	c := r.Counts()
	if want := int64(len(text)); c.Accepted != 1 || c.Bytes[ToMaster] != want || c.Bytes[ToClient] != want {
		t.Errorf("counts %+v, want 1 connection and %d bytes each way", c, want)
	}
}

func TestRelay_HoldsTheBytesOfAPausedDirectionUntilItIsResumed(t *testing.T) {
	for name, ways := range map[string][]Direction{"both": nil, "to master": {ToMaster}, "to client": {ToClient}} {
		t.Run(name, func(t *testing.T) {
			r := relayTo(t, echo(t))
			conn := dial(t, r)
			send(t, conn, "before")
			expect(t, conn, "before")
			r.Pause(ways...)
			send(t, conn, "held")
			if name == "to client" {
				awaitCounts(t, r, func(c Counts) bool { return c.Bytes[ToMaster] > 6 })
			}
			expectSilence(t, conn)
			if reached, want := r.Counts().Bytes[ToMaster] > 6, name == "to client"; reached != want {
				t.Errorf("the master got the bytes: %v, want %v", reached, want)
			}
			r.Resume(ways...)
			expect(t, conn, "held")
		})
	}
}

func TestRelay_StallsAfterAGivenNumberOfBytes(t *testing.T) {
	r := relayTo(t, echo(t))
	r.StallAfter(3, ToMaster)
	conn := dial(t, r)
	send(t, conn, "abcdef")
	expect(t, conn, "abc")
	expectSilence(t, conn)
	r.Resume()
	expect(t, conn, "def")
}

func TestRelay_MutesOneDirectionOfOneConnection(t *testing.T) {
	r := relayTo(t, echo(t))
	first, second := dial(t, r), dial(t, r)
	for _, conn := range []*net.TCPConn{first, second} {
		send(t, conn, "before")
		expect(t, conn, "before")
	}
	r.Mute(ToClient, func(int) int { return 0 }) // the first one
	send(t, first, "lost")
	awaitCounts(t, r, func(c Counts) bool { return c.Bytes[ToMaster] == 16 })
	expectSilence(t, first)
	send(t, second, "after")
	expect(t, second, "after")
	first.Close()
	awaitCounts(t, r, func(c Counts) bool { return c.Open == 1 })
	third := dial(t, r)
	send(t, third, "new")
	expect(t, third, "new")
}

func TestRelay_DelaysEveryDirectionByTheGivenTime(t *testing.T) {
	const delay = 20 * time.Millisecond
	r := relayTo(t, echo(t))
	r.Delay(delay)
	conn := dial(t, r)
	start := time.Now()
	send(t, conn, "x")
	expect(t, conn, "x")
	if took := time.Since(start); took < 2*delay {
		t.Errorf("the round trip took %v, want at least %v", took, 2*delay)
	}
}

func TestRelay_WritesByteByByte(t *testing.T) {
	r := relayTo(t, echo(t))
	r.ByteByByte(true)
	conn := dial(t, r)
	const text = "one at a time"
	send(t, conn, text)
	expect(t, conn, text)
	want := [directions]int64{ToMaster: int64(len(text)), ToClient: int64(len(text))}
	if c := r.Counts(); c.Writes != want || c.Bytes != want {
		t.Errorf("%v writes of %v bytes, want %v of both", c.Writes, c.Bytes, want)
	}
}

func TestRelay_CutResetsWhatIsOpenAndNothingElse(t *testing.T) {
	r := relayTo(t, echo(t))
	conn := dial(t, r)
	r.Pause()
	send(t, conn, "lost") // a link that holds bytes must be cut as well
	awaitCounts(t, r, func(c Counts) bool { return c.Open == 1 })
	r.Cut()
	conn.SetReadDeadline(time.Now().Add(maxWait))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a cut connection reads %v, want %v", err, syscall.ECONNRESET)
	}
	r.Resume()
	again := dial(t, r)
	send(t, again, "fresh")
	expect(t, again, "fresh")
}

func TestRelay_RefusesConnectionsAsADeadServerDoesAndAcceptsAgainOnTheSameAddress(t *testing.T) {
	r := relayTo(t, echo(t))
	old := dial(t, r)
	send(t, old, "1")
	expect(t, old, "1")
	r.Refuse()
	if conn, err := net.Dial("tcp", r.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("Dial = %v, %v; want %v", conn, err, syscall.ECONNREFUSED)
	}
	send(t, old, "2") // present connections stay
	expect(t, old, "2")
	r.Accept()
	conn := dial(t, r)
	send(t, conn, "3")
	expect(t, conn, "3")
}

func TestRelay_HangsUpOnNewConnections(t *testing.T) {
	r := relayTo(t, echo(t))
	r.HangUp()
	conn := dial(t, r)
	conn.SetReadDeadline(time.Now().Add(maxWait))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read = %d, %v; want the end of the connection", n, err)
	}
}

func TestRelay_ReachesTheMasterWithNoByteOfAHalfOpenConnection(t *testing.T) {
	r := relayTo(t, echo(t))
	r.HalfOpen()
	conn := dial(t, r)
	send(t, conn, "hello?")
	awaitCounts(t, r, func(c Counts) bool { return c.Accepted == 1 })
	expectSilence(t, conn)
	r.Accept()
	expectSilence(t, conn)
	if c := r.Counts(); c.Accepted != 1 || c.Bytes != [directions]int64{} {
		t.Errorf("counts %+v, want one connection and no bytes", c)
	}
}

func TestRelay_ResetsAClientWhoseMasterIsDead(t *testing.T) {
	r := relayTo(t, FreeAddr(t))
	conn, err := net.Dial("tcp", r.Addr())
	if err == nil { // else the reset was quicker than Dial
		defer conn.Close()
		conn.SetReadDeadline(time.Now().Add(maxWait))
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Dial and Read: %v, want %v", err, syscall.ECONNRESET)
	}
}

func TestRelay_CloseEndsWhatIsHeld(t *testing.T) {
	r := NewRelay(echo(t))
	conn := dial(t, r)
	r.Delay(time.Hour)
	send(t, conn, "never")
	r.Close() // returns only when every goroutine has ended
	conn.SetReadDeadline(time.Now().Add(maxWait))
	if n, err := conn.Read(make([]byte, 8)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read = %d, %v; want the end of the connection", n, err)
	}
}
