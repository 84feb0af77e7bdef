package proxy

// closeidle.go sends clients to other daemons before Shutdown.

import (
	"context"
	"time"
)

// CloseIdle closes each of the present connections once it has sent nothing for quiet, and the others at the
// end of ctx, as soon as they are idle; it serves them until then. Most libraries repeat what they send as a
// connection closes, and report an error reply; some repeat nothing. So none is closed right behind a
// reply, when the next command may be on its way. New ones are accepted.
func (s *Server) CloseIdle(ctx context.Context, quiet time.Duration) {
	const neverSent = ^uint64(0) // so none is quiet before it was seen twice
	received := map[*session]uint64{}
	for _, c := range s.snapshot() {
		received[c] = neverSent
	}
	for ctx.Err() == nil {
		next, end := context.WithTimeout(ctx, quiet)
		<-next.Done()
		end()
		for c, n := range received {
			received[c] = closeQuiet(c, n)
		}
	}
	for c := range received {
		c.drain(false)
	}
}

// closeQuiet closes a connection that has sent no more than n commands, if all are answered. It returns
// how many it has sent.
func closeQuiet(c *session, n uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == c.received && c.head == nil {
		c.leaving = true
		c.writerLoopLocked()
	}
	return c.received
}
