package commands_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

// fakeHold is a renewal that ends when its holder releases the lock or leaves.
type fakeHold struct{ end func() }

func (h *fakeHold) End()          { h.end() }
func (h *fakeHold) Abandon(error) { h.end() }

// holds is a conversation with locks that are renewed, and its log. It runs in a bubble,
// whose clock stands still except in play.
type holds struct {
	*conversation
	log strings.Builder
}

func playHolds(t *testing.T, play func(h *holds)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { play(newHolds(t)) })
}

func newHolds(t *testing.T) *holds {
	h := &holds{conversation: newConversation(t)}
	deps := h.deps
	deps.Logger = slog.New(slog.NewTextHandler(&h.log, nil))
	h.serve(deps)
	h.prolongs(time.Minute)
	h.grants(time.Minute)
	plain, open := h.locks.lock, map[redlock.Key]func(){}
	h.locks.lock = func(r redlock.LockRequest) (redlock.Grant, error) {
		g, err := plain(r)
		if terms := r.Hold; terms != nil {
			g.Key, g.More = r.Key, r.More
			ended := g
			open[r.Key] = func() { terms.OnEnd(ended, nil, 0) }
			terms.OnBegin(&fakeHold{open[r.Key]})
		}
		return g, err
	}
	h.locks.unlock = func(r redlock.UnlockRequest) (bool, error) {
		if end := open[r.Key]; end != nil {
			delete(open, r.Key)
			end()
		}
		return true, nil
	}
	return h
}

// play sends a command n times, and lets the time pass before each of them.
func (h *holds) play(n int, each time.Duration, line string) {
	h.t.Helper()
	for range n {
		time.Sleep(each)
		if got := h.say(line); strings.HasPrefix(got, "-") {
			h.t.Fatalf("> %s\n%s", line, got)
		}
	}
}

func (h *holds) lines() int { return strings.Count(h.log.String(), "lock kept by HOLD") }

func TestOtherUse_AConnectionInOtherUseIsLoggedOnce(t *testing.T) {
	playHolds(t, func(h *holds) {
		h.play(1, time.Second, "DLOCK leader 30000 TOKEN leaders-token HOLD")
		h.play(19, time.Second, "DLOCK other 1000 TOKEN others-token")
		if h.lines() != 0 {
			t.Errorf("logged after 19 commands:\n%s", &h.log)
		}
		h.play(21, time.Second, "DLOCK other 1000 TOKEN others-token")
		want := `level=WARN msg="lock kept by HOLD on a connection in other use" client=10.0.0.9:5555 user=default key=leader held_ms=20000` +
			` hint="HOLD keeps the lock while the connection is open: send DUNLOCK, use a dedicated connection, or HOLD max-ms"`
		if h.lines() != 1 || !strings.Contains(h.log.String(), want) {
			t.Errorf("the log has\n%s\nwant\n%s", &h.log, want)
		}
	})
}

// RESET is what a pool sends when it hands a connection on. The lock goes on with the connection.
func TestOtherUse_ALockThatIsKeptOverARESETIsLogged(t *testing.T) {
	playHolds(t, func(h *holds) {
		h.play(1, time.Second, "DLOCK leader 30000 TOKEN leaders-token HOLD")
		h.play(1, time.Second, "RESET")
		if got := h.say("DUNLOCK leader"); !strings.HasPrefix(got, "-ERR this connection holds nothing on 'leader'") {
			t.Error(got)
		}
		if bound := h.client.LastAcquired.Holds(func(redlock.Lease) bool { return true }); len(bound) != 1 || bound[0].Key != "leader" {
			t.Errorf("deadlocks are searched among %v, want leader", bound)
		}
		h.play(20, time.Second, "DLOCK other 1000 TOKEN others-token")
		if h.lines() != 1 {
			t.Errorf("the log has\n%s", &h.log)
		}
		h.say("DUNLOCK leader leaders-token")
		if bound := h.client.LastAcquired.Holds(func(redlock.Lease) bool { return true }); len(bound) != 1 || bound[0].Key != "other" {
			t.Errorf("after its release, deadlocks are searched among %v, want other", bound)
		}
	})
}

func TestOtherUse_AllConnectionsTogetherHaveOneLineAMinute(t *testing.T) {
	playHolds(t, func(h *holds) {
		for id := range 3 { // each after 20 s of other use
			h.client = &commands.Client{ID: int64(id), Addr: fmt.Sprint("10.0.0.", id, ":1"), Proto: 2}
			h.play(1, 0, fmt.Sprintf("DLOCK key-%d 30000 TOKEN token-of-%d HOLD", id, id))
			h.play(24, time.Second, "DLOCK other 1000 TOKEN others-token")
		}
		if h.lines() != 1 {
			t.Errorf("%d lines in a minute:\n%s", h.lines(), &h.log)
		}
		h.play(10, 10*time.Second, "DLOCK other 1000 TOKEN others-token")
		if h.lines() != 2 || !strings.Contains(h.log.String(), "client=10.0.0.2:1 user=default key=key-2 ") {
			t.Errorf("the minute is over, and the log has\n%s", &h.log)
		}
	})
}

func TestOtherUse_CountsWhatPoolsSendWithAConnection(t *testing.T) {
	for _, line := range []string{"SELECT 3", "CLIENT SETINFO LIB-NAME redis-py", "DUNLOCK other others-token"} {
		playHolds(t, func(h *holds) {
			h.play(1, time.Second, "DLOCK leader 30000 TOKEN leaders-token HOLD")
			h.play(30, time.Second, line)
			if h.lines() != 1 {
				t.Errorf("30 of %s: %d lines, want 1", line, h.lines())
			}
		})
	}
}

func TestOtherUse_ALockReleasedOverAnotherConnectionIsNotLogged(t *testing.T) {
	playHolds(t, func(h *holds) {
		first := h.client
		h.play(1, time.Second, "DLOCK leader 30000 TOKEN leaders-token HOLD")
		h.client = &commands.Client{ID: 8, Addr: "10.0.0.8:1", Proto: 2}
		h.play(1, time.Second, "DUNLOCK leader leaders-token")
		h.client = first
		h.play(40, time.Second, "DLOCK other 1000 TOKEN others-token")
		if h.lines() != 0 {
			t.Errorf("the lock is released, and the log has\n%s", &h.log)
		}
	})
}

func TestOtherUse_AConnectionInUseForItsLocksIsNotLogged(t *testing.T) {
	const held, other = "DLOCK leader 30000 TOKEN leaders-token HOLD", "DLOCK other 1000 TOKEN others-token"
	type step struct {
		n    int
		each time.Duration
		line string
	}
	for name, steps := range map[string][]step{
		"it holds nothing by HOLD":  {{1, 0, "DLOCK leader 30000 TOKEN leaders-token"}, {40, time.Second, other}},
		"its renewal ends":          {{1, 0, held + " 600000"}, {40, time.Second, other}},
		"it released the lock":      {{1, 0, held}, {1, 0, "DUNLOCK leader leaders-token"}, {40, time.Second, other}},
		"it keeps itself open":      {{1, 0, held}, {100, time.Second, "PING"}},
		"there are few commands":    {{1, 0, held}, {19, time.Minute, other}},
		"they take little time":     {{1, 0, held}, {90, 100 * time.Millisecond, other}},
		"some of them name the key": {{1, 0, held}, {15, time.Second, other}, {1, 0, "DEXTEND leader others-token 1000"}, {15, time.Second, other}},
		"of several keys, one named": {
			{1, 0, "DMLOCK 30000 2 a b TOKEN leaders-token HOLD"}, {15, time.Second, other}, {1, 0, "DUNLOCK b others-token"}, {15, time.Second, other},
		},
		"it acquires more locks": {{1, 0, held}, {15, time.Second, other}, {1, 0, "DLOCK second 30000 TOKEN another-token HOLD"}, {15, time.Second, other}},
	} {
		playHolds(t, func(h *holds) {
			for _, s := range steps {
				h.play(s.n, s.each, s.line)
			}
			if h.lines() != 0 {
				t.Errorf("%s:\n%s", name, &h.log)
			}
		})
	}
}
