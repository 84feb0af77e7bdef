package pool

import (
	"testing"
	"time"
)

func TestCounters_AHeartbeatIsNoFlush(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		before := s.group.Counters()
		s.clock.advance(5 * heartbeat)
		after := s.group.Counters()
		if after.Flushes != before.Flushes || after.Seals == before.Seals {
			t.Errorf("%d flushes and %d seals without an operation, want none and some",
				after.Flushes-before.Flushes, after.Seals-before.Seals)
		}
		s.send(acquiring("key"))
		if n := s.group.Counters().Flushes - after.Flushes; n != 3 {
			t.Errorf("%d flushes for one operation, want one a master", n)
		}
	})
}

func TestCounters_APanicOfALaneIsCounted(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		op := acquiring("key")
		op.panics = true
		s.send(op)
		s.clock.advance(time.Second)
		if n := s.group.Counters().Panics; n != 3 {
			t.Errorf("%d panics counted, want one a lane", n)
		}
	})
}

// A master that answers and refuses is no voter, and says why.
func TestStatuses_AMasterThatCannotRaiseItsRegisterSaysWhyUntilItCan(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		s.change(0, falsify("ZADD", refusal("OOM no room")))
		s.vote(0)
		for range 3 {
			if st := s.group.Statuses()[0]; st.State != "failing" || st.Detail != "cannot raise its register: OOM no room" {
				t.Errorf("%s (%s), want failing and the master's reason", st.State, st.Detail)
			}
			if n := s.group.Voters(); n != 2 {
				t.Errorf("%d voters beside one that is failing, want 2", n)
			}
			s.clock.advance(heartbeat)
		}
		s.change(0, func(m *fakeMaster) { m.tamper = nil })
		s.clock.advance(2 * heartbeat)
		if st := s.state(0); st != "voting" {
			t.Errorf("%s after it was cured, want voting without an operation", st)
		}
		if n := s.group.Voters(); n != 3 {
			t.Errorf("%d voters after it was cured, want 3", n)
		}
	})
}

// A release that a master refused is sent again on the same connection.
func TestPendingRelease_ThatWasRefusedIsRepeatedUntilItIsTaken(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		dials := s.masters[0].dials
		s.change(0, falsify("DEL", refusal("BUSY a script runs")))
		s.group.RetryRelease(0, PendingRelease{Args: []string{"DEL", "key"}, Until: s.clock.Now() + time.Minute})
		s.clock.advance(3 * heartbeat)
		if n := s.group.Statuses()[0].PendingReleases; n > 1 {
			t.Errorf("%d releases pending, want the one", n)
		}
		s.change(0, func(m *fakeMaster) { m.tamper, m.executed = nil, nil })
		s.clock.advance(3 * heartbeat)
		told := 0
		for _, words := range s.masters[0].executed {
			if words[0] == "DEL" {
				told++
			}
		}
		if told != 1 || s.group.Statuses()[0].PendingReleases != 0 || s.masters[0].dials != dials {
			t.Errorf("told %d times over %d new connections, %d still pending; want once, on the connection that stood",
				told, s.masters[0].dials-dials, s.group.Statuses()[0].PendingReleases)
		}
	})
}
