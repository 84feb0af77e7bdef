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
)

// logOf plays a test on three masters that vote and returns what was logged of
// master a since, each line as its level, its message and the reason.
func logOf(t *testing.T, play func(*stage)) []string {
	t.Helper()
	var text bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 3, Options{})
		s.vote(0)
		s.group.mu.Lock()
		s.pool.options.Logger = slog.New(slog.NewTextHandler(&text, nil))
		s.group.mu.Unlock()
		play(s)
		s.pool.Close()
	})
	var lines []string
	for line := range strings.Lines(text.String()) {
		if !strings.Contains(line, " master=a db=0") {
			t.Errorf("a line that does not name master and database: %s", line)
		}
		_, line, _ = strings.Cut(strings.TrimSpace(line), "level=")
		line, _, _ = strings.Cut(line, " incarnation=")
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
	}), absentBecause(`"did not answer in time"`), votesAgain)
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
	}), absentBecause(`"did not answer in time"`), votesAgain)
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
			s.clock.advance(logPause + time.Second)
		}), absentBecause(full), votesAgain, absentBecause(why))
	}
}
