package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/admission"
)

// logOf plays a test on three masters that vote and returns what was logged of
// master a since, each line as its level, its message and the reason.
func logOf(t *testing.T, play func(*stage)) []string {
	t.Helper()
	var text bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 3, Options{Logger: slog.New(slog.NewTextHandler(&text, nil))})
		s.vote(0)
		text.Reset()
		play(s)
		s.pool.Close()
	})
	var lines []string
	for line := range strings.Lines(text.String()) {
		if !strings.Contains(line, " master=a db=0") {
			t.Errorf("a line that does not name master and database: %s", line)
		}
		_, line, _ = strings.Cut(strings.TrimSpace(line), "level=")
		line, rest, _ := strings.Cut(line, " incarnation=")
		if _, n, ok := strings.Cut(rest, " reason_changes="); ok && n != "0" {
			line += " reason_changes=" + n
		}
		lines = append(lines, strings.Replace(line, " master=a db=0", "", 1))
	}
	return lines
}

func expectLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const (
	votesAgain = `INFO msg="master votes"`
	full       = `"cannot raise its register: OOM no room"`
)

func absentBecause(why string) string { return `WARN msg="master does not vote" err=` + why }

// failWrites has master a refuse to write, allowWrites has it write again.
func (s *stage) failWrites() {
	s.change(0, falsify("ZADD", refusal("OOM no room")))
	s.vote(0)
}

func (s *stage) allowWrites() {
	s.change(0, func(m *fakeMaster) { m.tamper = nil })
	s.clock.advance(2 * heartbeat)
}

func TestNotice_AMasterThatAilsIsLoggedOnceAndItsRecovery(t *testing.T) {
	expectLog(t, logOf(t, func(s *stage) {
		s.failWrites()
		for range 30 { // longer than calm
			s.vote(0)
			s.clock.advance(time.Second)
		}
		s.allowWrites()
		s.vote(0)
		s.clock.advance(time.Minute)
		s.failWrites()
	}), absentBecause(full), votesAgain, absentBecause(full))
}

func TestNotice_AMasterThatStallsForAMomentIsLoggedWhileItDoes(t *testing.T) {
	expectLog(t, logOf(t, func(s *stage) {
		waits := make(chan struct{})
		s.change(0, func(m *fakeMaster) { m.waits = waits })
		s.send(acquiring("key"))
		s.clock.advance(s.pool.options.MasterTimeout)
		s.clock.advance(s.pool.options.MasterTimeout / 2)
		s.change(0, func(m *fakeMaster) { m.waits = nil })
		close(waits)
		synctest.Wait()
		s.clock.advance(2 * heartbeat)
	}), absentBecause(`"did not answer in time: it or the network stood still"`), votesAgain)
}

func TestNotice_AMasterThatStallsAndIsDialledAnewIsLoggedOnce(t *testing.T) {
	expectLog(t, logOf(t, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.hangs = true })
		s.send(acquiring("key"))
		s.clock.advance(2 * s.pool.options.MasterTimeout) // the connection is given up
		s.change(0, func(m *fakeMaster) { m.forbidden = fmt.Errorf("greeting: %w", context.DeadlineExceeded) })
		s.clock.advance(time.Second)
		s.change(0, func(m *fakeMaster) { m.forbidden = fmt.Errorf("dial: %w", context.DeadlineExceeded) })
		s.clock.advance(time.Second)
		s.change(0, func(m *fakeMaster) { m.hangs, m.forbidden = false, nil })
		s.clock.advance(time.Second)
		s.vote(0)
	}), absentBecause(`"did not answer in time: it or the network stood still"`), votesAgain+" reason_changes=2")
}

func TestNotice_AMasterThatFlapsDoesNotFloodTheLog(t *testing.T) {
	lines := logOf(t, func(s *stage) {
		for range 100 {
			s.failWrites()
			s.allowWrites()
		}
	})
	if len(lines) < 2 || len(lines) > 6 { // 20 s and a little: every calm one absence and its end
		t.Errorf("%d lines for 100 absences in 20 s, want a few:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if fold := lines[len(lines)-1]; !strings.Contains(fold, " absences=99 ") {
		t.Errorf("the pool was closed, and the log ends with\n%s\nwant a fold with 99 absences", fold)
	}
}

func TestNotice_AFoldHasTheCountsOfAMinuteAndEndsWithASteadyOne(t *testing.T) {
	lines := logOf(t, func(s *stage) {
		for range 100 {
			s.failWrites()
			s.allowWrites()
		}
		s.clock.advance(3 * time.Minute)
		s.failWrites()
	})
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	expectLog(t, []string{lines[0], lines[1], lines[3]}, absentBecause(full), votesAgain, absentBecause(full))
	var longest int
	const form = `WARN msg="master flaps; its changes are folded" votes=true absences=99 quarantines=0 longest_absence_ms=%d err="cannot raise`
	if _, err := fmt.Sscanf(lines[2], form, &longest); err != nil || longest < 1 || longest > int((2*heartbeat).Milliseconds()) {
		t.Errorf("%v in\n%s\nwant an absence of at most two heartbeats in\n%s", err, lines[2], form)
	}
}

func TestNotice_TheCountsNeedNoFurtherChange(t *testing.T) {
	var log bytes.Buffer
	onStage(t, 3, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(s *stage) {
		s.vote(0)
		for range 4 {
			s.failWrites()
			s.allowWrites()
		}
		s.clock.advance(time.Minute)
		if !strings.Contains(log.String(), " absences=3 ") {
			t.Errorf("a minute later the log has\n%s", &log)
		}
	})
}

// restart lets the master of a lane lose its memory; it is back within a second.
func (s *stage) restart(lane int) {
	s.change(lane, func(m *fakeMaster) { m.cut = true })
	s.vote(lane)
	s.change(lane, func(m *fakeMaster) {
		m.cut, m.runID, m.identity, m.register = false, m.runID[1:]+"0", "", 0
	})
	s.clock.advance(time.Second)
}

func TestNotice_AMasterThatRestartsAgainAndAgainIsLoggedOnceAMinute(t *testing.T) {
	lines := logOf(t, func(s *stage) {
		s.clock.advance(2 * time.Second)
		for range 13 { // in 52 s
			s.restart(0)
			s.clock.advance(3 * time.Second)
		}
		s.clock.advance(3 * time.Minute)
	})
	want := []string{
		`WARN msg="master does not vote" err=`,
		`WARN msg="master admitted, but its memory is new, votes in `,
		`WARN msg="master flaps; its changes are folded" votes=false absences=12 quarantines=12 longest_absence_ms=`,
		votesAgain,
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), strings.Join(lines, "\n"))
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d is\n%s\nwant\n%s", i, line, want[i])
		}
	}
}

func TestNotice_AnOutageWithSeveralReasonsIsLoggedOnce(t *testing.T) {
	expectLog(t, logOf(t, func(s *stage) {
		for _, why := range []error{errors.New("connection refused"), errors.New("connection reset"), admission.Unfitf("LOADING")} {
			s.change(0, func(m *fakeMaster) { m.forbidden, m.cut = why, true })
			s.vote(0)
			s.clock.advance(2 * time.Second)
		}
		s.change(0, func(m *fakeMaster) { m.forbidden, m.cut = nil, false })
		s.clock.advance(2 * time.Second)
		s.vote(0)
	}), absentBecause(`"connection refused"`), votesAgain+" reason_changes=2")
}

func TestNotice_ARefusalThatLastsHasItsOwnLine(t *testing.T) {
	expectLog(t, logOf(t, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.forbidden, m.cut = errors.New("connection refused"), true })
		s.vote(0)
		s.clock.advance(2 * time.Second)
		s.change(0, func(m *fakeMaster) { m.forbidden = admission.Unfitf("is a replica") })
		s.clock.advance(2 * time.Minute)
		s.change(0, func(m *fakeMaster) { m.forbidden, m.cut = nil, false })
		s.clock.advance(2 * time.Second)
		s.vote(0)
	}), absentBecause(`"connection refused"`), absentBecause(`"is a replica"`), votesAgain+" reason_changes=1")
}

func TestNotice_AnOutageIsLoggedForOneDatabaseAndForThoseThatStayBehind(t *testing.T) {
	var log bytes.Buffer
	onStage(t, 3, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(s *stage) {
		second := s.pool.Group(1)
		synctest.Wait()
		s.clock.advance(2 * time.Second)
		log.Reset()
		s.change(0, func(m *fakeMaster) { m.forbidden, m.cut = errors.New("connection refused"), true })
		s.vote(0)
		s.clock.advance(time.Second)
		if state := second.Statuses()[0].State; state != "down" {
			t.Fatalf("the master is %s in the second database", state)
		}
		s.change(0, func(m *fakeMaster) { m.forbidden, m.cut = nil, false })
		s.clock.advance(2 * time.Second)
		if n := strings.Count(log.String(), "master=a"); n != 2 || strings.Contains(log.String(), "db=1") {
			t.Errorf("%d lines, want those of database 0:\n%s", n, &log)
		}
	})
}

func TestNotice_WhatFollowsAFlapAndLastsIsLogged(t *testing.T) {
	for why, fall := range map[string]func(s *stage){
		full: (*stage).failWrites,
		`"connection refused"`: func(s *stage) {
			s.change(0, func(m *fakeMaster) { m.forbidden, m.cut = errors.New("connection refused"), true })
			s.vote(0)
		},
	} {
		expectLog(t, logOf(t, func(s *stage) {
			s.failWrites()
			s.allowWrites()
			fall(s)
			s.clock.advance(time.Minute + time.Second)
		}), absentBecause(full), votesAgain, absentBecause(why))
	}
}
