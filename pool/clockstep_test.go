package pool

import (
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/clock"
)

// advanceAll moves the clocks of some masters, which is what this daemon sees
// when its own clock stood still.
func (s *stage) advanceAll(by time.Duration, lanes ...int) {
	s.clock.pass(time.Millisecond) // no two masters prove themselves at the same moment
	for _, lane := range lanes {
		s.change(lane, func(m *fakeMaster) { m.ahead += by })
	}
}

// jump moves this daemon's clock: a positive distance as if it had stood still
// while the masters' ran on.
func (s *stage) jump(by time.Duration) {
	s.clock.pass(max(0, -by))
	s.advanceAll(by, 0, 1, 2, 3, 4)
}

func TestSteps_OneMasterThatStepsLosesItsLifeAndTheOthersNothing(t *testing.T) {
	for _, by := range []time.Duration{time.Second, -time.Second, 20 * time.Millisecond, -20 * time.Millisecond} {
		onStage(t, 5, Options{}, func(s *stage) {
			s.vote(0)
			was := s.masters[0].identity
			s.advanceAll(by, 0)
			if a := s.vote(0); a.Seal.Good {
				t.Errorf("%v: the vote after the step counts: %+v", by, a)
			}
			s.clock.advance(2 * time.Second)
			if s.masters[0].identity == was {
				t.Errorf("%v: the identity is still in force", by)
			}
			if s.invalidated() != 1 || s.group.Voters() != 4 {
				t.Errorf("%v: %d incarnations invalidated and %d voters, want 1 and 4", by, s.invalidated(), s.group.Voters())
			}
		})
	}
}

func TestSteps_AStepThatIsUndoneBeforeItIsResolvedInvalidatesTheIncarnationAllTheSame(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.vote(0)
		was := s.masters[0].identity
		s.change(0, func(m *fakeMaster) {
			stepped := false
			m.tamper = func(args []string, r *Reply) {
				if args[0] == "TIME" && !stepped {
					stepped = true
					r.Items = []Reply{decimal((m.micros() + 1_000_000) / 1_000_000), decimal(0)}
				}
			}
		})
		s.vote(0)
		s.clock.advance(time.Second)
		if s.masters[0].identity == was || s.invalidated() != 1 {
			t.Errorf("%d incarnations invalidated, want the one that stepped", s.invalidated())
		}
	})
}

func TestSteps_AJitterBelowTheThresholdInvalidatesNothing(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		for _, by := range []time.Duration{14 * time.Millisecond, -14 * time.Millisecond} {
			s.advanceAll(by, 0)
			if a := s.vote(0); !a.Seal.Good {
				t.Errorf("%v: %+v, want good", by, a.Seal)
			}
			s.advanceAll(-by, 0)
			s.vote(0)
		}
		if s.invalidated() != 0 {
			t.Errorf("%d incarnations invalidated, want none", s.invalidated())
		}
	})
}

func TestSteps_WhenAllMastersDeviateAlikeItWasOurClockAndNothingIsInvalidated(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -30 * time.Minute} {
		onStage(t, 5, Options{}, func(s *stage) {
			s.vote(0)
			s.jump(by)
			s.vote(0)
			s.clock.advance(time.Second)
			op := acquiring("key")
			s.send(op)
			for lane := range s.masters {
				if a := op.only(t, lane); !a.Seal.Good {
					t.Errorf("%v, lane %d: %+v, want good again", by, lane, a.Seal)
				}
			}
			if s.invalidated() != 0 {
				t.Errorf("%v: %d incarnations invalidated, want none", by, s.invalidated())
			}
			if off := clock.Abs(s.group.Time() - s.masters[0].micros()); off > clock.Micros(clock.MinStep) {
				t.Errorf("%v: the group's clock is %d µs off", by, off)
			}
		})
	}
}

// The masters need not answer at the same moment: those that answer after the
// quorum has shown that it was our clock must be resynced, too.
func TestSteps_AMasterThatAnswersAfterTheResyncIsResyncedToo(t *testing.T) {
	for _, by := range []time.Duration{time.Minute, -time.Minute} {
		onStage(t, 5, Options{}, func(s *stage) {
			s.vote(0)
			for _, lane := range []int{3, 4} {
				s.change(lane, func(m *fakeMaster) { m.waits = make(chan struct{}) })
			}
			s.jump(by)
			s.vote(0)
			if s.masters[0].identity == "" || s.group.Voters() < 3 {
				t.Fatalf("%v: %d voters while two masters have not shown their clocks", by, s.group.Voters())
			}
			s.clock.pass(20 * time.Millisecond)
			for _, lane := range []int{3, 4} {
				close(s.masters[lane].waits)
			}
			s.clock.advance(time.Second)
			if s.invalidated() != 0 || s.group.Voters() != 5 {
				t.Errorf("%v: %d incarnations invalidated and %d voters, want none and 5", by, s.invalidated(), s.group.Voters())
			}
		})
	}
}

func TestSteps_FewerThanAQuorumThatDeviateAlikeAreInvalidated(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.vote(0)
		s.advanceAll(time.Minute, 0, 1)
		s.vote(0)
		s.clock.advance(time.Second)
		if s.invalidated() != 2 || s.group.Voters() != 3 {
			t.Errorf("%d incarnations invalidated and %d voters, want 2 and 3", s.invalidated(), s.group.Voters())
		}
	})
}

func TestSteps_MastersThatDeviateEachInItsOwnWayAreAllInvalidated(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.vote(0)
		for lane := range s.masters {
			s.advanceAll(time.Duration(lane+1)*40*time.Millisecond, lane)
		}
		s.vote(0)
		s.clock.advance(time.Second)
		if s.invalidated() != 5 {
			t.Errorf("%d incarnations invalidated, want all 5", s.invalidated())
		}
	})
}

func TestSteps_AStepWithoutAConnectionIsFoundAtTheNextAdmission(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.vote(0)
		was := s.masters[0].identity
		s.change(0, func(m *fakeMaster) { m.cut = true })
		s.vote(0)
		s.change(0, func(m *fakeMaster) { m.cut, m.ahead = false, 300*time.Millisecond })
		s.clock.advance(2 * time.Second)
		if s.masters[0].identity == was || s.invalidated() != 1 {
			t.Errorf("%d incarnations invalidated, want the one that stepped", s.invalidated())
		}
	})
}

func TestSteps_AConnectionThatEndsDuringAnAnomalyInvalidatesItsIncarnation(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.vote(0)
		was := s.masters[0].identity
		// The others do not answer, so that nothing can be decided yet.
		for lane := 1; lane < 5; lane++ {
			s.change(lane, func(m *fakeMaster) { m.hangs = true })
		}
		s.advanceAll(time.Second, 0)
		s.group.Push(0, acquiring("key"))
		synctest.Wait()
		s.change(0, func(m *fakeMaster) { m.cut = true })
		s.group.Push(0, acquiring("key"))
		synctest.Wait()
		for lane := range s.masters {
			s.change(lane, func(m *fakeMaster) { m.cut, m.hangs = false, false })
		}
		s.advanceAll(-time.Second, 0) // it would no longer be detected
		s.clock.advance(2 * time.Second)
		if s.masters[0].identity == was {
			t.Error("the identity is still in force")
		}
	})
}

func TestSteps_AMasterIsNotSpokenForByOthersThatShowNoClock(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.vote(0)
		for lane := 1; lane < 5; lane++ {
			s.change(lane, falsify("TIME", Reply{}))
		}
		s.advanceAll(time.Second, 0)
		s.vote(0)
		if s.invalidated() != 0 {
			t.Fatal("condemned before the others could be asked")
		}
		s.clock.advance(3 * s.pool.options.MasterTimeout)
		if s.invalidated() != 1 {
			t.Errorf("%d incarnations invalidated, want the one that stepped", s.invalidated())
		}
	})
}

// oversleep is a daemon that stands still while its questions are answered: the
// clocks of some masters are set meanwhile, each by as much as ahead says.
func (s *stage) oversleep(t *testing.T, ahead ...time.Duration) {
	t.Helper()
	s.vote(0)
	for lane := range s.masters {
		s.change(lane, func(m *fakeMaster) { m.waits = make(chan struct{}) })
	}
	s.send(acquiring("asked before"))
	for lane, by := range ahead {
		s.advanceAll(by, lane)
	}
	s.clock.pass(300 * time.Millisecond)
	for lane := range s.masters {
		close(s.masters[lane].waits)
	}
	synctest.Wait()
	for lane := range s.masters {
		s.change(lane, func(m *fakeMaster) { m.waits = nil })
	}
	s.clock.advance(time.Second)
}

// An answer that took 300 ms is wrong by as much, so that clocks which were set by
// different amounts look as if one jump of ours could be the reason.
func TestSteps_ClocksSetByDifferentAmountsWhileWeStoodStillAreInvalidated(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.oversleep(t, 700*time.Millisecond, 650*time.Millisecond, 600*time.Millisecond)
		if s.invalidated() != 3 || s.group.Voters() != 2 {
			t.Errorf("%d incarnations invalidated and %d voters, want 3 and 2", s.invalidated(), s.group.Voters())
		}
	})
}

func TestSteps_AJumpOfOursWhileCommandsWereOnTheirWayIsResynced(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		by := 700 * time.Millisecond
		s.oversleep(t, by, by, by, by, by)
		if s.invalidated() != 0 || s.group.Voters() != 5 {
			t.Errorf("%d incarnations invalidated and %d voters, want none and 5", s.invalidated(), s.group.Voters())
		}
	})
}
