// holdLog logs the holds that are lost, at a limited rate.
//
// Each lost lock has one line, so that the reason of a stopped job can be found. When masters
// lose their memory, all holds are lost at once. Of each second with more than a few losses,
// the log has the first ones and the number of the others; the metric counts all.

package renew

import (
	"log/slog"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// maxLossLines is how many of one second's lost locks have a line of their own. A daemon that
// serves a few jobs logs each; more in a second have one cause.
const maxLossLines = 20

// holdLog is idle until a hold is lost; then it has a timer for a second.
type holdLog struct {
	clock  pool.Clock
	logger *slog.Logger

	mu         sync.Mutex
	ticking    bool // a second is being counted
	lines      int  // written in this second
	suppressed int  // in this second
}

// note logs a lost lock, or counts it. It must not be called under a lock.
func (s *holdLog) note(id engine.LeaseID, reason error) {
	if s.allow() {
		s.logger.Warn("hold lost", "key", string(id.Key), "db", id.DB, "token", id.Token.ShortHash(), "err", reason.Error())
	}
}

func (s *holdLog) allow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ticking {
		s.ticking = true
		s.clock.AfterFunc(time.Second, s.onTimer)
	}
	if s.lines == maxLossLines {
		s.suppressed++
		return false
	}
	s.lines++
	return true
}

func (s *holdLog) onTimer() {
	s.mu.Lock()
	suppressed := s.suppressed
	s.ticking, s.lines, s.suppressed = false, 0, 0
	s.mu.Unlock()
	if suppressed > 0 {
		s.logger.Warn("more holds lost", "count", suppressed)
	}
}
