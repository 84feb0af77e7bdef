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
