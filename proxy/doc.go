// Package proxy serves clients: it turns their bytes into calls and the replies into
// bytes, in order and within limits. What a command means is left to the Dispatcher.
//
// Files in reading order, with packages of their own among them:
//
//	proxy.go         the server; listen.go, accept.go, closeidle.go, shutdown.go: connections
//	proxy/guard      passes whole, valid commands to redcon, checked by proxy/resp
//	proxy/preauth    what a connection costs until its client is authenticated
//	session.go       runs one client's commands in order; pendingreply.go
//	writerloop.go    starts commands and writes replies; sharequeue.go, writers.go, encode.go
//	memlimit.go      limits shared memory; clientmemory.go
//	tls.go           TLS with clients, see proxy/tlsconf; tlslog.go, options.go, stats.go
package proxy
