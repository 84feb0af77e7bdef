package pool

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"redlockd/pool/clock"
)

// watched lets the daemon measure all clocks until nothing of the budget is spent.
func (s *stage) watched() { s.clock.advance(9 * time.Second) }

func (s *stage) tolerated() int64 { return s.group.Counters().StepsTolerated }

// step sets a master's clock and has it looked at.
func (s *stage) step(lane int, by time.Duration) {
	s.advanceAll(by, lane)
	s.clock.advance(2 * heartbeat)
}

func (s *stage) wantAllVoting(t *testing.T, what string, tolerated int64) {
	t.Helper()
	if s.invalidated() != 0 || s.group.Voters() != len(s.masters) || s.tolerated() != tolerated {
		t.Errorf("%s: %d incarnations invalidated, %d voters, %d steps tolerated, want 0, %d and %d", what, s.invalidated(), s.group.Voters(), s.tolerated(), len(s.masters), tolerated)
	}
	for lane := range s.masters {
		if a := s.vote(lane); !a.Seal.Good {
			t.Errorf("%s: the vote of lane %d is %+v, want a good one", what, lane, a.Seal)
		}
	}
}

func TestGain_IsTheLargestRiseBeyondARateSinceAnyLook(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 11))
		type look struct {
			at     time.Duration
			offset int64
		}
		now, offset := time.Second, int64(1_700_000_000_000_000)
		var g gain
		g.restart(now, offset, 0)
		past := []look{{now, offset}}
		for range 300 {
			now += time.Duration(r.Int64N(int64(300 * time.Millisecond)))
			offset += r.Int64N(40_001) - 20_000
			var want int64
			for _, p := range past {
				want = max(want, offset-p.offset-clock.Micros(now-p.at)*leakPPM/1_000_000)
			}
			if got := max(0, g.of(now, offset)); clock.Abs(got-want) > 1 {
				t.Fatalf("seed %d, at %v: gain %d, want %d", seed, now, got, want)
			}
			g.observe(now, now, clock.Micros(now)+offset)
			past = append(past, look{now, offset})
		}
	}
}

// The measurement that it starts from may be wide: then a step of that width is not
// tolerated beside a budget that is spent.
func TestGain_AfterAPauseNothingIsLeftWhateverTheFirstMeasurementWas(t *testing.T) {
	const offset, budget = 5_000_000, 70_000
	for _, read := range []time.Duration{0, 40 * time.Millisecond, 80 * time.Millisecond} {
		var g gain
		sent, received := time.Second, time.Second+80*time.Millisecond
		g.restart(received, clock.Micros(read)+offset, budget)
		g.observe(sent, received, clock.Micros(sent+read)+offset)
		g.observe(received, received, clock.Micros(received)+offset)
		if got := g.of(received, offset); got != budget {
			t.Errorf("read %v after it was sent: %d µs are spent, want %d", read, got, budget)
		}
		later := received + time.Second
		g.observe(later, later, clock.Micros(later)+offset)
		if got, want := g.of(later, offset), int64(budget-leakPPM); got != want {
			t.Errorf("read %v after it was sent, a second later: %d µs are spent, want %d", read, got, want)
		}
		full := received + 10*time.Second
		g.observe(full, full, clock.Micros(full)+offset)
		if got := g.of(full, offset); got != 0 {
			t.Errorf("read %v after it was sent, ten seconds later: %d µs are spent, want 0", read, got)
		}
	}
}

func TestGain_ASlowAnswerNeitherGainsNorLowersTheFloor(t *testing.T) {
	var g gain
	const offset = 5_000_000
	g.restart(time.Second, offset, 0)
	for _, read := range []time.Duration{0, 50 * time.Millisecond, 90 * time.Millisecond} {
		before := g.floor
		sent, received := 2*time.Second, 2*time.Second+90*time.Millisecond
		g.observe(sent, received, clock.Micros(sent+read)+offset)
		if g.floor != before {
			t.Errorf("read %v after it was sent: the floor moved by %d µs", read, g.floor-before)
		}
	}
}

func TestSteps_SmallStepsOfMostMastersWithinASecondAreTolerated(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.watched()
		for lane := range 3 {
			was := s.masters[lane].identity
			s.advanceAll(20*time.Millisecond, lane)
			op := acquiring("key")
			s.send(op)
			for other := range s.masters {
				if a := op.only(t, other); a.Seal.Good != (other != lane) {
					t.Errorf("lane %d, while the clock of lane %d has an anomaly: %+v", other, lane, a.Seal)
				}
			}
			s.clock.advance(2 * heartbeat)
			if s.masters[lane].identity != was {
				t.Errorf("lane %d begins a new incarnation", lane)
			}
		}
		s.wantAllVoting(t, "three steps of 20 ms", 3)
	})
}

func TestSteps_ASlewOf40MillisecondsInvalidatesNothing(t *testing.T) {
	for _, takes := range []time.Duration{0, 8 * time.Millisecond} { // with long round trips the estimate follows in leaps
		onStage(t, 5, Options{}, func(s *stage) {
			s.watched()
			s.change(0, func(m *fakeMaster) { m.takes = takes })
			for range 100 {
				s.change(0, func(m *fakeMaster) { m.ahead += 400 * time.Microsecond })
				s.clock.advance(5 * time.Millisecond)
			}
			s.change(0, func(m *fakeMaster) { m.takes = 0 })
			s.clock.advance(2 * heartbeat)
			s.wantAllVoting(t, "a slew by 40 ms", s.tolerated())
		})
	}
}

func TestSteps_ASumBeyondTheBudgetInvalidates(t *testing.T) {
	for name, steps := range map[string][]time.Duration{
		"three forward":                 {30, 30, 30},
		"back, forward and forward":     {-60, 60, 20},
		"forward, back, and too far":    {20, -20, 80},
		"one":                           {75},
		"one back":                      {-75},
		"forward by little, many times": {14, 14, 14, 14, 14, 14, 14},
	} {
		onStage(t, 5, Options{}, func(s *stage) {
			s.watched()
			was := s.masters[0].identity
			for i, by := range steps {
				if s.invalidated() != 0 {
					t.Errorf("%s: invalidated before step %d", name, i+1)
				}
				s.step(0, by*time.Millisecond)
			}
			if s.invalidated() != 1 || s.masters[0].identity == was || s.group.Voters() != 4 {
				t.Errorf("%s: %d incarnations invalidated and %d voters, want 1 and 4", name, s.invalidated(), s.group.Voters())
			}
		})
	}
}

func TestSteps_TheBudgetIsFullAgainAfterAWhile(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		for range 3 {
			s.watched()
			s.step(0, 60*time.Millisecond)
		}
		for range 5 { // there and back, no copy loses more than once
			s.step(1, 30*time.Millisecond)
			s.step(1, -30*time.Millisecond)
		}
		s.wantAllVoting(t, "steps within the budget", 13)
	})
}

// What happened before this daemon came, it does not know.
func TestSteps_ADaemonThatHasNotWatchedToleratesNothing(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.watched()
		s.change(0, func(m *fakeMaster) { m.cut = true })
		s.vote(0)
		s.change(0, func(m *fakeMaster) { m.cut = false })
		s.clock.advance(time.Second)
		s.wantAllVoting(t, "before the step", 0)
		s.step(0, 20*time.Millisecond)
		if s.invalidated() != 1 || s.group.Voters() != 4 {
			t.Errorf("%d incarnations invalidated and %d voters, want 1 and 4", s.invalidated(), s.group.Voters())
		}
	})
}

func TestSteps_AClockThatWentUnwatchedIsMeasuredAnewBeforeItsMasterCounts(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.watched()
		s.change(0, func(m *fakeMaster) { // an answer that is under way for longer than the reserve, either way
			m.between = func(i int, _ []Command) {
				if i == 0 {
					m.clock.pass(40 * time.Millisecond)
				}
			}
		})
		s.clock.pass(s.group.pool.options.maxUnobserved() + time.Millisecond)
		if a := s.vote(0); !errors.Is(a.Seal.Err, errUnobserved) {
			t.Errorf("%+v, want void: %v", a.Seal, errUnobserved)
		}
		if a := s.vote(1); !a.Seal.Good {
			t.Errorf("an answer that shows that the estimate was right is void: %+v", a.Seal)
		}
		s.change(0, func(m *fakeMaster) { m.between = nil })
		s.wantAllVoting(t, "after one look", 0)
		s.step(1, 20*time.Millisecond)
		if s.invalidated() != 1 {
			t.Errorf("%d incarnations invalidated, want the one that stepped after the pause", s.invalidated())
		}
	})
}

// The daemon's own clock is slewed: all masters' clocks seem to creep.
func TestSteps_WhenAllMastersCreepAlikeNothingIsInvalidated(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.watched()
		for range 30 {
			s.advanceAll(8*time.Millisecond, 0, 1, 2, 3, 4)
			s.clock.advance(heartbeat)
		}
		s.wantAllVoting(t, "a slew by 240 ms of our own clock", 0)
	})
}
