// Package guard stands between a client's socket and redcon, whose lengths and buffers a
// client could abuse: it hands over only complete, bounded, valid commands. It knows no
// session: what happens on the connection goes to its Events.
//
// Files in reading order:
//
//	guard.go    passes commands to redcon; the limits are in proxy/resp
//	unauth.go   serves a client until it is authenticated, see proxy/preauth
//	rest.go     serves a client that sends nothing for long, without redcon
//	close.go    rejects a client, and ends a connection
//	options.go  what the guards of a server share
package guard
