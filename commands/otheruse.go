// Other use: a connection that keeps a lock by HOLD goes on with commands about other things.
//
// HOLD without max-ms renews a lock for as long as the connection is open, and a pool
// keeps connections open. A program that gives its connection back without DUNLOCK
// leaves the lock held, without an error anywhere. The commands that other programs then
// send over the connection do not name the lock's key. Such a connection is logged once.

package commands

import (
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"redlockd/commands/access"
)

// isOtherUse reports whether a command can show that a connection is in other use. Most
// commands of connections cannot: a program with a connection of its own sends PING to
// keep it open. Pools send SELECT and CLIENT SETINFO when they hand out a connection.
func isOtherUse(row *Command) bool {
	return row.Category != access.CategoryConnection || row.Full == "select" || row.Full == "client|setinfo"
}

// holdWatch logs connections in other use.
type holdWatch struct {
	logger  *slog.Logger
	limiter *rate.Limiter // of the lines about all connections
}

func newHoldWatch(logger *slog.Logger) holdWatch {
	return holdWatch{logger, rate.NewLimiter(rate.Every(time.Minute), 1)}
}

// see counts a command. It costs a connection without an endless lock one atomic load. A
// line that the limiter leaves out is due with a later command.
func (w *holdWatch) see(c *Call, row *Command) {
	l := &c.Client.LastAcquired
	if l.endless.Load() == 0 {
		return
	}
	now := time.Now()
	if !l.countUse(c.Client.DB, c.Args[1:], isOtherUse(row), now) || !w.limiter.AllowN(now, 1) {
		return
	}
	key, since := l.reportOtherUse()
	if since.IsZero() { // the lock was lost meanwhile
		return
	}
	w.logger.Warn("lock kept by HOLD on a connection in other use", "client", c.Client.Addr, "user", c.Client.user(),
		"key", string(key), "held_ms", now.Sub(since).Milliseconds(),
		"hint", "HOLD keeps the lock while the connection is open: send DUNLOCK, use a dedicated connection, or HOLD max-ms")
}
