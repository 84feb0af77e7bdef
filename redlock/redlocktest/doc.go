// Package redlocktest supports the tests of package redlock and of those below it. Only tests
// import it.
//
// Files in reading order:
//   - answers.go: waits for what must happen;
//   - masters.go: groups of redis-servers, and relays before them;
//   - clock.go: a daemon's own clock, which may be wrong and whose timers may be held;
//   - lanes.go: what a daemon sees of its masters, and has sent to them;
//   - calls.go: calls of a daemon that a test waits for;
//   - daemon.go: daemons that have leases alone, and a hook for what is above them.
package redlocktest
