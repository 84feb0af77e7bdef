package proxy

import "crypto/tls"

// Config reads the files, for the admin endpoint, which uses the same certificates.
func (t TLS) Config() (*tls.Config, error) { return t.load() }
