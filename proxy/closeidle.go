package proxy

// closeidle.go sends clients to other daemons before Shutdown.

// CloseIdle closes each of the present connections as soon as it is idle, and serves it until then: most
// libraries repeat what they send as a connection closes, and report an error reply. New ones are accepted.
func (s *Server) CloseIdle() {
	for _, c := range s.snapshot() {
		c.drain(false)
	}
}
