package renew

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/embedded"
	"redlockd/redlock/engine"
)

// ticks is a clock whose timers the test fires.
type ticks struct {
	pool.Clock
	due []func()
}

func (t *ticks) AfterFunc(_ time.Duration, f func()) pool.Timer {
	t.due = append(t.due, f)
	return nil
}

// ring ends the second that is being counted.
func (t *ticks) ring() {
	for _, f := range t.due {
		f()
	}
	t.due = nil
}

func TestHoldLog_WritesTheFirstOfASecondAndCountsTheOthers(t *testing.T) {
	const token = engine.Token("token-of-a")
	var text bytes.Buffer
	clock := &ticks{}
	log := holdLog{clock: clock, logger: slog.New(slog.NewTextHandler(&text, nil))}
	lose := func(n int) {
		for i := range n {
			log.note(engine.LeaseID{DB: 3, Key: engine.Key(fmt.Sprint("k", i)), Token: token}, ErrLostHeld)
		}
	}
	lose(10_000)
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	want := `level=WARN msg="hold lost" key=k0 db=3 token=` + token.ShortHash() + ` err="a quorum of masters no longer holds it"`
	if len(lines) != maxLossLines || !strings.HasSuffix(lines[0], want) || strings.Contains(text.String(), string(token)) {
		t.Errorf("%d lines, the first is %s\nwant %d, %s", len(lines), lines[0], maxLossLines, want)
	}
	text.Reset()
	clock.ring()
	if !strings.HasSuffix(text.String(), fmt.Sprintf("level=WARN msg=\"more holds lost\" count=%d\n", 10_000-maxLossLines)) {
		t.Errorf("at the end of the second: %s", text.String())
	}
	text.Reset()
	lose(1)
	clock.ring()
	if n := strings.Count(text.String(), "\n"); n != 1 || len(clock.due) != 0 {
		t.Errorf("%d lines and %d timers after one more, want its line and none:\n%s", n, len(clock.due), text.String())
	}
}

func TestHold_ItsLossIsLogged(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	text := make(logLines, 1) // 1: there is one line
	d.log.logger = slog.New(slog.NewTextHandler(text, nil))
	_, g, lost := d.holdFor("k", time.Minute, 0)
	d.Quiet()
	d.OnMasters(func(lane int, m *embedded.Master) {
		if lane < 3 {
			m.Server().Del("k")
		}
	})
	d.renewNow()
	if reason := <-lost; !errors.Is(reason, ErrLostHeld) {
		t.Fatalf("lost because %v", reason)
	}
	if line := <-text; !strings.Contains(line, "key=k db=0 token="+g.Token.ShortHash()) || strings.Contains(line, string(g.Token)) {
		t.Errorf("the log says %s", line)
	}
}

// logLines hands lines over.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
