// Package proxy serves clients: it turns their bytes into calls and the replies into
// bytes, in order and within limits. What a command means is left to the Dispatcher.
//
// Files in reading order:
//
//	proxy.go         the server; listen.go, accept.go, close.go, shutdown.go: connections
//	guard.go         passes whole, valid commands to redcon, see proxy/resp; buffer.go
//	preauth.go       serves a connection until its client is authenticated
//	session.go       runs one client's commands in order; pendingreply.go
//	writerloop.go    starts commands and writes replies; sharequeue.go, writers.go, encode.go
//	memlimit.go      limits shared memory; clientmemory.go, tlsrecords.go
//	ratelimit.go     token buckets; connrate.go: connections per address
//	tls.go           TLS with clients; options.go, stats.go
package proxy
