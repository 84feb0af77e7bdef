// Package lock serves the commands of locks: it reads a request, sends it to a quorum of
// masters and replies with what is left of the lease when the reply is written.
//
// Reading order:
//   - rows.go: the commands;
//   - dlock.go, acquire.go: locks from the request to the reply, with WAIT and HOLD;
//   - held.go: HOLD, from the grant to the end of the connection;
//   - dunlock.go, dunlockall.go, dextend.go: their end and their extension.
package lock
