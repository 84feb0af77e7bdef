package pool

// clockstep_log_test.go: one step of a clock is one line in the log.

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stepsLogged counts the lines about a master's clock that stepped.
func stepsLogged(t *testing.T, play func(*stage)) int {
	t.Helper()
	var text bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 5, Options{Logger: slog.New(slog.NewTextHandler(&text, nil))})
		s.vote(0)
		play(s)
		s.clock.advance(3 * time.Second)
		s.vote(0)
		s.pool.Close()
	})
	return strings.Count(text.String(), `msg="clock of a master stepped`)
}

func TestSteps_AStepIsLoggedOnce(t *testing.T) {
	const by = 300 * time.Millisecond // within what an admission tolerates
	for name, play := range map[string]func(*stage){
		"it is judged": func(s *stage) {
			s.advanceAll(by, 0)
			s.vote(0)
		},
		"the connection ends during an anomaly": func(s *stage) {
			for lane := 1; lane < 5; lane++ {
				s.change(lane, func(m *fakeMaster) { m.hangs = true })
			}
			s.advanceAll(by, 0)
			s.group.Push(0, acquiring("key"))
			synctest.Wait()
			s.change(0, func(m *fakeMaster) { m.cut = true })
			s.group.Push(0, acquiring("key"))
			synctest.Wait()
			for lane := range s.masters {
				s.change(lane, func(m *fakeMaster) { m.cut, m.hangs = false, false })
			}
		},
		"between two connections": func(s *stage) {
			s.change(0, func(m *fakeMaster) { m.cut = true })
			s.vote(0)
			s.change(0, func(m *fakeMaster) { m.cut, m.ahead = false, by })
		},
	} {
		if n := stepsLogged(t, play); n != 1 {
			t.Errorf("%s: %d lines, want 1", name, n)
		}
	}
}
