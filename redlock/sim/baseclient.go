package sim

import (
	"fmt"
	"time"
)

// baseClient is what clients have in common.
type baseClient struct {
	world   *World
	index   int
	next    func()  // what the client does next
	daemon  *daemon // that has its request, nil = none has
	pending int     // counts calls; an answer to an earlier one comes too late
}

func (s *baseClient) base() *baseClient { return s }
func (s *baseClient) busy() bool        { return s.daemon != nil }
func (s *baseClient) String() string    { return fmt.Sprintf("client %d", s.index) }

// soon continues with the client's next step.
func (s *baseClient) soon(low, high time.Duration) {
	s.world.after(s.world.between(low, high), nil, s.next)
}

// ready is a daemon for the next step of a client that has no answer to wait for; nil = there is none now.
func (s *baseClient) ready() (d *daemon) {
	if s.busy() || s.world.calm {
		return nil
	}
	if d = s.world.anyDaemon(); d == nil {
		s.soon(time.Millisecond, 10*time.Millisecond)
	}
	return d
}

// lost continues without the answer of a daemon that died.
func (s *baseClient) lost(d *daemon) {
	if s.unanswered(d) {
		s.soon(time.Millisecond, 20*time.Millisecond)
	}
}

// unanswered reports whether the client waits for an answer of a daemon that died, and does no more.
func (s *baseClient) unanswered(d *daemon) bool {
	if s.daemon != d {
		return false
	}
	s.daemon = nil
	s.pending++
	return true
}

// call sends a request to a daemon; do runs there once it is awake.
func (s *baseClient) call(d *daemon, do func(turn int)) {
	s.pending++
	s.daemon = d
	turn := s.pending
	s.world.after(s.world.between(0, 100*time.Microsecond), d, func() { do(turn) })
}

// answered reports whether an answer is to the call that the client waits for.
func (s *baseClient) answered(d *daemon, turn int) bool {
	if turn != s.pending || s.daemon == nil || d.dead {
		return false
	}
	s.daemon = nil
	return true
}

// send sends a request to a daemon. onAnswer receives the answer, unless the client waits for it no more.
func send[T any](c *baseClient, d *daemon, request func(done func(T, error)), onAnswer func(T, error)) {
	c.call(d, func(turn int) {
		request(func(answer T, err error) {
			if c.answered(d, turn) {
				onAnswer(answer, err)
			}
		})
	})
}

// anyDaemon picks one that serves, nil if it finds none.
func (w *World) anyDaemon() *daemon {
	if d := w.daemons[w.random.IntN(len(w.daemons))]; d.serves() {
		return d
	}
	return nil
}
