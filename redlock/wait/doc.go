// Package wait keeps the requests that wait: for a lock, with WAIT and FAIR, for a key to become
// free, or for work.
//
// Files in reading order:
//   - waiters.go: requests that wait, and how a wait ends;
//   - waitqueue.go, keywatch.go: the queue of one key, and what the masters report of it;
//   - fair.go: the order over all daemons;
//   - deadlock.go: a wait that would close a cycle is refused;
//   - edges.go: the same over several daemons;
//   - scriptwait.go: waits that do not take the lock;
//   - waitlist.go: the list of the requests that wait.
package wait
