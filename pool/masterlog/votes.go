// Vote log: the lines that the log has when a master stops voting, and votes again.
//
// An absence has two lines: the master does not vote, it votes. Everything in between is one
// absence, however many flushes and dials it takes; its last line has the counts. A master
// that is admitted with a new memory has one line more. So has one that is refused for a
// minute: it waits for the operator.
//
// A master that flaps would fill the log. So changes are counted from an absence that begins
// within a minute of the last change, and one line a minute has the counts, until a minute
// passed without a change. The first quarantine after a vote always has its line at once: a
// quarantine lasts, and a group may have lost its quorum by it.
//
// Nor does a death wait for that line: an absence that lasts twice as long as the longest of the
// flaps, and two seconds, has its line while it lasts.
//
// Each database has its own connection, so an outage of a master ends the votes of all
// databases. The line of the first one stands for the others, unless they stay behind.

package masterlog

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// logPause is how long a master must be steady before its changes have lines of
	// their own again, and the interval of the lines in between. It is also how long the
	// log may be wrong about a master that flaps.
	logPause = time.Minute
	minDeath = 2 * time.Second
	// oneOutage is how far apart the databases notice the same outage of a master: an
	// idle one with its heartbeat, or with a dial that fails.
	oneOutage = 5 * time.Second
)

// loggedState is a state of a master in the log. A master rises through them.
type loggedState uint8

const (
	loggedNothing     loggedState = iota
	loggedDown                    // gives no vote
	loggedRefused                 // reachable, and must not vote
	loggedQuarantined             // admitted, and must not vote yet
	loggedVoting
)

func (s loggedState) isAbsence() bool { return s == loggedDown || s == loggedRefused }

// VoteLog logs a master in one database. It is guarded by the group's
// lock, and the lines are written under it: the breaker opens on a timer's goroutine and
// closes on the lane's, and the log must have them in that order.
type VoteLog struct {
	logger *slog.Logger
	master string
	db     int
	last   *LastLine
	closed bool

	state       loggedState
	incarnation string        // of its memory, if it is admitted
	err         error         // the last reason why it gave no vote
	votesAt     time.Duration // the end of its quarantine
	absentAt    time.Duration // since when it gives no vote
	changed     time.Duration // the last change since it first stopped voting; 0 = none
	covered     bool          // the line of another database stands for this absence
	due         time.Duration // when changes without a line have one; 0 = there are none
	deadAt      time.Duration // when an absence without a line has one before that; 0 = there is none

	folding       bool // changes are counted
	quarantined   bool // since it last voted
	absences      int  // without a line
	quarantines   int
	maxAbsence    time.Duration
	reasonChanges int // in this absence
}

// New returns what is logged about a master in one database. The last line about it is shared by
// all databases.
func New(logger *slog.Logger, master string, db int, last *LastLine) VoteLog {
	return VoteLog{logger: logger, master: master, db: db, last: last}
}

// QuarantineText tells people how long a master does not vote yet.
func QuarantineText(wait time.Duration) string {
	return fmt.Sprintf("its memory is new, votes in %.1fs", wait.Seconds())
}

// Absent: the master has given no vote, for this reason.
func (v *VoteLog) Absent(now time.Duration, refused bool, err error) {
	v.WriteDue(now)
	switch {
	case !v.state.isAbsence():
		v.reasonChanges = 0
	case v.err.Error() != err.Error():
		v.reasonChanges++
	}
	v.err = err
	if refused {
		v.note(now, loggedRefused, "")
	} else {
		v.note(now, loggedDown, "")
	}
}

// Quarantined: the master is admitted and does not vote before wait is over.
func (v *VoteLog) Quarantined(now, wait time.Duration, incarnation string) {
	v.WriteDue(now)
	v.err, v.votesAt = errors.New(QuarantineText(wait)), now+wait
	v.note(now, loggedQuarantined, incarnation)
}

// Voted: the master has given a vote that counts.
func (v *VoteLog) Voted(now time.Duration, incarnation string) {
	if v.state != loggedVoting {
		v.WriteDue(now)
		v.note(now, loggedVoting, incarnation)
	}
}

// note writes a change, or counts it.
func (v *VoteLog) note(now time.Duration, state loggedState, incarnation string) {
	if v.closed || v.state == state && v.incarnation == incarnation {
		return
	}
	now = max(now, 1)
	from := v.state
	if from.isAbsence() && state.isAbsence() {
		v.state = state
		if state == loggedRefused { // a master that loads its data refuses, too
			v.dueAfter(now)
		}
		return
	}
	// Another incarnation in quarantine is a fall, too: the master restarted.
	falls := from >= loggedQuarantined && state <= from
	v.folding = now-v.changed < logPause && (v.folding || falls && v.changed != 0)
	if falls || v.changed != 0 {
		v.changed = now
	}
	if from == loggedNothing || from == loggedVoting {
		v.absentAt = now
	}
	v.state, v.incarnation, v.deadAt = state, incarnation, 0
	begins := state == loggedQuarantined && !v.quarantined
	v.quarantined = state == loggedQuarantined || v.quarantined && state != loggedVoting
	if v.folding {
		v.count(now, falls)
		v.dueAfter(now)
		if state.isAbsence() {
			v.deadAt = now + max(minDeath, 2*v.maxAbsence)
		}
	}
	if v.folding && !begins {
		return
	}
	v.forgetOne()
	v.write(now)
}

// forgetOne drops the counts of a single absence: the line that is written has all of it.
func (v *VoteLog) forgetOne() {
	if v.absences <= 1 {
		v.due, v.absences, v.quarantines, v.maxAbsence = 0, 0, 0, 0
	}
}

// dueAfter lets what has no line yet have one after a minute.
func (v *VoteLog) dueAfter(now time.Duration) {
	if v.due == 0 {
		v.due = now + logPause
	}
}

func (v *VoteLog) count(now time.Duration, falls bool) {
	if falls {
		v.absences++
	}
	switch v.state {
	case loggedQuarantined:
		v.quarantines++
	case loggedVoting:
		v.maxAbsence = max(v.maxAbsence, now-v.absentAt)
	}
}

// write writes the line of the state, unless another database has just written it.
func (v *VoteLog) write(now time.Duration) {
	line := statusLine{state: v.state}
	if v.state.isAbsence() {
		line.err = v.err.Error()
	}
	if !v.claim(now, line) {
		return
	}
	switch v.state {
	case loggedVoting:
		v.logger.Info("master votes", "master", v.master, "db", v.db, "incarnation", v.incarnation,
			"absent_ms", (now - v.absentAt).Milliseconds(), "reason_changes", v.reasonChanges)
	case loggedQuarantined:
		v.logger.Warn("master admitted, but "+QuarantineText(max(0, v.votesAt-now)), "master", v.master, "db", v.db, "incarnation", v.incarnation)
	default:
		v.logger.Warn("master does not vote", "master", v.master, "db", v.db, "err", line.err)
	}
}

// claim reports whether the line is to be written. It is not if the line of another database
// stands for it, and then the end of the absence has none either; unless this database stays
// behind, which is checked every minute.
func (v *VoteLog) claim(now time.Duration, line statusLine) bool {
	votes := v.state == loggedVoting
	if v.covered && votes && !line.counts || !v.last.isNew(line, v.db, now) {
		v.covered = !votes
		v.checkLater(now)
		return false
	}
	v.covered = false
	return true
}

func (v *VoteLog) checkLater(now time.Duration) {
	if v.state != loggedVoting {
		v.dueAfter(now)
	}
}

// WriteDue writes what has been without a line for a minute.
func (v *VoteLog) WriteDue(now time.Duration) {
	if v.deadAt != 0 && now >= v.deadAt {
		v.deadAt = 0
		v.forgetOne()
		v.write(now)
	}
	if v.due != 0 && now >= v.due {
		v.writeFolded(now)
	}
}

// writeFolded writes the line of the state after a single change, else the counts.
func (v *VoteLog) writeFolded(now time.Duration) {
	v.due = 0
	switch {
	case v.absences == 0 && v.last.shows(v.state):
		v.checkLater(now)
	case v.absences == 0, v.absences == 1 && v.state != loggedVoting:
		v.write(now)
	default:
		v.writeCounts(now)
	}
	v.absences, v.quarantines, v.maxAbsence = 0, 0, 0
}

func (v *VoteLog) writeCounts(now time.Duration) {
	if v.state != loggedVoting {
		v.maxAbsence = max(v.maxAbsence, now-v.absentAt)
	}
	if v.claim(now, statusLine{state: v.state, counts: true}) {
		v.logger.Warn("master flaps; its changes are folded", "master", v.master, "db", v.db, "votes", v.state == loggedVoting, "absences", v.absences,
			"quarantines", v.quarantines, "longest_absence_ms", v.maxAbsence.Milliseconds(), "err", v.err.Error())
	}
}

// Close writes what has no line yet; nothing is logged afterwards.
func (v *VoteLog) Close(now time.Duration) {
	if v.due != 0 {
		v.writeFolded(now)
	}
	v.closed, v.due = true, 0
}

// statusLine is a line about a master.
type statusLine struct {
	state  loggedState
	counts bool
	err    string // of an absence
}

// LastLine is the last line about a master, of whatever database.
type LastLine struct {
	mu   sync.Mutex // taken under a group's lock; nothing is taken under it
	line statusLine
	db   int
	at   time.Duration
}

// isNew notes a line, unless another database has just had the same.
func (l *LastLine) isNew(line statusLine, db int, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line == line && l.db != db && now-l.at < oneOutage {
		return false
	}
	l.line, l.db, l.at = line, db, now
	return true
}

// shows reports whether the line has this state. A master that was refused may be down
// meanwhile: that is still the same absence.
func (l *LastLine) shows(state loggedState) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line.state == state || state == loggedDown && l.line.state == loggedRefused
}
