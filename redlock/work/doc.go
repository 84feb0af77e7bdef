// Package work implements DWORK: one of many workers does a piece of work, and another takes over
// if it dies, until the attempts are used up.
//
// Files in reading order:
//   - work.go: requests, attempts and their tokens;
//   - acquire.go: one attempt, proposed to all masters;
//   - finish.go: the end and the extension of an attempt;
//   - wait.go: the request for an attempt, and its wait; read.go: what a quorum shows.
package work
