package sim

// checker_test.go: the checker rejects bad histories and accepts good ones.

import (
	"testing"
	"time"

	"redlockd/redlock"
)

// Two acquires leave their clients at the same time; the first one that is granted is released
// before the other one is granted.
func TestChecker_OfGrantsThatExcludeOneAnotherTheLaterHasTheLargerFence(t *testing.T) {
	const writer, reader, permit = redlock.Exclusive, redlock.Shared, redlock.Permits
	for _, c := range []struct {
		what          string
		first, second redlock.Kind
		fence         int64         // of the second grant; the first one has 20
		validity      time.Duration // of the second grant
		wiped, bad    bool
	}{
		{"writers", writer, writer, 10, time.Second, false, true},
		{"writers whose fences rise", writer, writer, 30, time.Second, false, false},
		{"a reader after a writer", writer, reader, 10, time.Second, false, true},
		{"a writer after a reader", reader, writer, 10, time.Second, false, true},
		{"readers", reader, reader, 10, time.Second, false, false},
		{"permits", permit, permit, 10, time.Second, false, false},
		{"a grant without validity", writer, writer, 10, 0, false, false},
		{"locks that are deleted by hand", writer, writer, 10, time.Second, true, false},
	} {
		w := NewWorld(base("histories", func(s *Scenario) { s.Wiped = c.wiped }), 1, NewLab())
		j := w.checker()
		grant := func(token string, mode redlock.Kind, fence, before int64, validity time.Duration) {
			state := j.token("k", token)
			state.mode, state.limit = mode, permits
			j.granted(nil, "k", token, fence, before, w.now+validity)
		}
		first, second := j.beforeAcquire("k", c.first, ""), j.beforeAcquire("k", c.second, "")
		grant("one", c.first, 20, first, time.Second)
		release := j.releasing("k", "one")
		j.released(release, true, nil)
		grant("two", c.second, c.fence, second, c.validity)
		if v := w.violation; (v != nil) != c.bad || v != nil && v.Rule != "fences" {
			t.Errorf("%s: violation %v, want one: %v", c.what, v, c.bad)
		}
	}
}

// A wait begins in a daemon that ends all waits. The daemon stands still before or after that, and its
// answer comes, if any, some time later.
func TestChecker_OfDaemonsThatEndAllWaitsOneThatStoodStillAnswersWhenItGoesOn(t *testing.T) {
	const second, still, never = time.Second, drainGrace - time.Millisecond, time.Hour
	for _, c := range []struct {
		what                       string
		stops, lasts, answers, bad time.Duration // bad: when the checker reports it, 0 = not at all
	}{
		{"a wait that is answered", never, 0, second + still, 0},
		{"a wait that goes on", never, 0, never, second + drainGrace},
		{"a wait that is answered late", never, 0, second + drainGrace + 1, second + drainGrace},
		{"a daemon that stood still before", 0, second / 2, never, second + drainGrace},
		{"a daemon that goes on and answers", second + 1, still, second + 2*still, 0},
		{"a daemon that goes on and does not answer", second + 1, still, never, second + 1 + still + drainGrace},
		{"a daemon that stands still for longer", second + 1, 2 * drainGrace, second + 1 + 2*drainGrace + still, 0},
	} {
		w := NewWorld(base("histories", func(*Scenario) {}), 1, NewLab())
		d := w.daemons[0]
		r := &waitRecord{daemon: d, keys: []string{"k"}, keySet: "k", waits: true, began: second}
		w.after(second, d, func() {
			d.drained = w.now
			w.checker().mustEndSoon(r)
		})
		w.after(c.stops, nil, func() { d.pause(c.lasts) })
		w.after(c.answers, d, func() { r.over = true })
		w.run(10 * second)
		if v := w.violation; (v != nil) != (c.bad > 0) || v != nil && v.At != c.bad {
			t.Errorf("%s: violation %v, want one at %v", c.what, v, c.bad)
		}
	}
}
