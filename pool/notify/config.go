// Config is what this package must know about the masters of one database.

package notify

import (
	"log/slog"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// Config is the masters of one database, and how to reach them.
type Config struct {
	Masters []wire.Master
	DB      int
	Clock   clock.Clock
	Logger  *slog.Logger
	Timeout time.Duration // of every step of a dial
}
