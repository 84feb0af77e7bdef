package proxy

import "crypto/tls"

// Config reads the files, for another door than the port that shows its clients
// the same certificates.
func (t TLS) Config() (*tls.Config, error) { return t.load() }
