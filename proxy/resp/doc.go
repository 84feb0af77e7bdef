// Package resp parses and encodes the Redis protocol, within limits. It is pure: it knows
// no socket, no clock and no command, and it imports no other package of this module. So
// every package may use it, for clients and for servers.
//
// Files in reading order:
//
//	request.go   finds the end of the next request in a byte stream and checks its form
//	inline.go    splits a request of one line into words
//	encode.go    appends requests and parts of replies
//	reply.go     reads replies, of RESP2 and RESP3, whatever the other side sends
//
// pool/wire checks replies without this package: it must pass them on byte by byte, count
// them against requests, and stop in front of the first byte that rueidis would not stand.
package resp
