package pool

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// repeats has every master that is back receive DAGAIN, and returns how often one did.
func (s *stage) repeats() (told func(lane int) int) {
	s.group.OnReconnect(func() []Operation {
		return []Operation{&asker{plan: Props{Key: "kept"}, words: []string{"DAGAIN"}}}
	})
	return func(lane int) (n int) {
		s.change(lane, func(m *fakeMaster) {
			for _, words := range m.executed {
				if words[0] == "DAGAIN" {
					n++
				}
			}
		})
		return n
	}
}

func TestReturn_OfAMasterThatWasCutOffRepeatsBehindWhatIsOwedAndBeforeAllElse(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		told := s.repeats()
		s.cutOff()
		s.retryReleases(0, 1, time.Minute)
		s.restore()
		s.vote(0)
		if got := s.heard(); !slices.Equal(got, []string{"D0", "DAGAIN", "SET"}) {
			t.Errorf("heard %q, want the release, what is repeated, the acquire", got)
		}
		if told(1)+told(2) != 0 {
			t.Error("masters were told again that had not been away")
		}
	})
}

func TestReturn_AfterAPauseRepeatsWithoutANewAdmission(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		told := s.repeats()
		waits := make(chan struct{})
		s.change(0, func(m *fakeMaster) { m.waits = waits })
		op := acquiring("key")
		s.send(op)
		s.clock.advance(s.pool.options.MasterTimeout)
		if a := op.only(t, 0); !errors.Is(a.Reply.Err, errStalled) {
			t.Fatalf("%+v, want a pause", a)
		}
		s.change(0, func(m *fakeMaster) { m.waits = nil })
		close(waits)
		synctest.Wait()
		if n := told(0); n != 1 || s.masters[0].dials != 1 {
			t.Errorf("told %d times on %d connections, want once on the first", n, s.masters[0].dials)
		}
	})
}

func TestReturn_OfThisProcessFromAStandstillRepeatsToEveryMasterOnce(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		told := s.repeats()
		s.clock.advance(20 * heartbeat)
		for lane := range s.masters {
			if n := told(lane); n != 0 {
				t.Errorf("master %d was told %d times while the heart beat", lane, n)
			}
		}
		s.clock.pass(2 * maxHeartbeatGap)
		s.clock.advance(5 * heartbeat)
		for lane := range s.masters {
			if n := told(lane); n != 1 {
				t.Errorf("master %d was told %d times after the standstill, want once", lane, n)
			}
		}
	})
}

func TestReturn_WhoRepeatsAndPanicsCostsNoMaster(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.group.OnReconnect(func() []Operation { panic("a mistake of its own") })
		s.cutOff()
		s.restore()
		if !s.vote(0).Seal.Good {
			t.Error("the master does not vote")
		}
	})
}
