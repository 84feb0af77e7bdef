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
	"time"
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
	g := l.group
	if g.closed {
		return
	}
	l.statusLog = statusLog{loggedAbsent, max(g.now(), 1)}
	g.pool.options.Logger.Warn("master does not vote", "master", l.master.Name, "db", g.db, "err", err.Error())
}

// bothTimedOut: a master that has stalled does not answer a dial either, so the second
// reason adds nothing.
func bothTimedOut(was, is error) bool { return isTimeout(was) && isTimeout(is) }

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
