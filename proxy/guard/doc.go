// Package guard reads a client's socket and hands over only complete, bounded, valid
// commands: redcon, whose lengths and buffers a client could abuse, takes apart what has
// passed. It knows no session: what happens on the connection goes to its Events.
//
// Files in reading order:
//
//	guard.go    passes commands to the session; the limits are in proxy/resp
//	unauth.go   limits a client until it is authenticated, see proxy/preauth
//	close.go    rejects a client, and ends a connection
//	options.go  what the guards of a server share
package guard
