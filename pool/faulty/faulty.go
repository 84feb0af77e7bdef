// Package faulty makes masters fail on purpose, for tests and benchmarks: a
// relay that holds, delays, cuts and dribbles what passes between a daemon and
// a master, redis-server processes that are killed, stopped and restarted, and
// a clock that is stepped under a running server.
//
// Nothing here decides whether the daemon behaved: that is the test's part.
package faulty

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range the kernel gives to outgoing connections
// (from 32768 on Linux, 49152 elsewhere). A port of that range could be lost to
// any client while its server is down, and a client that dials a dead port of
// its own range over and over ends up connected to itself.
const (
	lowestPort  = 12000
	highestPort = 31999
	portTries   = 50
)

// listenLoopback listens on a loopback port nobody else has.
func listenLoopback() (ln net.Listener, err error) {
	for range portTries {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if ln, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return ln, nil
		}
	}
	return nil, fmt.Errorf("no free port between %d and %d in %d tries: %w", lowestPort, highestPort, portTries, err)
}

// freePort is a loopback port that was free a moment ago. Another process may
// take it before its user does, who must be prepared to ask again.
func freePort() (int, error) {
	ln, err := listenLoopback()
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}
