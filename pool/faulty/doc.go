// Package faulty makes masters fail on purpose, for tests and benchmarks: a
// relay that holds, delays, cuts and dribbles what passes between a daemon and
// a master, redis-server processes that are killed, stopped and restarted, and
// a clock that is stepped under a running server.
//
// Nothing here decides whether the daemon behaved: that is the test's part.
//
// Files in reading order:
//   - server.go, program.go, process.go, port.go: processes, and the ports reserved for them;
//   - clock.go, clock.c: clocks that a test steps;
//   - relay.go, link.go: the network between a daemon and a master;
//   - command.go, conn.go: commands of a test to a server;
//   - authority.go: certificates; log.go: what is written while a test reads it.
package faulty
