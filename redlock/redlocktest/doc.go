// Package redlocktest supports the tests of packages below redlock. Only tests import it.
//
// Files in reading order:
//   - cluster.go: groups of redis-servers;
//   - daemon.go: daemons that have leases on a group, or on masters inside the process;
//   - calls.go: calls of a daemon that a test waits for.
package redlocktest
