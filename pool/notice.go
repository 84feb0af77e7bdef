// What does the log say of a master that stops voting, and comes back?
//
// A line when it stops, and one when it votes again. What happens in between is
// one absence, however many flushes and dials it takes; only a dial that fails for
// another reason than the last one says so. A master that comes and goes would
// still fill the log, so an absence that begins soon after another one is not
// told, nor is its end, unless it lasts: every void seal and every failed dial
// asks again, and one of them finds that it is time.
package pool

import (
	"errors"
	"net"
	"time"
)

// calm is how long after an absence was told the next one is kept to itself. It
// is also how long the log may be wrong about a master that flaps.
const calm = 10 * time.Second

type tidings uint8

const (
	toldNothing tidings = iota
	toldAbsent
	toldVoting
)

// notice is what the log says of a lane's master. It is guarded by the group's
// lock, and the lines are written under it: the breaker opens on a timer's
// goroutine and closes on the lane's, and the log must have them in that order.
type notice struct {
	told  tidings
	since time.Duration // when an absence was told last; 0 = never
}

// absentLocked: the master has given no vote, for this reason.
func (l *lane) absentLocked(because error) {
	n := &l.notice
	if n.told == toldAbsent || n.told == toldVoting && n.since != 0 && l.group.now()-n.since < calm {
		return
	}
	l.tellAbsentLocked(because)
}

// tellAbsentLocked is for what is always said.
func (l *lane) tellAbsentLocked(because error) {
	g := l.group
	if g.closed {
		return
	}
	l.notice = notice{toldAbsent, max(g.now(), 1)}
	g.pool.options.Logger.Warn("master does not vote", "master", l.master.Name, "db", g.db, "because", because.Error())
}

// sameSilence: a master that has stalled does not answer a dial either, and that is
// no news.
func sameSilence(was, is error) bool { return ranOut(was) && ranOut(is) }

// ranOut: the breaker's patience, the link's or the dial's was over.
func ranOut(err error) bool {
	var late net.Error
	return errors.Is(err, errStalled) || errors.As(err, &late) && late.Timeout()
}

// presentLocked: the master has given a vote that counts.
func (l *lane) presentLocked(lineage string) {
	if l.notice.told == toldVoting {
		return
	}
	l.notice.told = toldVoting
	l.group.pool.options.Logger.Info("master votes", "master", l.master.Name, "db", l.group.db, "lineage", lineage)
}
