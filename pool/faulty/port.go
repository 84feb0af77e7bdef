// Port reservations for servers, programs and relays.

package faulty

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Ports are taken from below the range the kernel gives to outgoing connections
// (from 32768 on Linux, 49152 elsewhere). A port of that range could be lost to
// any client while its server is down, and a client that dials a dead port of
// its own range over and over ends up connected to itself.
const (
	minPort      = 12000
	maxPort      = 31999
	maxPortTries = 50
	portPause    = 200 * time.Millisecond // between two tries to listen on a reserved port
)

// reservation keeps a loopback port for one user, also while nothing listens on
// it: no other test process on this machine chooses the port. It is a socket name that
// one process can have at a time and that the kernel releases when the process ends.
type reservation struct {
	port int
	name net.Listener // nil where the system has no abstract sockets
}

// reservePort reserves a port that nothing listens on.
func reservePort() (r *reservation, err error) {
	for range maxPortTries {
		r = &reservation{port: minPort + rand.IntN(maxPort-minPort+1)}
		if err = r.try(); err == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no free port between %d and %d in %d tries: %w", minPort, maxPort, maxPortTries, err)
}

func (r *reservation) try() (err error) {
	if runtime.GOOS == "linux" {
		if r.name, err = net.Listen("unix", fmt.Sprint("@redlockd-test-port-", r.port)); err != nil {
			return err
		}
	}
	ln, err := net.Listen("tcp", r.addr()) // programs that make no reservations use ports, too
	if err != nil {
		r.release()
		return err
	}
	return ln.Close()
}

func (r *reservation) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }

// listen listens on the port. A program that another goroutine is just starting has a copy of
// each open socket until its exec, so the port may stay in use for a moment after a Close.
func (r *reservation) listen() (ln net.Listener, err error) {
	for range maxPortTries {
		if ln, err = net.Listen("tcp", r.addr()); !errors.Is(err, syscall.EADDRINUSE) {
			return ln, err
		}
		time.Sleep(portPause)
	}
	return nil, err
}

func (r *reservation) release() {
	if r.name != nil {
		r.name.Close()
	}
}
