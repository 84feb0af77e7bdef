package pool

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestErrorLog_NamesTheMaster(t *testing.T) {
	var log strings.Builder
	o := Options{MaxTTL: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	onStage(t, 3, o, func(s *stage) {
		lines := func() int { return strings.Count(log.String(), "returned an error") }
		s.change(0, falsify("SET", refusal("WRONGTYPE of another client's key")))
		s.change(2, falsify("CONFIG", refusal("NOPERM no CONFIG"))) // is allowed to be refused
		s.vote(0)
		s.clock.advance(2 * time.Second)
		if lines() != 0 {
			t.Errorf("the log has errors that a client caused:\n%s", &log)
		}
		s.change(1, falsify("SET", refusal("NOPERM User redlockd has no permissions to run the 'set' command")))
		for range 3 {
			s.vote(1)
		}
		if lines() != 1 || !strings.Contains(log.String(), `level=WARN msg="master returned an error" master=b db=0 err="NOPERM User redlockd`) {
			t.Errorf("the log says\n%s", &log)
		}
		s.clock.advance(time.Minute)
		s.vote(1)
		if lines() != 2 {
			t.Errorf("%d lines after a minute, want 2", lines())
		}
	})
}

// After bootstrap --fence-above the registers are ahead of the clocks for an hour, and nearly every
// flush of a busy daemon finds that another one has raised them.
func TestErrorLog_HasAFarRegisterOnceAMinute(t *testing.T) {
	var log strings.Builder
	o := Options{MaxTTL: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	onStage(t, 3, o, func(s *stage) {
		for range 2 {
			log.Reset()
			for range 5 {
				s.change(1, func(m *fakeMaster) { m.register += time.Hour.Microseconds() })
				s.vote(1)
			}
			if n := strings.Count(log.String(), `"register is far ahead of the clocks; fences follow it" master=b`); n != 1 || !strings.Contains(log.String(), "hint=") {
				t.Errorf("%d lines about the register of master b, want 1 with a hint:\n%s", n, &log)
			}
			s.clock.advance(time.Minute)
		}
	})
}
