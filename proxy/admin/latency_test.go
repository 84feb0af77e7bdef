package admin

import (
	"errors"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/redlock"
)

type oneLock struct {
	commands.Locks
	err error
}

func (l oneLock) Lock(_ *redlock.Batch, _ redlock.LockRequest, done redlock.LockDone) {
	done(redlock.Grant{}, l.err)
}

func TestLatencies_SeparateOutcomesAndPassThemOn(t *testing.T) {
	g := NewLatencies()
	for _, err := range []error{nil, nil, redlock.ErrHeld, &redlock.NoQuorum{}, errors.New("anything else")} {
		calls := 0
		g.Measure(oneLock{err: err}).Lock(nil, redlock.LockRequest{}, func(_ redlock.Grant, got error) {
			if calls++; got != err {
				t.Errorf("handed on %v, want %v", got, err)
			}
		})
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	}
	g.Measure(oneWait{}).Wait(nil, redlock.LockRequest{}, func(redlock.Grant, error) {})()
	o := figures()
	o.Sources.Latencies = g
	text := ask(t, o, "127.0.0.1:1", "/metrics", "").Body.String()
	for outcome, n := range map[string]string{"granted": "2", "refused": "1", "undecided": "2"} {
		if line := `redlockd_lock_seconds_count{outcome="` + outcome + `"} ` + n; !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if line := `redlockd_wait_seconds_count{outcome="refused"} 1`; !strings.Contains(text, line+"\n") {
		t.Errorf("no line %s", line)
	}
}

// oneWait is over at once; a leaving waiter is counted.
type oneWait struct{ commands.Locks }

func (oneWait) Wait(_ *redlock.Batch, _ redlock.LockRequest, done redlock.LockDone) (leave func()) {
	done(redlock.Grant{}, redlock.ErrHeld)
	return func() {}
}
