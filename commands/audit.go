// What was done to locks regardless of their holders, in the log.

package commands

import (
	"log/slog"

	"redlockd/redlock"

	"golang.org/x/time/rate"
)

const (
	// auditsPerSecond lines are written of a daemon, auditBurst at once: a loop of DEL fills no disk.
	auditsPerSecond, auditBurst = 10, 100
	maxAuditKey                 = 64
)

// Audit writes them.
type Audit struct {
	logger  *slog.Logger
	limiter *rate.Limiter
}

func newAudit(logger *slog.Logger) *Audit {
	return &Audit{logger, rate.NewLimiter(auditsPerSecond, auditBurst)}
}

// Forced notes that a command has taken, ended or changed a lock without its token.
func (a *Audit) Forced(c *Call, key redlock.Key) {
	if !a.limiter.Allow() {
		return
	}
	who := c.Client.Identity()
	a.logger.Info("lock changed regardless of its holder", "command", Clip(c.Args[0], MaxCommandName), "key", Clip(string(key), maxAuditKey), "db", c.Client.DB,
		"client", who.Addr, "name", who.Name, "user", who.User)
}
