//go:build linux

package wire

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// A deadline that has passed gives up nothing that is in the socket already.
func TestRead_AfterItsDeadlineReturnsWhatHasArrived(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	w := guardReplies(client)
	if _, err := w.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	w.SetDeadline(time.Now().Add(-time.Second))
	var buffer [64]byte
	if n, err := w.Read(buffer[:]); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || w.unread() {
		t.Fatalf("%d bytes, %v, unread %v; want the deadline's error: nothing has arrived", n, err, w.unread())
	}
	if _, err := server.Write([]byte("+PONG\r\n")); err != nil {
		t.Fatal(err)
	}
	for !w.unread() {
		runtime.Gosched()
	}
	w.SetDeadline(time.Now().Add(-time.Second))
	if n, err := w.Read(buffer[:]); err != nil || string(buffer[:n]) != "+PONG\r\n" {
		t.Errorf("%q, %v; want the answer", buffer[:n], err)
	}
	if w.unread() {
		t.Error("the answer counts as unread after it was read")
	}
	client.Close()
	if w.unread() {
		t.Error("a closed socket has an unread answer")
	}
}
