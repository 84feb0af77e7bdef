// Package embedded runs masters inside this process, for a machine without
// Redis and for tests. N of them in one process tolerate no failure at all: they
// are for trying out.
//
// They are miniredis servers reached through in-memory pipes; nothing listens,
// because miniredis' own listener trusts its clients. The clock is moved before every
// flush: TIME, PTTL and expiry then agree with each other at every command.
//
// Files in reading order: embedded.go has the masters, time.go their clock, lifetimes.go
// the commands that depend on it, expiries.go the keys in the order of their ends,
// scan.go the steps of SCAN, pipe.go a client's end of a connection.
package embedded
