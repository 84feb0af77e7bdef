//go:build linux

package proxy

import (
	"runtime"
	"syscall"
	"testing"
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
