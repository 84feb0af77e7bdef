// Status log: the lines that the log has when a master stops voting, and votes again.
//
// There is one line when it stops, and one when it votes again. Everything in between is
// one absence, however many flushes and dials it takes; only a dial that fails for
// another reason than the last one adds a line. A master that stops and votes again and
// again would still fill the log. So an absence that begins soon after another one is not
// logged, nor is its end, unless it lasts: every void seal and every failed dial checks
// again whether the pause is over.

package pool

import (
	"errors"
	"net"
	"strings"
	"time"

	"redlockd/pool/wire"
)

// logPause is how long after a logged absence the next one is not logged. It is
// also how long the log may be wrong about a master that flaps.
const logPause = 10 * time.Second

type loggedState uint8

const (
	loggedNothing loggedState = iota
	loggedAbsent
	loggedVoting
)

// statusLog is what the log last contained about a lane's master. It is guarded by the
// group's lock, and the lines are written under it: the breaker opens on a timer's
// goroutine and closes on the lane's, and the log must have them in that order.
type statusLog struct {
	logged loggedState
	since  time.Duration // when an absence was logged last; 0 = never
}

// noteAbsentLocked: the master has given no vote, for this reason.
func (l *lane) noteAbsentLocked(err error) {
	n := &l.statusLog
	if n.logged == loggedAbsent || n.logged == loggedVoting && n.since != 0 && l.group.now()-n.since < logPause {
		return
	}
	l.logAbsentLocked(err)
}

// logAbsentLocked logs an absence without regard to the pause.
func (l *lane) logAbsentLocked(err error) {
	if l.group.closed {
		return
	}
	l.statusLog = statusLog{loggedAbsent, max(l.group.now(), 1)}
	l.group.pool.options.Logger.Warn("master does not vote", "master", l.master.Name, "db", l.group.db, "err", err.Error())
}

// isTimeout: the timeout of the breaker, the link or the dial was over.
func isTimeout(err error) bool {
	var late net.Error
	return errors.Is(err, errStalled) || errors.As(err, &late) && late.Timeout()
}

// noteVotingLocked: the master has given a vote that counts.
func (l *lane) noteVotingLocked(incarnation string) {
	if l.statusLog.logged == loggedVoting {
		return
	}
	l.statusLog.logged = loggedVoting
	l.group.pool.options.Logger.Info("master votes", "master", l.master.Name, "db", l.group.db, "incarnation", incarnation)
}

// Error replies by which the server itself refuses a command go to the log, too: they concern
// its operator, and the client receives only how many masters voted. Error replies of locks
// and of clients' scripts are everyday answers, and go to the caller alone.
const (
	// errorLogPeriod is how long an error is not repeated in the log.
	errorLogPeriod = time.Minute
	// maxErrorTexts is how many errors are logged in that time: texts may name keys.
	maxErrorTexts = 16
)

// errorLog is the errors of one master that were logged since then. Only the
// lane's task uses it.
type errorLog struct {
	since  time.Duration
	logged map[string]bool
}

// shouldLog reports whether the text is to be logged now, and counts it as logged.
func (r *errorLog) shouldLog(text string, now time.Duration) bool {
	if r.logged == nil || now-r.since >= errorLogPeriod {
		r.since, r.logged = now, map[string]bool{}
	}
	if r.logged[text] || len(r.logged) >= maxErrorTexts {
		return false
	}
	r.logged[text] = true
	return true
}

// isServerRefusal reports whether the caller of a command did not cause its error reply.
// Before Redis 7.0 the error of a command within a script stands behind a dash.
func isServerRefusal(err MasterError) bool {
	for _, code := range []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS"} {
		if err.Begins(code) || strings.Contains(string(err), ": -"+code+" ") {
			return true
		}
	}
	return wire.IsDenied(string(err))
}

// logErrors logs the commands that the server refused in a flush. The readings of its
// settings do not count, nor does the seal: their errors are reported elsewhere.
func (f *flush) logErrors(now time.Duration) {
	l := f.conn.lane
	for i := range f.commands {
		if f.serverAt >= 0 && i >= f.serverAt || f.sealAt >= 0 && i >= f.sealAt {
			break
		}
		err, ok := f.replies[i].Err.(MasterError)
		if ok && isServerRefusal(err) && l.errorLog.shouldLog(string(err), now) {
			l.group.pool.options.Logger.Warn("master returned an error", "master", l.master.Name, "db", l.group.db, "err", err.Error())
		}
	}
}
