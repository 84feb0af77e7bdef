package pool

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlockd/pool/clock"
)

func (s *stage) recordOf(lane int) string { return recordOf(&s.pool.options, 0, s.name(lane)) }

func (s *stage) name(lane int) string { return s.pool.options.Masters[lane].Name }

// filings are the ZADD that a master was sent for its records.
func (m *fakeMaster) filings() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, words := range m.executed {
		if words[0] == "ZADD" && words[1] == "redlockd:acked" {
			n++
		}
	}
	return n
}

// recalls are the records that a master was asked for.
func (m *fakeMaster) recalls() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, words := range m.executed {
		if words[0] == "ZSCORE" && words[1] == "redlockd:acked" {
			n++
		}
	}
	return n
}

func (s *stage) forget() {
	for lane := range s.masters {
		s.change(lane, func(m *fakeMaster) { m.executed = nil })
	}
}

func TestRecords_AreWrittenOnceASecondWhenARegisterHasRisen(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		const second = settingsEvery * heartbeat
		s.clock.advance(3 * second) // what the admissions have shown is written
		s.forget()
		s.clock.advance(5 * second)
		for lane, m := range s.masters {
			if n := m.filings(); n != 0 {
				t.Errorf("idle: master %s was sent %d records", s.name(lane), n)
			}
		}
		s.forget()
		for range 5 * settingsEvery {
			s.send(acquiring("key"))
			s.clock.advance(heartbeat)
		}
		for lane, m := range s.masters {
			if n := m.filings(); n < 4 || n > 5 {
				t.Errorf("busy for 5 s: master %s was sent records %d times, want once a second", s.name(lane), n)
			}
			for other, o := range s.masters {
				got, ok := m.records[s.recordOf(other)]
				if other == lane && ok {
					t.Errorf("master %s has a record of itself", s.name(lane))
				}
				if other != lane && (got > o.register || got < o.register-clock.Micros(2*second)) {
					t.Errorf("master %s remembers %d of master %s, whose register is %d", s.name(lane), got, s.name(other), o.register)
				}
			}
			if n := m.recalls(); n != 0 {
				t.Errorf("master %s was asked for %d records while all masters were connected", s.name(lane), n)
			}
		}
	})
}

// What a master refused to note is written again.
func TestRecords_ThatWereRefusedAreWrittenAgain(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.clock.advance(3 * time.Second)
		s.change(0, func(m *fakeMaster) {
			m.tamper = func(args []string, r *Reply) {
				if args[0] == "ZADD" && args[1] == "redlockd:acked" {
					*r = refusal("OOM command not allowed when used memory > 'maxmemory'.")
				}
			}
		})
		s.send(acquiring("key"))
		s.clock.advance(2 * time.Second)
		s.change(0, func(m *fakeMaster) { m.tamper, m.executed = nil, nil })
		s.clock.advance(2 * time.Second)
		if n := s.masters[0].filings(); n != 1 {
			t.Errorf("%d times written after it was refused, want once", n)
		}
		if s.state(0) != "voting" || s.group.Counters().Admissions != 3 {
			t.Errorf("the master is %s after %d admissions", s.state(0), s.group.Counters().Admissions)
		}
	})
}

// A daemon that was cut off from a master learns meanwhile what another one has seen.
func TestRecords_AreReadWhileAMasterIsAway(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		s.change(0, func(m *fakeMaster) { m.cut, m.forbidden = true, errCut })
		s.vote(0)
		s.clock.advance(2 * time.Second)
		was, later := s.masters[0].identity, s.masters[0].register+10
		s.change(1, func(m *fakeMaster) { m.fileLocked([]string{"1", "of another group"}); m.records[s.recordOf(0)] = later })
		s.clock.advance(2 * time.Second)
		s.change(0, func(m *fakeMaster) { m.cut, m.forbidden = false, nil })
		s.clock.advance(2 * time.Second)
		if s.masters[0].identity == was || s.invalidated() != 1 {
			t.Errorf("%d incarnations invalidated, want the one that lacks what another daemon has seen", s.invalidated())
		}
		if got := s.masters[0].register; got < later {
			t.Errorf("the new incarnation begins at %d, below %d", got, later)
		}
	})
}

// A record that is read while a master's flush is under way may be newer than
// the register that the flush read: that proves nothing.
func TestRecords_OfALaterRegisterDoNotConvictAnEarlierAnswer(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		hold := make(chan struct{})
		s.change(0, func(m *fakeMaster) { m.waits = hold })
		s.send(acquiring("key")) // on its way to master a
		s.group.mu.Lock()
		s.group.lanes[0].recordedRegister = s.masters[1].register + 10
		s.group.mu.Unlock()
		s.change(0, func(m *fakeMaster) { m.waits = nil })
		close(hold)
		s.clock.advance(0)
		if s.invalidated() != 0 {
			t.Fatal("an incarnation was invalidated by an answer that is older than the record")
		}
		s.vote(0)
		if s.invalidated() != 1 {
			t.Errorf("%d incarnations invalidated by an answer that is newer than the record, want 1", s.invalidated())
		}
	})
}

// No master is admitted before the records of a quorum have been read, in any database.
func TestRecords_OfAQuorumAreReadBeforeAnyAdmission(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		for lane := range s.masters {
			away := lane > 1
			s.change(lane, func(m *fakeMaster) {
				m.executed = nil
				if away {
					m.forbidden = errCut
				}
			})
		}
		g := s.pool.Group(1) // the clocks are known already
		s.clock.advance(time.Second)
		for lane := range 2 {
			for _, words := range s.masters[lane].executed {
				if words[0] == "EVAL" {
					t.Errorf("master %s was admitted beside one other", s.name(lane))
				}
			}
		}
		s.change(2, func(m *fakeMaster) { m.forbidden = nil })
		s.clock.advance(time.Second)
		if n := g.Voters(); n != 3 {
			t.Errorf("%d voters with three masters of five, want 3: %v", n, g.Statuses())
		}
	})
}

// A master that loads its data has not shown what it remembers, and counts for nothing.
func TestRecords_OfAMasterThatLoadsItsDataAreNotRead(t *testing.T) {
	log := &misfiledLog{}
	onStage(t, 5, Options{Logger: slog.New(log)}, func(s *stage) {
		for lane := 2; lane < 5; lane++ {
			s.change(lane, func(m *fakeMaster) { m.forbidden = errCut })
		}
		s.change(2, func(m *fakeMaster) {
			m.forbidden = nil
			m.tamper = func(args []string, r *Reply) {
				if args[0] == "ZSCORE" || args[0] == "EVAL" || args[0] == "ZRANGE" {
					*r = refusal("LOADING Redis is loading the dataset in memory")
				}
			}
		})
		g := s.pool.Group(1) // the clocks are known already
		s.clock.advance(time.Second)
		if n := g.Counters().Admissions; n != 0 {
			t.Errorf("%d admissions with the records of two masters of five", n)
		}
		s.change(2, func(m *fakeMaster) { m.tamper = nil })
		for i := 0; i < 10 && g.Voters() < 3; i++ {
			time.Sleep(time.Second) // of the bubble: the attempts under way end
			s.clock.advance(time.Second)
		}
		if n := g.Voters(); n != 3 {
			t.Errorf("%d voters with three masters of five, want 3: %v", n, g.Statuses())
		}
	})
	if len(log.lines) != 0 {
		t.Errorf("the log has %q", log.lines)
	}
}

// A first dial that is under way is waited for: it may be of the one master that remembers.
func TestRecords_OfAMasterThatIsBeingDialledAreWaitedFor(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		hold := make(chan struct{})
		s.change(2, func(m *fakeMaster) {
			m.waits = hold
			m.fileLocked([]string{"1", "of another group"})
			m.records[recordOf(&s.pool.options, 1, "a")] = s.masters[0].register + clock.Micros(time.Hour)
		})
		g := s.pool.Group(1)
		s.clock.advance(10 * time.Millisecond)
		if n := g.Counters().Admissions; n != 0 {
			t.Errorf("%d admissions while the third master was dialled", n)
		}
		s.change(2, func(m *fakeMaster) { m.waits = nil })
		close(hold)
		s.clock.advance(time.Second)
		if got := g.Counters(); got.Invalidated != 1 || got.Admissions != 3 {
			t.Errorf("%d incarnations invalidated and %d admissions, want one that is invalidated before its admission, and 3", got.Invalidated, got.Admissions)
		}
	})
}

// misfiledLog notes what the log has of records.
type misfiledLog struct {
	slog.Handler
	lines []string
}

func (m *misfiledLog) Enabled(context.Context, slog.Level) bool { return true }

func (m *misfiledLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "records") {
		line := r.Message
		r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
		m.lines = append(m.lines, line)
	}
	return nil
}

func TestRecords_ThatAreUnreadableAreLoggedOnceAndCountAsAbsent(t *testing.T) {
	for what, reply := range map[string]Reply{
		"another type": refusal("WRONGTYPE Operation against a key holding the wrong kind of value"),
		"not allowed":  refusal("NOPERM this user has no permissions"),
		"too high":     number(MaxRegister + 1),
		"endless":      text("inf"),
		"below zero":   number(-1),
		"a list":       list(number(1)),
	} {
		t.Run(what, func(t *testing.T) {
			log := &misfiledLog{}
			onStage(t, 3, Options{Logger: slog.New(log)}, func(s *stage) {
				s.change(0, func(m *fakeMaster) {
					m.tamper = func(args []string, r *Reply) {
						if len(args) > 1 && args[1] == "redlockd:acked" {
							*r = reply
						}
					}
					m.cut = true
				})
				for range 3 {
					s.vote(0)
					s.change(0, func(m *fakeMaster) { m.cut = false })
					s.clock.advance(3 * time.Second)
					s.change(0, func(m *fakeMaster) { m.cut = true })
				}
				s.vote(0)
				s.change(0, func(m *fakeMaster) { m.cut = false })
				s.clock.advance(3 * time.Second)
				if a := s.vote(0); !a.Seal.Good || s.invalidated() != 0 {
					t.Errorf("seal %+v, %d incarnations invalidated", a.Seal, s.invalidated())
				}
			})
			if len(log.lines) != 1 || !strings.Contains(log.lines[0], "master=a") || !strings.Contains(log.lines[0], "key=redlockd:acked") {
				t.Errorf("the log has %q, want one line about master a", log.lines)
			}
		})
	}
}

// A master that never shows the register it has just confirmed does not keep a
// dial busy for ever.
func TestRecords_AMasterWhoseNewIncarnationsBeginTooLowIsRefused(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		s.change(0, func(m *fakeMaster) {
			m.identity, m.executed = "", nil
			m.tamper = func(args []string, r *Reply) {
				if args[0] == "EVAL" {
					r.Items[3] = number(7)
				}
			}
		})
		s.vote(0)
		s.clock.advance(200 * time.Millisecond)
		if st := s.group.Statuses()[0]; st.State != "refused" || !strings.Contains(st.Detail, "too low a register") {
			t.Errorf("%+v, want refused", st)
		}
	})
}
