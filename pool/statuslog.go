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
const calm = 10 * time.Second

type tidings uint8

const (
	toldNothing tidings = iota
	toldAbsent
	toldVoting
)

// statusLog is what the log last contained about a lane's master. It is guarded by the
// group's lock, and the lines are written under it: the breaker opens on a timer's
// goroutine and closes on the lane's, and the log must have them in that order.
type notice struct {
	told  tidings
	since time.Duration // when an absence was logged last; 0 = never
}

// noteAbsentLocked: the master has given no vote, for this reason.
func (l *lane) absentLocked(err error) {
	n := &l.notice
	if n.told == toldAbsent || n.told == toldVoting && n.since != 0 && l.group.now()-n.since < calm {
		return
	}
	l.tellAbsentLocked(err)
}

// logAbsentLocked logs an absence without regard to the pause.
func (l *lane) tellAbsentLocked(err error) {
	g := l.group
	if g.closed {
		return
	}
	l.notice = notice{toldAbsent, max(g.now(), 1)}
	g.pool.options.Logger.Warn("master does not vote", "master", l.master.Name, "db", g.db, "err", err.Error())
}

// bothTimedOut: a master that has stalled does not answer a dial either, so the second
// reason adds nothing.
func sameSilence(was, is error) bool { return ranOut(was) && ranOut(is) }

// isTimeout: the timeout of the breaker, the link or the dial was over.
func ranOut(err error) bool {
	var late net.Error
	return errors.Is(err, errStalled) || errors.As(err, &late) && late.Timeout()
}

// noteVotingLocked: the master has given a vote that counts.
func (l *lane) presentLocked(incarnation string) {
	if l.notice.told == toldVoting {
		return
	}
	l.notice.told = toldVoting
	l.group.pool.options.Logger.Info("master votes", "master", l.master.Name, "db", l.group.db, "incarnation", incarnation)
}
