package pool

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/admission"
)

func TestLane_AMasterThatNeverAnswersCostsOneTimeout(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.hangs = true })
		sent, queued := acquiring("sent"), acquiring("queued")
		s.send(sent)
		s.send(queued)
		s.clock.advance(s.pool.options.MasterTimeout - time.Microsecond)
		if !sent.unanswered(0) || !queued.unanswered(0) {
			t.Fatal("answered before the master timeout")
		}
		s.clock.advance(time.Microsecond)
		a, b := sent.only(t, 0), queued.only(t, 0)
		if !errors.Is(a.Reply.Err, errStalled) || !a.Sent || a.Seal.Good {
			t.Errorf("the flush: %+v, want asked and unknown", a)
		}
		if !errors.Is(b.Reply.Err, errStalled) || b.Sent || b.Seal.Good {
			t.Errorf("the queue: %+v, want not asked", b)
		}
		third := acquiring("third")
		s.send(third)
		if c := third.only(t, 0); c.Sent || c.Reply.Err == nil {
			t.Errorf("behind the open breaker: %+v, want an answer at once", c)
		}
		if got := s.group.Counters().BreakerOpened; got != 1 {
			t.Errorf("the breaker opened %d times, want once", got)
		}
		for lane := 1; lane < 5; lane++ {
			if !third.only(t, lane).Seal.Good {
				t.Errorf("lane %d suffers with lane 0", lane)
			}
		}
	})
}

func TestLane_APauseShorterThanTheStallTimeoutKeepsItsConnection(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		waits := make(chan struct{})
		s.change(0, func(m *fakeMaster) { m.waits, m.executed = waits, nil })
		op := acquiring("key")
		s.send(op)
		s.clock.advance(s.pool.options.MasterTimeout)
		if a := op.only(t, 0); !a.Sent || !errors.Is(a.Reply.Err, errStalled) {
			t.Errorf("%+v after the master timeout, want unknown", a)
		}
		s.retryReleases(0, 1, time.Minute)
		s.clock.advance(s.pool.options.StallTimeout() - s.pool.options.MasterTimeout - time.Microsecond)
		if during := s.vote(0); during.Sent || during.Reply.Err == nil {
			t.Errorf("%+v during the pause, want not asked", during)
		}
		s.change(0, func(m *fakeMaster) { m.waits = nil })
		close(waits)
		synctest.Wait()
		op.only(t, 0) // what comes this late is no second answer
		if a := s.vote(0); !a.Seal.Good || s.masters[0].dials != 1 {
			t.Errorf("%+v after the pause with %d connections, want a vote on the first one", a.Seal, s.masters[0].dials)
		}
		if got := s.heard(); !slices.Equal(got, []string{"SET", "D0", "SET"}) {
			t.Errorf("heard %q, want the pending releases before anything new", got)
		}
	})
}

// A master that stands still again soon after a pause costs one timeout again.
func TestLane_ASecondPauseAlsoCostsOneTimeout(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		limit := s.pool.options.MasterTimeout
		for range 2 {
			waits := make(chan struct{})
			s.change(0, func(m *fakeMaster) { m.waits = waits })
			op := acquiring("key")
			s.send(op)
			s.clock.advance(limit)
			if op.unanswered(0) {
				t.Error("unanswered after the master timeout")
			}
			s.clock.advance(limit)
			s.change(0, func(m *fakeMaster) { m.waits = nil })
			close(waits)
			synctest.Wait()
			if a := s.vote(0); !a.Seal.Good {
				t.Fatalf("%+v after the pause, want a vote", a.Seal)
			}
		}
	})
}

// A process that did not run has not lost the time of its masters.
func TestLane_AnAnswerInTheSocketMovesTheDeadlineUntilItIsRead(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		limit := s.pool.options.MasterTimeout
		held := make(chan struct{})
		s.change(0, func(m *fakeMaster) { m.held = held })
		sent, queued := acquiring("sent"), acquiring("queued")
		s.send(sent)
		s.send(queued)
		s.clock.advance(7 * limit)
		if c := s.group.Counters(); !sent.unanswered(0) || !queued.unanswered(0) || c.BreakerOpened != 0 {
			t.Fatalf("given up with the answer in the socket: the breaker opened %d times", c.BreakerOpened)
		}
		s.change(0, func(m *fakeMaster) { m.held = nil })
		close(held)
		synctest.Wait()
		if a, b := sent.only(t, 0), queued.only(t, 0); !a.Seal.Good || !b.Seal.Good {
			t.Errorf("%+v and %+v, want votes: the master executed both in time", a.Seal, b.Seal)
		}
		if c := s.group.Counters(); c.LateReads != 1 || c.LateFlushes != 0 || s.masters[0].dials != 1 {
			t.Errorf("%d late reads, %d late flushes, %d connections; want 1, 0, 1", c.LateReads, c.LateFlushes, s.masters[0].dials)
		}
	})
}

// A flush whose timer fires late may have been sent late.
func TestLane_AFlushGetsOneMoreTimeoutWhenItsTimerFiresLate(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		limit := s.pool.options.MasterTimeout
		for _, answers := range []bool{true, false} {
			waits := make(chan struct{})
			s.change(0, func(m *fakeMaster) { m.waits = waits })
			op := acquiring("key")
			s.send(op)
			s.clock.pass(3 * limit)
			s.clock.advance(limit - time.Microsecond)
			if !op.unanswered(0) {
				t.Fatal("answered before one more timeout")
			}
			s.change(0, func(m *fakeMaster) { m.waits = nil })
			if answers {
				close(waits)
				synctest.Wait()
				if a := op.only(t, 0); a.Reply.Err != nil {
					t.Errorf("%+v, want the answer", a)
				}
				continue
			}
			s.clock.advance(time.Microsecond)
			if a := op.only(t, 0); !errors.Is(a.Reply.Err, errStalled) {
				t.Errorf("%+v after one more timeout, want unknown", a)
			}
			close(waits)
		}
	})
}

// The master's own delay is not forgiven because the answer was read late, too.
func TestLane_AnAnswerReadLateOfAMasterThatWasLateDoesNotCount(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		limit := s.pool.options.MasterTimeout
		held := make(chan struct{})
		s.change(0, func(m *fakeMaster) {
			m.held = held
			m.between = func(i int, _ []Command) {
				if i == 0 {
					m.clock.pass(limit + time.Millisecond)
				}
			}
		})
		op := acquiring("key")
		s.send(op)
		s.clock.advance(3 * limit)
		s.change(0, func(m *fakeMaster) { m.held, m.between = nil, nil })
		close(held)
		synctest.Wait()
		a := op.only(t, 0)
		if a.Seal.Good || !errors.Is(a.Seal.Err, errLate) || !strings.Contains(a.Seal.Err.Error(), "executed after 10") {
			t.Errorf("%+v, want late, with the times", a.Seal)
		}
		if c := s.group.Counters(); c.LateReads != 0 || c.LateFlushes == 0 || c.BreakerOpened != 0 {
			t.Errorf("%d late reads, %d late flushes, the breaker opened %d times; want 0, 1 and 0", c.LateReads, c.LateFlushes, c.BreakerOpened)
		}
	})
}

// An answer that arrives during the stall and waits in the socket keeps the connection.
func TestLane_AnAnswerInTheSocketOfAStalledMasterKeepsItsConnection(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		limit := s.pool.options.MasterTimeout
		waits, held := make(chan struct{}), make(chan struct{})
		s.change(0, func(m *fakeMaster) { m.waits, m.held = waits, held })
		op := acquiring("key")
		s.send(op)
		s.clock.advance(limit)
		if a := op.only(t, 0); !errors.Is(a.Reply.Err, errStalled) {
			t.Fatalf("%+v, want one timeout: nothing had arrived", a)
		}
		close(waits)
		synctest.Wait()
		s.clock.advance(2 * s.pool.options.StallTimeout())
		s.change(0, func(m *fakeMaster) { m.waits, m.held = nil, nil })
		close(held)
		synctest.Wait()
		if a := s.vote(0); !a.Seal.Good || s.masters[0].dials != 1 {
			t.Errorf("%+v with %d connections, want a vote on the first one", a.Seal, s.masters[0].dials)
		}
	})
}

// The votes of a late flush do not count, but what it read about evictions does: the next reading
// comes a second later.
func TestLane_AnEvictionThatALateFlushReadEndsTheIncarnation(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		isReading := func(args []string) bool { return len(args) > 1 && args[1] == "stats" }
		read := false
		s.change(0, func(m *fakeMaster) { m.tamper = func(args []string, _ *Reply) { read = read || isReading(args) } })
		for !read {
			s.clock.advance(heartbeat)
		}
		s.clock.advance((settingsEvery - 1) * heartbeat)
		waits := make(chan struct{})
		s.change(0, func(m *fakeMaster) {
			m.waits = waits
			m.tamper = func(args []string, r *Reply) {
				if isReading(args) {
					*r = text("evicted_keys:5\r\n")
				}
			}
		})
		s.clock.advance(heartbeat + s.pool.options.MasterTimeout)
		if s.state(0) == "voting" || s.invalidated() != 0 {
			t.Fatalf("the master is %s, %d incarnations are invalidated", s.state(0), s.invalidated())
		}
		s.change(0, func(m *fakeMaster) { m.waits = nil })
		close(waits)
		synctest.Wait()
		if a := s.vote(0); s.invalidated() != 1 || a.Seal.Good && !a.Seal.Quarantined {
			t.Errorf("%d incarnations are invalidated, and the next vote has %+v", s.invalidated(), a.Seal)
		}
	})
}

// A master that is full evicts what its policy permits and then refuses writes. It must not vote
// when it has room again: the next reading may come up to a second later.
func TestLane_AnEvictionOfAFullMasterEndsTheIncarnation(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		s.change(0, func(m *fakeMaster) {
			m.tamper = func(args []string, r *Reply) {
				switch {
				case args[0] == "ZADD":
					*r = refusal("OOM no room")
				case len(args) > 1 && args[1] == "stats":
					*r = text("evicted_keys:5\r\n")
				}
			}
		})
		s.vote(0)
		s.clock.advance((settingsEvery + 1) * heartbeat)
		s.change(0, func(m *fakeMaster) { m.tamper = nil })
		if a := s.vote(0); s.invalidated() == 0 || a.Seal.Good && !a.Seal.Quarantined {
			t.Errorf("%d incarnations are invalidated, and the next vote has %+v", s.invalidated(), a.Seal)
		}
	})
}

func TestLane_AfterTheStallTimeoutTheConnectionEnds(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.hangs = true })
		s.send(acquiring("key"))
		s.clock.advance(s.pool.options.StallTimeout() - time.Microsecond)
		select {
		case <-s.masters[0].links[0].over:
			t.Error("ended before the stall timeout")
		default:
		}
		s.clock.advance(time.Microsecond)
		select {
		case <-s.masters[0].links[0].over:
		default:
			t.Error("not ended after the stall timeout")
		}
	})
}

func TestLane_AMasterThatAnswersAgainVotesAgain(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		was := s.masters[0].identity
		s.change(0, func(m *fakeMaster) { m.hangs = true })
		s.send(acquiring("key"))
		s.clock.advance(10 * time.Second)
		s.change(0, func(m *fakeMaster) { m.hangs = false })
		s.clock.advance(2 * time.Second)
		if a := s.vote(0); !a.Seal.Good || a.Seal.Quarantined || s.masters[0].identity != was {
			t.Errorf("%+v, want a vote in the old incarnation", a)
		}
		if n := s.masters[0].dials; n > 20 {
			t.Errorf("%d connections in 12 s, want growing delays", n)
		}
	})
}

func TestLane_DelaysBetweenConnectionsAreBounded(t *testing.T) {
	for _, c := range []struct {
		cause       error
		state       string
		least, most int
	}{
		{errors.New("connection refused"), "down", 4000, 8100}, // one every 12.5 to 25 ms
		{admission.Unfitf("is a slave"), "refused", 100, 230},  // one every 0.5 to 1 s
	} {
		onStage(t, 3, Options{}, func(s *stage) {
			s.change(0, func(m *fakeMaster) { m.forbidden, m.cut = c.cause, true })
			s.vote(0)
			before := s.masters[0].dials
			s.clock.advance(100 * time.Second)
			if n := s.masters[0].dials - before; n < c.least || n > c.most {
				t.Errorf("%v: %d connections in 100 s, want %d to %d", c.cause, n, c.least, c.most)
			}
			if st := s.group.Statuses()[0]; st.State != c.state || !strings.Contains(st.Detail, c.cause.Error()) {
				t.Errorf("status %+v, want %s with the reason", st, c.state)
			}
		})
	}
}

func TestLane_ThePredecessorIsEndedBeforeAnythingNewIsAsked(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.hangs = true })
		s.send(acquiring("key"))
		s.clock.advance(s.pool.options.MasterTimeout)
		s.change(0, func(m *fakeMaster) { m.hangs, m.executed = false, nil })
		s.clock.advance(2 * time.Second)
		kill := -1
		for i, words := range s.masters[0].executed {
			switch {
			case words[0] == "CLIENT" && words[1] == "KILL":
				kill = i
				if words[3] != "1" {
					t.Errorf("%q, want the first connection's id", words)
				}
			case words[0] == "SET" && kill < 0:
				t.Error("an operation before the predecessor was ended")
			}
		}
		if kill < 0 {
			t.Error("the predecessor was not ended")
		}
	})
}

func TestLane_NoConnectionIsKilledOnAnotherProcess(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.cut, m.runID, m.executed = true, "another", nil })
		s.vote(0)
		s.change(0, func(m *fakeMaster) { m.cut = false })
		s.clock.advance(2 * time.Second)
		for _, words := range s.masters[0].executed {
			if words[0] == "CLIENT" && words[1] == "KILL" {
				t.Errorf("%q after a restart: ids start again, it may be a stranger", words)
			}
		}
	})
}

func TestLane_OneServerUnderTwoNamesIsOneMaster(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.cut, m.runID = true, s.masters[1].runID })
		s.vote(0)
		s.change(0, func(m *fakeMaster) { m.cut = false })
		s.clock.advance(2 * time.Second)
		if st := s.group.Statuses()[0]; st.State != "refused" || !strings.Contains(st.Detail, "same server as master b") {
			t.Errorf("status %+v, want refused as the same server", st)
		}
	})
}

func TestLane_ARegisterBelowWhatWasAcknowledgedIsFoundAtAdmission(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		was := s.masters[0].identity
		s.change(0, func(m *fakeMaster) { m.cut = true })
		s.vote(0)
		s.change(0, func(m *fakeMaster) { m.cut = false; m.register -= 10 })
		s.clock.advance(2 * time.Second)
		if s.masters[0].identity == was || s.invalidated() != 1 {
			t.Errorf("%d incarnations invalidated, want the one that was rolled back", s.invalidated())
		}
		if got := s.group.Counters().Admissions; got != 4 {
			t.Errorf("%d admissions, want 4: the old incarnation was not admitted again", got)
		}
	})
}

func TestLane_AFullQueueRefusesWithoutAsking(t *testing.T) {
	onStage(t, 3, Options{MaxQueue: 4}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.hangs = true })
		s.send(acquiring("first")) // on its way
		var ops []*asker
		for i := range 6 {
			ops = append(ops, acquiring("k"+strconv.Itoa(i)))
		}
		s.send(ops...)
		for i, op := range ops {
			if i < 4 != op.unanswered(0) {
				t.Errorf("operation %d of a queue for 4: answered %v", i, !op.unanswered(0))
			}
		}
		if a := ops[5].only(t, 0); a.Sent || !errors.Is(a.Reply.Err, errQueueFull) {
			t.Errorf("%+v, want queue full", a)
		}
		if got := s.pool.Busy(); got != 5 {
			t.Errorf("busy with %d, want 5", got)
		}
	})
}

func TestLane_AnOperationWhoseTimeIsUpIsAnsweredWithoutBeingSent(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.executed = nil })
		op := acquiring("key")
		op.skip = true
		s.send(op)
		if a := op.only(t, 0); a.Sent || a.Reply.Err != nil {
			t.Errorf("%+v, want not asked", a)
		}
		for _, words := range s.masters[0].executed {
			if words[0] == "SET" {
				t.Error("it was sent")
			}
		}
	})
}

func TestLane_ClosingAnswersWhatIsOnItsWayAndWhatWaits(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.hangs = true })
		sent, queued := acquiring("sent"), acquiring("queued")
		s.send(sent)
		s.send(queued)
		s.pool.Close()
		if a := sent.only(t, 0); !a.Sent || !errors.Is(a.Reply.Err, errClosed) {
			t.Errorf("the flush: %+v", a)
		}
		if a := queued.only(t, 0); a.Sent || !errors.Is(a.Reply.Err, errClosed) {
			t.Errorf("the queue: %+v", a)
		}
		after := acquiring("after")
		s.send(after)
		if a := after.only(t, 0); a.Sent || !errors.Is(a.Reply.Err, errClosed) {
			t.Errorf("afterwards: %+v", a)
		}
	})
}

// proposing panics when it is queued.
type proposing struct{ *asker }

func (proposing) Propose(int64, int) { panic("an operation's own mistake") }

// The session that sends it recovers, so the group must go on.
func TestGroup_AnOperationThatPanicsWhenItIsQueuedKeepsNoMutex(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		func() {
			defer func() { _ = recover() }()
			var b Batch
			b.Add(s.group, proposing{acquiring("bad")})
			b.Send()
		}()
		if !s.group.mu.TryLock() {
			s.group.mu = sync.Mutex{} // for the end of the test
			t.Fatal("the group's mutex is held")
		}
		s.group.mu.Unlock()
		s.vote(0)
	})
}

func TestLane_AnOperationThatPanicsTakesNoAnswerFromTheOthers(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		before, bad, after := acquiring("before"), acquiring("bad"), acquiring("after")
		bad.panics = true
		s.send(before, bad, after)
		for lane := range s.masters {
			before.only(t, lane)
			bad.only(t, lane)
			after.only(t, lane)
		}
		s.clock.advance(2 * time.Second)
		if a := s.vote(2); !a.Seal.Good {
			t.Errorf("%+v once it has dialled again, want good", a.Seal)
		}
	})
}
