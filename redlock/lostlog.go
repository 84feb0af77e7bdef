// What does the log say of holds that are lost?
//
// One line a key, so that whoever looks for the reason of a job that stopped finds
// it. When masters lose their memory, all holds are lost at once: of each second
// that has more than a few, the log has the first ones and how many there were
// besides; the metric counts all.
package redlock

import (
	"log/slog"
	"sync"
	"time"

	"redlockd/pool"
)

// lostLines is how many of one second's lost locks have a line of their own. A
// daemon that serves a few jobs tells of each; more in a second have one cause.
const lostLines = 20

// lostLog is quiet until a hold is lost; then it has a timer for a second.
type lostLog struct {
	clock  pool.Clock
	logger *slog.Logger

	mu      sync.Mutex
	ticking bool // a second is being counted
	lines   int  // of this second
	untold  int  // of this second
}

// note tells of a lost lock, or counts it. It must not be called under a lock.
func (s *lostLog) note(g Grant, key Key, reason error) {
	if s.room() {
		s.logger.Warn("a hold is lost", "key", string(key), "db", g.db, "token", g.Token.Shown(), "because", reason.Error())
	}
}

// room takes one of this second's lines.
func (s *lostLog) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ticking {
		s.ticking = true
		s.clock.AfterFunc(time.Second, s.sum)
	}
	if s.lines == lostLines {
		s.untold++
		return false
	}
	s.lines++
	return true
}

// sum ends the second.
func (s *lostLog) sum() {
	s.mu.Lock()
	untold := s.untold
	s.ticking, s.lines, s.untold = false, 0, 0
	s.mu.Unlock()
	if untold > 0 {
		s.logger.Warn("more holds are lost", "count", untold)
	}
}
