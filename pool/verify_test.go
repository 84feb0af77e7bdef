package pool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockd/pool/clock"
)

func TestVerify_AGoodSealSaysWhatTheOperationsOwn(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		before := s.masters[0].register
		op := acquiring("key")
		s.send(op)
		for lane := range s.masters {
			a := op.only(t, lane)
			if !a.Sent || a.Reply.Str != "OK" || !a.Seal.Good || a.Seal.Quarantined || a.Seal.Err != nil || a.Seal.IncarnationID == "" {
				t.Errorf("lane %d: %+v, want a good vote", lane, a)
			}
			if m := s.masters[lane]; a.Seal.Top != m.register || a.Seal.Top < op.fence || a.Seal.Old >= op.fence {
				t.Errorf("lane %d: owns (%d, %d], want the proposal %d inside and the register %d at the top", lane, a.Seal.Old, a.Seal.Top, op.fence, m.register)
			}
		}
		if a := op.only(t, 0); a.Seal.Old != before {
			t.Errorf("old %d, want the register before the flush, %d", a.Seal.Old, before)
		}
	})
}

// falsify replaces the answer to one command.
func falsify(command string, with Reply) func(*fakeMaster) {
	return func(m *fakeMaster) {
		m.tamper = func(args []string, r *Reply) {
			if args[0] == command {
				*r = with
			}
		}
	}
}

// betweenTheSeal has something happen once, between a flush's ZSCORE and its ZADD.
func betweenTheSeal(happens func(*fakeMaster)) func(*fakeMaster) {
	return func(m *fakeMaster) {
		m.between = func(i int, commands []Command) {
			if commands[i].Args[0] == "ZADD" {
				happens(m)
				m.between = nil
			}
		}
	}
}

var badSeals = []struct {
	name   string
	change func(*fakeMaster)
	says   string // in Seal.Err
	ends   bool   // the connection
	latch  bool   // the incarnation is invalidated
}{
	{"the identity is gone", func(m *fakeMaster) { m.identity = "" }, "seal is another one or gone", true, false},
	{"another identity stands there", func(m *fakeMaster) { m.identity += "x" }, "another one or gone (written anew by a change of the group or by another daemon", true, false},
	{"the register lies below what was acknowledged", func(m *fakeMaster) { m.register-- }, "rolled back", true, true},
	{"the register is damaged", func(m *fakeMaster) { m.register = MaxRegister + 1 }, "above 2^52", true, false},
	{"a clock within the slack but too far ahead", func(m *fakeMaster) { m.ahead = 101 * time.Millisecond }, "suspicion", false, true},
	{"the clock steps forward", func(m *fakeMaster) { m.ahead = time.Second }, "suspicion", false, true},
	{"the clock steps back", func(m *fakeMaster) { m.ahead = -time.Second }, "suspicion", false, true},
	{"the raise finds no memory", falsify("ZADD", refusal("OOM command not allowed when used memory > 'maxmemory'.")), "OOM", false, false},
	{"the raise is refused", falsify("ZADD", refusal("READONLY You can't write against a read only replica.")), "READONLY", true, false},
	{"its seal is written anew within it", betweenTheSeal(func(m *fakeMaster) { m.identity += "x" }), "register was not raised", true, false},
	{"its register is raised further within it", betweenTheSeal(func(m *fakeMaster) { m.register += 1_000_000_000 }), "register was not raised", false, false},
	{"the score is an error", falsify("ZSCORE", refusal("ERR something")), "ERR something", false, false},
	{"the seal is no zset", falsify("ZSCORE", refusal("WRONGTYPE Operation against a key")), "overwritten by other data: WRONGTYPE", true, false},
	{"the score is a word", falsify("ZSCORE", text("many")), "unexpected", false, false},
	{"the score is a list", falsify("ZSCORE", list(number(1))), "unexpected", false, false},
	{"the score is not a number", falsify("ZSCORE", text("nan")), "unexpected", false, false},
	{"the score is endless", falsify("ZSCORE", text("inf")), "unexpected", false, false},
	{"the score is negative", falsify("ZSCORE", number(-1)), "rolled back", true, true},
	{"TIME is nil", falsify("TIME", Reply{}), "unexpected", false, false},
	{"TIME has one part", falsify("TIME", list(number(1))), "unexpected", false, false},
	{"TIME has three parts", falsify("TIME", list(number(1), number(2), number(3))), "unexpected", false, false},
	{"TIME speaks", falsify("TIME", list(text("half"), text("past"))), "unexpected", false, false},
	{"TIME overflows", falsify("TIME", list(number(1<<62), number(1<<62))), "suspicion", false, true},
}

func TestVerify_NoVoteCountsUnderABadSeal(t *testing.T) {
	for _, c := range badSeals {
		t.Run(c.name, func(t *testing.T) {
			onStage(t, 5, Options{}, func(s *stage) {
				s.vote(0)
				admissions := s.group.Counters().Admissions
				s.change(0, c.change)
				op := acquiring("key")
				s.send(op)
				a := op.only(t, 0)
				if c.says != "" && (a.Seal.Good || a.Seal.Err == nil || !strings.Contains(a.Seal.Err.Error(), c.says)) {
					t.Errorf("seal %+v, want a bad one that says %q", a.Seal, c.says)
				}
				if !a.Sent {
					t.Error("the answer claims that nothing was sent")
				}
				for lane := 1; lane < 5; lane++ {
					if !op.only(t, lane).Seal.Good {
						t.Errorf("lane %d suffers with lane 0", lane)
					}
				}
				s.change(0, func(m *fakeMaster) { m.tamper = nil })
				s.clock.advance(2 * s.pool.options.MasterTimeout)
				if ended := s.group.Counters().Admissions > admissions; ended != (c.ends || c.latch) {
					t.Errorf("another admission: %v, want %v", ended, c.ends || c.latch)
				}
				if got := s.invalidated() > 0; got != c.latch {
					t.Errorf("the incarnation was invalidated: %v, want %v", got, c.latch)
				}
			})
		})
	}
}

func TestVerify_AQuarantinedMastersSealIsGoodAndMarked(t *testing.T) {
	onStage(t, 3, Options{MaxTTL: time.Second}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.identity, m.register = "", 0 })
		s.vote(0)
		s.clock.advance(2 * time.Second)
		if a := s.vote(0); !a.Seal.Good || !a.Seal.Quarantined {
			t.Fatalf("%+v, want good and quarantined", a.Seal)
		}
		if s.state(0) != "quarantined" || s.group.Voters() != 2 {
			t.Errorf("state %s, %d voters, want quarantined and 2", s.state(0), s.group.Voters())
		}
		if old, new := s.group.Statuses()[1].Left, s.group.Statuses()[0].Left; old != 0 || new <= time.Second || new > 1500*time.Millisecond {
			t.Errorf("quarantined for another %v and %v, want none and about 1.5 s", old, new)
		}
		s.clock.advance(1500 * time.Millisecond)
		if a := s.vote(0); !a.Seal.Good || a.Seal.Quarantined {
			t.Errorf("%+v once it is old enough, want good and not quarantined", a.Seal)
		}
	})
}

func TestVerify_AFlushThatTookTooLongDoesNotCountAndBlamesNoMaster(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) {
			m.between = func(i int, _ []Command) {
				if i == 0 {
					m.clock.pass(s.pool.options.MasterTimeout + 2*time.Millisecond)
				}
			}
		})
		a := s.vote(0)
		if a.Seal.Good || !errors.Is(a.Seal.Err, errLate) || !a.Sent {
			t.Fatalf("%+v, want late", a)
		}
		s.change(0, func(m *fakeMaster) { m.between = nil })
		if a := s.vote(0); !a.Seal.Good {
			t.Errorf("%+v afterwards, want good: the connection still stands", a.Seal)
		}
		if c := s.group.Counters(); c.LateFlushes == 0 || c.Invalidated != 0 || c.Admissions != 5 {
			t.Errorf("counters %+v, want a late flush, nothing invalidated, no other admission", c)
		}
	})
}

func TestVerify_AMasterFarFromTheOthersByTheClockItWasAdmittedWithVotes(t *testing.T) {
	for _, off := range []time.Duration{-400 * time.Millisecond, 400 * time.Millisecond} {
		onStage(t, 5, Options{}, func(s *stage) {
			s.change(0, func(m *fakeMaster) { m.cut, m.runID = true, "other" })
			s.vote(0)
			s.change(0, func(m *fakeMaster) { m.cut, m.ahead = false, off })
			s.clock.advance(2 * time.Second)
			if a := s.vote(0); !a.Seal.Good {
				t.Errorf("%v off: %+v, want good: a steady clock is measured, not condemned", off, a.Seal)
			}
		})
	}
}

func TestVerify_AnotherProcessOnTheConnectionIsNoticedByTheHeartbeat(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) {
			m.tamper = func(args []string, r *Reply) {
				if args[0] == "INFO" {
					*r = text(goodInfo("7.0.15", "anotherserver"))
				}
			}
		})
		s.clock.advance(heartbeat)
		if got := s.group.Counters().VoidSeals; got != 1 {
			t.Errorf("%d bad seals, want the heartbeat's", got)
		}
		select {
		case <-s.masters[0].links[0].over:
		default:
			t.Error("the connection was not ended")
		}
	})
}

func TestVerify_TheWrongNumberOfAnswersEndsTheConnection(t *testing.T) {
	for name, resize := range map[string]func([]Reply) []Reply{
		"none":     func(r []Reply) []Reply { return nil },
		"one less": func(r []Reply) []Reply { return r[:len(r)-1] },
		"one more": func(r []Reply) []Reply { return append(r, Reply{}) },
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, 3, Options{}, func(s *stage) {
				s.change(0, func(m *fakeMaster) { m.resize = resize })
				a := s.vote(0)
				if a.Reply.Err == nil || !a.Sent || a.Seal.Good {
					t.Errorf("%+v, want unknown", a)
				}
				select {
				case <-s.masters[0].links[0].over:
				default:
					t.Error("the connection was not ended")
				}
			})
		})
	}
}

func TestVerify_AnAnswerOfZeroWaitsForASealAndOneOfOneDoesNot(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		one, zero := releasing("one"), releasing("zero")
		zero.words = []string{"ZERO"}
		before := s.group.Counters()
		s.send(one)
		if a := one.only(t, 0); a.Seal.Good || a.Reply.Err != nil {
			t.Errorf("%+v, want an answer without a seal", a)
		}
		if got := s.group.Counters().Seals; got != before.Seals {
			t.Errorf("%d seals for a release that deleted, want none", got-before.Seals)
		}
		s.send(zero)
		for lane := range s.masters {
			if a := zero.only(t, lane); !a.Seal.Good || a.Reply.Int != 0 || !a.Sent {
				t.Errorf("lane %d: %+v, want 0 under a good seal", lane, a)
			}
		}
		if got := s.group.Counters().Seals - before.Seals; got != 3 {
			t.Errorf("%d seals, want one a master", got)
		}
	})
}

func TestVerify_AnAnswerOfZeroIsVoidIfTheSealBehindItIsBad(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) {
			m.between = func(_ int, commands []Command) {
				if commands[0].Args[0] == "ZSCORE" {
					m.identity = ""
				}
			}
		})
		zero := releasing("zero")
		zero.words = []string{"ZERO"}
		s.send(zero)
		if a := zero.only(t, 0); a.Seal.Good || !errors.Is(a.Seal.Err, errMemoryGone) {
			t.Errorf("%+v, want forgotten", a)
		}
	})
}

func TestVerify_AFlushallInsideAFlushVoidsWhatStoodBeforeIt(t *testing.T) {
	for at := range 4 {
		onStage(t, 3, Options{}, func(s *stage) {
			s.change(0, func(m *fakeMaster) {
				m.between = func(i int, commands []Command) {
					if i == at && commands[0].Args[0] == "SET" {
						m.identity = ""
					}
				}
			})
			a := s.vote(0)
			// SET 0, ZSCORE 1, ZADD 2, TIME 3: behind ZADD it is as if it came after the flush.
			if want := at >= 3; a.Seal.Good != want {
				t.Errorf("flushed in front of command %d: good %v, want %v", at, a.Seal.Good, want)
			}
		})
	}
}

// After a suspend of this process an estimate may be wrong within its own error,
// and a flush that is late for that alone teaches it nothing.
func TestVerify_AClockThatWasMisjudgedIsMeasuredAnew(t *testing.T) {
	const limit = 100 * time.Millisecond // the stage's master timeout
	for _, c := range []struct {
		name      string
		took, off time.Duration
		want      error // in the seal
		ends      bool
	}{
		{"in time", time.Millisecond, 0, nil, false},
		{"the estimate is behind, not yet too far", time.Millisecond, 99 * time.Millisecond, nil, false},
		{"the estimate is behind too far", time.Millisecond, limit + 2*time.Millisecond, errLate, true},
		{"the master took its time", 98 * time.Millisecond, limit + time.Millisecond, errLate, false},
		{"the answer was read late", limit + time.Millisecond, limit, nil, false},
		{"the answer was read late, of a master that was late, too", 3 * limit, limit + time.Millisecond, errLate, false},
	} {
		s := newFlushStage()
		s.lane.est.Err = clock.Micros(time.Second) // whatever it may be, it is no step
		s.lane.gain.restart(s.clock.Now(), s.lane.est.Err, s.lane.group.pool.options.budget())
		f := s.flush
		f.fill(queueOf(acquiring("a")), 10)
		f.raise = 42
		f.write()
		us := f.context.Time + clock.Micros(c.off)
		f.replies = []Reply{
			{Kind: ReplyString, Str: "OK"}, {Kind: ReplyInt, Int: 41}, {Kind: ReplyInt, Int: 1},
			{Kind: ReplyArray, Items: []Reply{{Kind: ReplyInt, Int: us / 1_000_000}, {Kind: ReplyInt, Int: us % 1_000_000}}},
		}
		seal, ending := s.conn.verifySealLocked(f, f.sent+c.took)
		if !errors.Is(seal.Err, c.want) || seal.Good != (c.want == nil) {
			t.Errorf("%s: the seal is %+v, want the error %v", c.name, seal, c.want)
		}
		if (ending != nil) != c.ends {
			t.Errorf("%s: the connection ends with %v, want an end: %v", c.name, ending, c.ends)
		}
	}
}

// What a memory may have lost ends its incarnation, and the connection with it.
func TestVerify_AMemoryThatMayHaveLostLocksIsInvalidated(t *testing.T) {
	for want, spoil := range map[error]func(l *lane, f *flush){
		errEvicted: func(_ *lane, f *flush) {
			f.settingsAt = len(f.replies)
			policy := []Reply{{Kind: ReplyString, Str: "maxmemory-policy"}, {Kind: ReplyString, Str: "allkeys-lru"}}
			f.replies = append(f.replies, Reply{}, Reply{}, Reply{Kind: ReplyArray, Items: policy}, Reply{})
		},
		errCrept: func(l *lane, _ *flush) {
			l.group.lanes = append(l.group.lanes, &lane{group: l.group}, &lane{group: l.group}) // that show nothing
			l.gain.floor -= clock.Micros(time.Second)
		},
		errRolledBack: func(_ *lane, f *flush) { f.minRegister = 42 },
		nil:           func(*lane, *flush) {},
	} {
		s := newFlushStage()
		f := s.flush
		f.beat, f.embedded = true, true
		f.write()
		us := f.context.Time
		f.replies = []Reply{{Kind: ReplyInt, Int: 41}, {Kind: ReplyArray, Items: []Reply{{Kind: ReplyInt, Int: us / 1_000_000}, {Kind: ReplyInt, Int: us % 1_000_000}}}}
		spoil(s.lane, f)
		seal, ending := s.conn.verifySealLocked(f, f.sent)
		if !errors.Is(seal.Err, want) || !errors.Is(ending, want) || seal.Good != (want == nil) || (s.lane.invalidated != "") != (want != nil) {
			t.Errorf("%v: the seal is %+v, the connection ends with %v, invalidated %q", want, seal, ending, s.lane.invalidated)
		}
	}
}
