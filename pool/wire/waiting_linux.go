package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// waiting returns the number of bytes of a socket that have arrived and have not been read; 0 if it is closed.
func waiting(s syscall.Conn) (n int) {
	raw, err := s.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	if err != nil {
		return 0
	}
	return n
}
