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

// maxLossLines bounds the lost locks of one second that have a line of their own. A daemon that
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
func (h *holdLog) note(id engine.LeaseID, reason error) {
	if h.allow() {
		h.logger.Warn("hold lost", "key", string(id.Key), "db", id.DB, "token", id.Token.ShortHash(), "err", reason.Error())
	}
}

func (h *holdLog) allow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ticking {
		h.ticking = true
		h.clock.AfterFunc(time.Second, h.onTimer)
	}
	if h.lines == maxLossLines {
		h.suppressed++
		return false
	}
	h.lines++
	return true
}

func (h *holdLog) onTimer() {
	h.mu.Lock()
	suppressed := h.suppressed
	h.ticking, h.lines, h.suppressed = false, 0, 0
	h.mu.Unlock()
	if suppressed > 0 {
		h.logger.Warn("more holds lost", "count", suppressed)
	}
}
