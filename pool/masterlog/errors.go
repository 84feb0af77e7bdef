// ErrorLog decides which error replies of a master go to the log.

package masterlog

import (
	"strings"
	"time"

	"redlockd/pool/wire"
)

// Error replies by which the server itself refuses a command go to the log, too: they concern
// its operator, and the client receives only how many masters voted. Error replies of locks
// and of clients' scripts are everyday answers, and go to the caller alone.
const (
	// errorLogPeriod is how long an error is not repeated in the log.
	errorLogPeriod = time.Minute
	// maxErrorTexts is how many errors are logged in that time: texts may name keys.
	maxErrorTexts = 16
)

// ErrorLog is the errors of one master that were logged since then. Only the
// lane's task uses it.
type ErrorLog struct {
	since  time.Duration
	logged map[string]bool
}

// ShouldLog reports whether the text is to be logged now, and counts it as logged.
func (e *ErrorLog) ShouldLog(text string, now time.Duration) bool {
	if e.logged == nil || now-e.since >= errorLogPeriod {
		e.since, e.logged = now, map[string]bool{}
	}
	if e.logged[text] || len(e.logged) >= maxErrorTexts {
		return false
	}
	e.logged[text] = true
	return true
}

// IsServerRefusal reports whether the caller of a command did not cause its error reply.
// Before Redis 7.0 the error of a command within a script stands behind a dash.
func IsServerRefusal(err wire.MasterError) bool {
	for _, code := range []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS"} {
		if err.Begins(code) || strings.Contains(string(err), ": -"+code+" ") {
			return true
		}
	}
	return wire.IsDenied(string(err))
}
