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

func TestLatencies_CountOutcomesByTheLongestPrefix(t *testing.T) {
	g := NewLatencies("orders:", "orders:eu:", "jobs:")
	for key, err := range map[redlock.Key]error{
		"orders:1": nil, "orders:eu:1": nil, "orders:eu:2": redlock.ErrHeld, "jobs:": &redlock.NoQuorum{}, "order": nil, "other": nil, "": redlock.ErrHeld,
	} {
		g.Measure(oneLock{err: err}).Lock(nil, redlock.LockRequest{Key: key}, func(redlock.Grant, error) {})
	}
	g.Measure(oneWait{}).Wait(nil, redlock.LockRequest{Key: "jobs:1"}, func(redlock.Grant, error) {})()
	o := figures()
	o.Sources.Latencies = g
	text := ask(t, o, "127.0.0.1:1", "/metrics", "").Body.String()
	for labels, n := range map[string]string{
		`outcome="granted",prefix="orders:"`: "1", `outcome="granted",prefix="orders:eu:"`: "1", `outcome="refused",prefix="orders:eu:"`: "1",
		`outcome="undecided",prefix="jobs:"`: "1", `outcome="refused",prefix="jobs:"`: "1",
		`outcome="granted",prefix="other"`: "2", `outcome="refused",prefix="other"`: "1", `outcome="undecided",prefix="orders:"`: "0",
	} {
		if line := "redlockd_dlock_results_total{" + labels + "} " + n; !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if n := strings.Count(text, "\nredlockd_dlock_results_total{"); n != 4*len(outcomes) {
		t.Errorf("%d series, want those of three prefixes and of the other keys", n)
	}
	if without := ask(t, figures(), "127.0.0.1:1", "/metrics", "").Body.String(); strings.Count(without, "\nredlockd_dlock_results_total{") != len(outcomes) {
		t.Error("without prefixes there is more than the label other")
	}
}

// oneWait is over at once; a leaving waiter is counted.
type oneWait struct{ commands.Locks }

func (oneWait) Wait(_ *redlock.Batch, _ redlock.LockRequest, done redlock.LockDone) (leave func()) {
	done(redlock.Grant{}, redlock.ErrHeld)
	return func() {}
}
