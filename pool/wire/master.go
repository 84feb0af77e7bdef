// Master: where a server is and how to log in to it.

package wire

import "crypto/tls"

// Master is one Redis or Valkey server that votes. Masters are independent of
// each other and reached directly: a balancer that re-dials behind a
// connection would let one vote come from two servers.
type Master struct {
	Name     string // unique; part of the fingerprint that all daemons must share
	Network  string // "tcp" or "unix"
	Address  string // host:port or socket path
	Username string
	Password string
	TLS      *tls.Config // nil = plain
}
