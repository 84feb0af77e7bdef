//go:build linux

package proxy

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/conn"
)

// connect opens clients that cost no Go memory, each of which has been answered.
func connect(t *testing.T, port, n int) []int {
	t.Helper()
	fds := make([]int, 0, n)
	t.Cleanup(func() {
		for _, fd := range fds {
			_ = syscall.Close(fd)
		}
	})
	ping, reply := []byte(command("PING")), make([]byte, 16)
	for range n {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
		if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Write(fd, ping); err != nil {
			t.Fatal(err)
		}
		if got, err := syscall.Read(fd, reply); err != nil || string(reply[:got]) != "+PONG\r\n" {
			t.Fatalf("got %q, %v", reply[:max(got, 0)], err)
		}
	}
	return fds
}

func inUse() uint64 {
	runtime.GC()
	runtime.GC() // the second empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// The kernel stores little for a client that does not read.
func TestSendBuffer_IsBounded(t *testing.T) {
	s := serve(t, Options{}, newDispatcher())
	c := dial(t, s)
	c.send(command("PING"))
	c.expect("+PONG\r\n")
	raw, err := s.snapshot()[0].guard.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var size int
	if controlErr := raw.Control(func(fd uintptr) {
		size, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
	}); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	if size > 2*sendBuffer { // Linux doubles what is set, for its own records
		t.Errorf("the kernel stores up to %d bytes, want %d at most", size, 2*sendBuffer)
	}
}

// A user without any right subscribes to as much as it may, requests the longest
// replies and reads none of them.
func TestClientMemory_TwoHundredClientsThatReadNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector keeps memory of its own")
	}
	users, err := access.NewUsers([]access.User{{Name: "nothing", Passwords: access.Everything("", "pw").Passwords}})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, Options{WriteTimeout: 10 * testTimeout}, commands.NewTable(commands.Deps{Inspect: &happenings{}, Users: users}, conn.Rows))
	const clients = 200
	before := inUse()
	greedy := command("AUTH", "nothing", "pw") + command("HELLO", "3")
	channels, patterns := []string{"SUBSCRIBE"}, []string{"PSUBSCRIBE"}
	for i := range 60 {
		channels = append(channels, fmt.Sprintf("%0900d-channel", i))
	}
	for i := range 120 {
		patterns = append(patterns, fmt.Sprintf("?%d*", i))
	}
	all := make([]*client, 0, clients)
	for range clients {
		c := dial(t, s)
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		c.send(greedy + command(channels...) + command(patterns...) + strings.Repeat(command("COMMAND", "DOCS"), 400))
		all = append(all, c)
	}
	stuck := func() (n int) {
		for _, one := range s.snapshot() {
			one.mu.Lock()
			if one.dropped || one.writerRuns && one.written > 0 {
				n++
			}
			one.mu.Unlock()
		}
		return n + clients - s.Stats().Connected
	}
	for looks, end := 0, time.Now().Add(2*testTimeout); looks < 20; time.Sleep(10 * time.Millisecond) {
		if looks++; stuck() < clients {
			looks = 0
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d clients wait to be read", stuck(), clients)
		}
	}
	stats, took := s.Stats(), inUse()-before
	t.Logf("%d clients take %d kB each, %d MB together; %d MB are counted, %d were closed", clients, took/clients>>10, took>>20, stats.Memory>>20, stats.Evicted)
	if half := s.options.ClientMemory / 2; stats.Memory > half || took > uint64(half) {
		t.Errorf("%d bytes, and %d are counted; one user may have %d", took, stats.Memory, half)
	}
	runtime.KeepAlive(all)
}
