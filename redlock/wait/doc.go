// Package wait keeps the requests that wait: for a lock, with WAIT and FAIR, for a key to become
// free, or for work.
//
// Files in reading order, each of which needs only those after it:
//   - waiters.go: how a wait begins and ends;
//   - waitqueue.go: when the first waiter for a key contends on the masters;
//   - deadlock.go: a wait that would close a cycle is refused;
//   - fair.go: the order over all daemons;
//   - turn.go: the daemons take turns without FAIR;
//   - places.go: turns of clients that poll;
//   - window.go: a moment for clients that use the masters themselves;
//   - waitlist.go: the requests that wait, by their keys;
//   - edges.go: deadlocks over several daemons;
//   - contention.go: those that contend with a wait queue;
//   - keywatch.go: what the masters report of a key.
package wait
