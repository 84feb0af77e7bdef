// Package preauth bounds what a connection costs until its client is authenticated. Anybody
// who can reach the port is such a client, so it gets little memory, time and output.
//
// Files in reading order:
//
//	limits.go      the limits, and how many turns all such clients get
//	connrate.go    connections of one address a second
//	buffer.go      memory of a command that is not complete, also after the login
//	tlsrecords.go  memory that TLS takes
package preauth
