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
		first, second redlock.Mode
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
		grant := func(token string, mode redlock.Mode, fence, before int64, validity time.Duration) {
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
