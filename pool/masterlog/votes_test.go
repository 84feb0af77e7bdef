package masterlog

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// logsOf are the logs of one master in two databases, which have just seen it vote.
func logsOf() (text *bytes.Buffer, first, second *VoteLog) {
	text, last := &bytes.Buffer{}, &LastLine{}
	logger := slog.New(slog.NewTextHandler(text, nil))
	first = new(New(logger, "a", 0, last))
	second = new(New(logger, "a", 1, last))
	first.Voted(time.Second, "x")
	second.Voted(time.Second, "x")
	text.Reset()
	return text, first, second
}

// expectLines checks the log, each line from its level on.
func expectLines(t *testing.T, text *bytes.Buffer, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(text.String()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), "level=")
		got = append(got, line)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestVotes_TheEndOfAnAbsenceHasItsCounts(t *testing.T) {
	text, s, _ := logsOf()
	s.Absent(10*time.Second, false, errors.New("one"))
	for _, reason := range []string{"one", "two", "two", "three"} {
		s.Absent(12*time.Second, false, errors.New(reason))
	}
	s.Voted(15*time.Second, "y")
	s.Voted(16*time.Second, "y")
	expectLines(t, text, `WARN msg="master does not vote" master=a db=0 err=one`,
		`INFO msg="master votes" master=a db=0 incarnation=y absent_ms=5000 reason_changes=2`)
}

func TestVotes_ARefusalThatComesAndGoesIsOneAbsence(t *testing.T) {
	text, s, _ := logsOf()
	now := time.Minute
	s.Absent(now, false, errors.New("gone"))
	for i := range 400 { // a server that crashes while it loads its data
		now += time.Second
		if i%7 < 4 {
			s.Absent(now, true, errors.New("LOADING"))
		} else {
			s.Absent(now, false, errors.New("gone"))
		}
		s.WriteDue(now)
	}
	s.Voted(now, "x")
	expectLines(t, text, `WARN msg="master does not vote" master=a db=0 err=gone`, `WARN msg="master does not vote" master=a db=0 err=LOADING`,
		`INFO msg="master votes" master=a db=0 incarnation=x absent_ms=400000 reason_changes=115`)
}

func TestVotes_TheLineOfOneDatabaseStandsForThoseThatNoticeTheSame(t *testing.T) {
	text, first, second := logsOf()
	both := func(f func(s *VoteLog)) {
		f(first)
		f(second)
	}
	now := time.Minute
	both(func(s *VoteLog) { s.Absent(now, false, errors.New("gone")) })
	now += time.Second
	second.Voted(now, "x") // first, and not logged
	first.Voted(now, "x")
	for range 30 {
		now += time.Second
		both(func(s *VoteLog) { s.Absent(now, false, errors.New("gone")) })
		now += time.Second
		both(func(s *VoteLog) { s.Voted(now, "x") })
		both(func(s *VoteLog) { s.WriteDue(now) })
	}
	now += 2 * logPause
	both(func(s *VoteLog) { s.WriteDue(now) })
	both(func(s *VoteLog) { s.Close(now) })
	expectLines(t, text, `WARN msg="master does not vote" master=a db=0 err=gone`,
		`INFO msg="master votes" master=a db=0 incarnation=x absent_ms=1000 reason_changes=0`,
		`WARN msg="master flaps; its changes are folded" master=a db=0 votes=true absences=30 quarantines=0 longest_absence_ms=1000 err=gone`)
}

func TestVotes_ADatabaseThatStaysBehindHasItsOwnLine(t *testing.T) {
	text, first, second := logsOf()
	now := time.Minute
	first.Absent(now, false, errors.New("gone"))
	second.Absent(now, false, errors.New("gone"))
	for range 5 { // both are absent for minutes
		now += logPause
		first.WriteDue(now)
		second.WriteDue(now)
	}
	first.Voted(now, "x")
	now += logPause
	second.WriteDue(now)
	second.WriteDue(now + logPause)
	expectLines(t, text, `WARN msg="master does not vote" master=a db=0 err=gone`,
		`INFO msg="master votes" master=a db=0 incarnation=x absent_ms=300000 reason_changes=0`,
		`WARN msg="master does not vote" master=a db=1 err=gone`)
}

func TestVotes_DatabasesThatFailForDifferentReasonsHaveTheirOwnLines(t *testing.T) {
	text, first, second := logsOf()
	first.Absent(time.Minute, false, errors.New("gone"))
	second.Absent(time.Minute, false, errors.New("its seal was overwritten by other data"))
	expectLines(t, text, `WARN msg="master does not vote" master=a db=0 err=gone`,
		`WARN msg="master does not vote" master=a db=1 err="its seal was overwritten by other data"`)
}

func TestVotes_AQuarantineHasItsLineWhileChangesAreFolded(t *testing.T) {
	text, first, second := logsOf()
	both := func(f func(s *VoteLog)) {
		f(first)
		f(second)
	}
	loses := func(now time.Duration, incarnation string) { // a FLUSHALL
		both(func(s *VoteLog) { s.Absent(now, false, errors.New("its seal is gone")) })
		both(func(s *VoteLog) { s.Quarantined(now, 9*time.Second, incarnation) })
	}
	now := time.Minute
	for range 2 { // the second one is folded
		both(func(s *VoteLog) { s.Absent(now, false, errors.New("gone")) })
		now += time.Second
		both(func(s *VoteLog) { s.Voted(now, "x") })
	}
	loses(now+time.Second, "y")
	loses(now+2*time.Second, "z") // no new line: the master has not voted since
	now += 11 * time.Second
	both(func(s *VoteLog) { s.Voted(now, "z") })
	loses(now+time.Second, "w")
	both(func(s *VoteLog) { s.WriteDue(now + logPause) })
	expectLines(t, text, `WARN msg="master does not vote" master=a db=0 err=gone`,
		`INFO msg="master votes" master=a db=0 incarnation=x absent_ms=1000 reason_changes=0`,
		`WARN msg="master admitted, but its memory is new, votes in 9.0s" master=a db=0 incarnation=y`,
		`WARN msg="master admitted, but its memory is new, votes in 9.0s" master=a db=0 incarnation=w`,
		`WARN msg="master flaps; its changes are folded" master=a db=0 votes=false absences=4 quarantines=3 longest_absence_ms=59000 err="its memory is new, votes in 9.0s"`)
}

// A master that flaps and then dies has its line while it is dead, not with the counts of the minute.
func TestVotes_ADeathWhileChangesAreFoldedHasItsLine(t *testing.T) {
	text, s, _ := logsOf()
	now := time.Minute
	fall := func() { s.Absent(now, false, errors.New("gone")) }
	fall()
	for range 5 { // each absence is short
		now += 1500 * time.Millisecond
		s.WriteDue(now)
		s.Voted(now, "x")
		now += time.Second
		fall()
	}
	text.Reset()
	s.WriteDue(now + 2*1500*time.Millisecond - 1)
	expectLines(t, text)
	for range 20 {
		now += time.Second
		fall()
		s.WriteDue(now)
	}
	expectLines(t, text, `WARN msg="master does not vote" master=a db=0 err=gone`)
}

func TestVotes_AQuarantineThatWasLoggedIsNotFoldedToo(t *testing.T) {
	text, s, _ := logsOf()
	s.Absent(time.Minute, false, errors.New("gone"))
	s.Voted(time.Minute+time.Second, "x")
	s.Quarantined(time.Minute+2*time.Second, time.Hour, "y")
	text.Reset()
	s.WriteDue(5 * time.Minute)
	s.Close(5 * time.Minute)
	expectLines(t, text)
}
