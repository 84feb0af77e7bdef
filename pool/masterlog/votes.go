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

// VoteLog is what is logged about a master in one database. It is guarded by the group's
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

// QuarantineText is how long a master does not vote yet, for people.
func QuarantineText(wait time.Duration) string {
	return fmt.Sprintf("its memory is new, votes in %.1fs", wait.Seconds())
}

// Absent: the master has given no vote, for this reason.
func (s *VoteLog) Absent(now time.Duration, refused bool, err error) {
	s.WriteDue(now)
	switch {
	case !s.state.isAbsence():
		s.reasonChanges = 0
	case s.err.Error() != err.Error():
		s.reasonChanges++
	}
	s.err = err
	if refused {
		s.note(now, loggedRefused, "")
	} else {
		s.note(now, loggedDown, "")
	}
}

// Quarantined: the master is admitted and does not vote before wait is over.
func (s *VoteLog) Quarantined(now, wait time.Duration, incarnation string) {
	s.WriteDue(now)
	s.err, s.votesAt = errors.New(QuarantineText(wait)), now+wait
	s.note(now, loggedQuarantined, incarnation)
}

// Voted: the master has given a vote that counts.
func (s *VoteLog) Voted(now time.Duration, incarnation string) {
	if s.state != loggedVoting {
		s.WriteDue(now)
		s.note(now, loggedVoting, incarnation)
	}
}

// note writes a change, or counts it.
func (s *VoteLog) note(now time.Duration, state loggedState, incarnation string) {
	if s.closed || s.state == state && s.incarnation == incarnation {
		return
	}
	now = max(now, 1)
	from := s.state
	if from.isAbsence() && state.isAbsence() {
		s.state = state
		if state == loggedRefused { // a master that loads its data refuses, too
			s.dueAfter(now)
		}
		return
	}
	// Another incarnation in quarantine is a fall, too: the master restarted.
	falls := from >= loggedQuarantined && state <= from
	s.folding = now-s.changed < logPause && (s.folding || falls && s.changed != 0)
	if falls || s.changed != 0 {
		s.changed = now
	}
	if from == loggedNothing || from == loggedVoting {
		s.absentAt = now
	}
	s.state, s.incarnation, s.deadAt = state, incarnation, 0
	begins := state == loggedQuarantined && !s.quarantined
	s.quarantined = state == loggedQuarantined || s.quarantined && state != loggedVoting
	if s.folding {
		s.count(now, falls)
		s.dueAfter(now)
		if state.isAbsence() {
			s.deadAt = now + max(minDeath, 2*s.maxAbsence)
		}
	}
	if s.folding && !begins {
		return
	}
	s.forgetOne()
	s.write(now)
}

// forgetOne drops the counts of a single absence: the line that is written has all of it.
func (s *VoteLog) forgetOne() {
	if s.absences <= 1 {
		s.due, s.absences, s.quarantines, s.maxAbsence = 0, 0, 0, 0
	}
}

// dueAfter lets what has no line yet have one after a minute.
func (s *VoteLog) dueAfter(now time.Duration) {
	if s.due == 0 {
		s.due = now + logPause
	}
}

func (s *VoteLog) count(now time.Duration, falls bool) {
	if falls {
		s.absences++
	}
	switch s.state {
	case loggedQuarantined:
		s.quarantines++
	case loggedVoting:
		s.maxAbsence = max(s.maxAbsence, now-s.absentAt)
	}
}

// write writes the line of the state, unless another database has just written it.
func (s *VoteLog) write(now time.Duration) {
	line := statusLine{state: s.state}
	if s.state.isAbsence() {
		line.err = s.err.Error()
	}
	if !s.claim(now, line) {
		return
	}
	switch s.state {
	case loggedVoting:
		s.logger.Info("master votes", "master", s.master, "db", s.db, "incarnation", s.incarnation,
			"absent_ms", (now - s.absentAt).Milliseconds(), "reason_changes", s.reasonChanges)
	case loggedQuarantined:
		s.logger.Warn("master admitted, but "+QuarantineText(max(0, s.votesAt-now)), "master", s.master, "db", s.db, "incarnation", s.incarnation)
	default:
		s.logger.Warn("master does not vote", "master", s.master, "db", s.db, "err", line.err)
	}
}

// claim reports whether the line is to be written. It is not if the line of another database
// stands for it, and then the end of the absence has none either; unless this database stays
// behind, which is checked every minute.
func (s *VoteLog) claim(now time.Duration, line statusLine) bool {
	votes := s.state == loggedVoting
	if s.covered && votes && !line.counts || !s.last.isNew(line, s.db, now) {
		s.covered = !votes
		s.checkLater(now)
		return false
	}
	s.covered = false
	return true
}

func (s *VoteLog) checkLater(now time.Duration) {
	if s.state != loggedVoting {
		s.dueAfter(now)
	}
}

// WriteDue writes what has been without a line for a minute.
func (s *VoteLog) WriteDue(now time.Duration) {
	if s.deadAt != 0 && now >= s.deadAt {
		s.deadAt = 0
		s.forgetOne()
		s.write(now)
	}
	if s.due != 0 && now >= s.due {
		s.writeFolded(now)
	}
}

// writeFolded writes the line of the state after a single change, else the counts.
func (s *VoteLog) writeFolded(now time.Duration) {
	s.due = 0
	switch {
	case s.absences == 0 && s.last.shows(s.state):
		s.checkLater(now)
	case s.absences == 0, s.absences == 1 && s.state != loggedVoting:
		s.write(now)
	default:
		s.writeCounts(now)
	}
	s.absences, s.quarantines, s.maxAbsence = 0, 0, 0
}

func (s *VoteLog) writeCounts(now time.Duration) {
	if s.state != loggedVoting {
		s.maxAbsence = max(s.maxAbsence, now-s.absentAt)
	}
	if s.claim(now, statusLine{state: s.state, counts: true}) {
		s.logger.Warn("master flaps; its changes are folded", "master", s.master, "db", s.db, "votes", s.state == loggedVoting, "absences", s.absences,
			"quarantines", s.quarantines, "longest_absence_ms", s.maxAbsence.Milliseconds(), "err", s.err.Error())
	}
}

// Close writes what has no line yet; nothing is logged afterwards.
func (s *VoteLog) Close(now time.Duration) {
	if s.due != 0 {
		s.writeFolded(now)
	}
	s.closed, s.due = true, 0
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
