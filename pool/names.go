// Names of the packages below that the packages above use as this package's.

package pool

import (
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/notify"
	"redlockd/pool/wire"
)

// The types of time, of connections, of memories and of watched keys.
type (
	Clock       = clock.Clock
	Timer       = clock.Timer
	Master      = wire.Master
	Command     = wire.Command
	Reply       = wire.Reply
	ReplyKind   = wire.ReplyKind
	MasterError = wire.MasterError
	Link        = wire.Link
	WindowLink  = wire.WindowLink
	Dialer      = wire.Dialer
	TrackDialer = wire.TrackDialer
	Incarnation = admission.Incarnation
	Daemon      = admission.Daemon
	Watcher     = notify.Watcher

	Configuration = admission.Configuration
)

// The shapes of a Reply.
const (
	ReplyNil    = wire.ReplyNil
	ReplyInt    = wire.ReplyInt
	ReplyString = wire.ReplyString
	ReplyArray  = wire.ReplyArray
	ReplyError  = wire.ReplyError
)

func SystemClock() Clock { return clock.SystemClock() }

// Recent returns the cheapest reading of a clock that is never ahead of it.
func Recent(c Clock) func() time.Duration { return clock.Recent(c) }

// RecentNow is one such reading.
func RecentNow(c Clock) time.Duration { return clock.RecentNow(c) }

// DaemonName tells the daemon's processes apart for people.
func DaemonName() string { return admission.DaemonName() }

// DialRueidis opens connections with rueidis; every step may take timeout.
func DialRueidis(timeout time.Duration) Dialer { return wire.DialRueidis(timeout) }
