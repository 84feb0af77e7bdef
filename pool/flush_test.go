package pool

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/notify"
)

// flushStage is a lane whose flushes a test fills and reads itself.
type flushStage struct {
	clock *handClock
	lane  *lane
	conn  *connection
	flush *flush // under way
}

func newFlushStage() *flushStage {
	hand := newHandClock()
	p := &Pool{options: Options{
		Masters: []Master{{Name: "a"}}, MasterTimeout: 100 * time.Millisecond, Clock: hand, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}}
	p.masters.Store(&p.options.Masters)
	g := &Group{pool: p, sealKey: "redlockd:seal", clocked: true, ready: make(chan struct{}), closed: true,
		Events: notify.Events{Config: notify.Config{Masters: p.options.Masters, Clock: hand, Logger: p.options.Logger}, Channel: "events", Carried: true}}
	l := &lane{group: g}
	l.voteLog.Close(0)
	g.lanes = []*lane{l}
	link, _ := (&fakeMaster{clock: hand}).dial(0)
	c := &connection{lane: l, link: link, incarnation: &Incarnation{Identity: "run line 0 0 print", RunID: "run", ID: "line"}}
	c.timer = hand.AfterFunc(time.Hour, func() {})
	l.conn, l.state, l.running = c, stateUp, true // the test is the task
	l.est = clock.Estimate{Known: true, Taken: hand.Now(), Err: 10}
	l.gain.restart(hand.Now(), l.est.Err, p.options.budget())
	f := c.emptyFlush()
	c.flushes = []*flush{f}
	f.sent = hand.Now()
	f.context.Now, f.context.Time = f.sent, l.est.At(f.sent)
	return &flushStage{hand, l, c, f}
}

func queueOf(ops ...*asker) []queueEntry {
	var queue []queueEntry
	for i, op := range ops {
		queue = append(queue, queueEntry{op: op, props: op.plan, fence: int64(i + 1)})
	}
	return queue
}

func TestFlush_NothingFollowsAnAcquireOfItsKeyInTheSameFlush(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		var ops []*asker
		for range r.IntN(40) {
			key := string(rune('a' + r.IntN(12)))
			op := acquiring(key)
			switch r.IntN(4) {
			case 0:
				op = releasing(key)
			case 1:
				op.plan.Exclusive = false // an extend
			case 2:
				op = &asker{plan: Props{Sealed: true, SealOnly: true}}
			}
			ops = append(ops, op)
		}
		queue, limit := queueOf(ops...), 1+r.IntN(20)
		var order []*asker
		for len(queue) > 0 {
			f := newFlushStage().flush
			n := f.fill(queue, limit)
			if n == 0 || n > limit {
				t.Fatalf("seed %d: a flush of %d, limit %d", seed, n, limit)
			}
			taken := map[string]bool{}
			for _, e := range f.entries {
				if taken[e.props.Key] {
					t.Fatalf("seed %d: something follows the acquire of %q", seed, e.props.Key)
				}
				if e.props.Exclusive {
					taken[e.props.Key] = true
				}
				order = append(order, e.op.(*asker))
			}
			if n < limit && n < len(queue) && !taken[queue[n].props.Key] {
				t.Fatalf("seed %d: the flush stops at %d of %d without a reason", seed, n, len(queue))
			}
			if want := slices.ContainsFunc(queue[:n], func(e queueEntry) bool { return e.props.Sealed }); f.sealed != want {
				t.Fatalf("seed %d: sealed %v, want %v", seed, f.sealed, want)
			}
			queue = queue[n:]
		}
		if !slices.Equal(order, ops) {
			t.Fatalf("seed %d: the order changed", seed)
		}
	}
}

func TestFlush_TheRegisterStaysBelowTheFirstProposalLeftBehind(t *testing.T) {
	f := newFlushStage().flush
	if got := f.leftBehind(nil); got != 0 {
		t.Errorf("nothing is left behind: %d", got)
	}
	if got := f.leftBehind([]queueEntry{{}, {}, {fence: 7}, {fence: 8}}); got != 7 {
		t.Errorf("left behind %d, want 7: entries without a proposal do not matter", got)
	}
}

func TestFlush_ALimitedFlushLeavesRoomForTheNextOnesFences(t *testing.T) {
	onStage(t, 3, Options{MaxFlush: 4}, func(s *stage) {
		var ops []*asker
		for i := range 10 {
			ops = append(ops, acquiring(string(rune('a'+i))))
		}
		s.send(ops...)
		for i, op := range ops {
			for lane := range s.masters {
				if a := op.only(t, lane); a.Seal.Old >= op.fence || a.Seal.Top < op.fence {
					t.Errorf("operation %d in lane %d owns (%d, %d], want its proposal %d inside", i, lane, a.Seal.Old, a.Seal.Top, op.fence)
				}
			}
		}
	})
}

// written are the commands of a flush, first words only.
func written(f *flush) (out []string) {
	for _, c := range f.commands {
		out = append(out, c.Args[0])
	}
	return out
}

func TestFlush_TheSealStandsLast(t *testing.T) {
	s := newFlushStage()
	f := s.flush
	f.fill(queueOf(acquiring("a"), releasing("b"), acquiring("c")), 10)
	f.raise = 42
	f.write()
	if got := written(f); !slices.Equal(got, []string{"SET", "DEL", "SET", "ZSCORE", "ZADD", "TIME"}) {
		t.Errorf("written %q", got)
	}
	want := "ZADD redlockd:seal XX GT CH 42 " + s.conn.incarnation.Identity
	if got := strings.Join(f.commands[4].Args, " "); got != want {
		t.Errorf("raise %q, want %q", got, want)
	}
	if f.sealAt != 3 || f.timeAt != 5 || f.serverAt != -1 || !slices.Equal(f.index, []int{0, 1, 2}) {
		t.Errorf("seal at %d and %d, who at %d, index %v", f.sealAt, f.timeAt, f.serverAt, f.index)
	}
}

func TestFlush_AHeartbeatReadsTheRegisterAndDoesNotRaiseIt(t *testing.T) {
	s := newFlushStage()
	f := s.flush
	f.beat = true
	f.write()
	if got := written(f); !slices.Equal(got, []string{"INFO", "ZSCORE", "TIME"}) {
		t.Errorf("written %q", got)
	}
	s.conn.spare = append(s.conn.spare, f)
	s.conn.emptyFlush()
	f.beat, f.readSettings = true, true
	s.conn.planReadings(f)
	f.write()
	if got := written(f); !slices.Equal(got, []string{"INFO", "CONFIG", "INFO", "CONFIG", "INFO", "PUBSUB", "CLIENT", "ZSCORE", "TIME"}) {
		t.Errorf("written %q", got)
	}
}

func TestFlush_AFlushOfReleasesAloneHasNoSeal(t *testing.T) {
	s := newFlushStage()
	f := s.flush
	f.fill(queueOf(acquiring("key")), 10)
	f.write()
	s.conn.spare = append(s.conn.spare, f)
	s.conn.emptyFlush()
	f.fill(queueOf(releasing("a")), 10)
	f.write()
	if got := written(f); !slices.Equal(got, []string{"DEL"}) {
		t.Errorf("written %q", got)
	}
	if f.sealAt != -1 { // error replies behind it would not be logged
		t.Errorf("seal at %d", f.sealAt)
	}
}

func TestFlush_DroppedCommandsAndBareSealsLeaveNoTrace(t *testing.T) {
	s := newFlushStage()
	f := s.flush
	skipped, bare := acquiring("b"), &asker{plan: Props{Sealed: true, SealOnly: true}}
	skipped.skip = true
	f.fill(queueOf(acquiring("a"), skipped, bare, acquiring("d")), 10)
	f.write()
	if got := written(f); !slices.Equal(got, []string{"SET", "SET", "ZSCORE", "ZADD", "TIME"}) {
		t.Errorf("written %q", got)
	}
	if !slices.Equal(f.index, []int{0, -1, -1, 1}) || !f.bare {
		t.Errorf("index %v, bare %v", f.index, f.bare)
	}
}

func TestFlush_BuffersOfAnEarlierFlushDoNotShineThrough(t *testing.T) {
	s := newFlushStage()
	f := s.flush
	long := acquiring("long")
	long.words = []string{"EVALSHA", "sha", "1", "key", "token", "12345"}
	f.fill(queueOf(long, long, long), 1)
	f.write()
	s.conn.spare = append(s.conn.spare, f)
	s.conn.emptyFlush()
	f.fill(queueOf(acquiring("a")), 1)
	f.write()
	if got := f.commands[0].Args; !slices.Equal(got, []string{"SET", "a"}) {
		t.Errorf("written %q", got)
	}
	if len(f.entries) != 1 || f.beat || f.bare {
		t.Errorf("left from the earlier flush: %+v", f)
	}
}

// losesScripts makes a master have no scripts until they are loaded.
func losesScripts(m *fakeMaster) {
	lost := true
	m.tamper = func(args []string, r *Reply) {
		switch args[0] {
		case "SCRIPT":
			lost = false
		case "EVALSHA":
			if lost {
				*r = refusal("NOSCRIPT No matching script. Please use EVAL.")
			}
		}
	}
}

func TestFlush_LostScriptsAreLoadedAndWhatNeedsThemIsSentAgain(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.pool.scripts = []string{"one", "two"} // of a pool that is not started
		s.vote(0)
		for lane := range s.masters {
			s.change(lane, func(m *fakeMaster) { losesScripts(m); m.executed = nil })
		}
		first := &asker{plan: Props{Key: "a", Exclusive: true, Sealed: true}, words: []string{"EVALSHA", "one", "1", "a"}}
		plain, second := acquiring("b"), &asker{plan: Props{Key: "c", SealZero: true}, words: []string{"EVALSHA", "two", "1", "c"}}
		s.send(first, plain, second)
		const seal, raise = "ZSCORE", "ZADD"
		want := []string{"EVALSHA one", "SET b", "EVALSHA two", seal, raise, "TIME", "SCRIPT LOAD", "SCRIPT LOAD", "EVALSHA one", "EVALSHA two", "INFO server", seal, raise, "TIME"}
		for lane, m := range s.masters {
			for _, op := range []*asker{first, plain, second} {
				if a := op.only(t, lane); a.Reply.Err != nil || !a.Seal.Good {
					t.Errorf("lane %d: %q is answered %+v", lane, op.words, a)
				}
			}
			var got []string
			for _, args := range m.executed {
				line := strings.Join(args[:min(2, len(args))], " ")
				if args[0] == seal || args[0] == raise {
					line = args[0]
				}
				got = append(got, line)
			}
			if !slices.Equal(got, want) || m.dials != 1 {
				t.Errorf("lane %d: executed %q on %d connections, want %q on one", lane, got, m.dials, want)
			}
		}
	})
}

func TestFlush_WhatIsSentAgainGoesInFrontOfWhatIsQueued(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.pool.scripts = []string{"one"}
		s.vote(0)
		waits := make(chan struct{})
		s.change(0, func(m *fakeMaster) { losesScripts(m); m.executed, m.waits = nil, waits })
		s.send(&asker{plan: Props{Key: "a", SealZero: true}, words: []string{"EVALSHA", "one", "1", "a"}})
		s.send(releasing("a"))
		close(waits)
		synctest.Wait()
		var got []string
		for _, args := range s.masters[0].executed {
			if args[0] == "EVALSHA" || args[0] == "DEL" {
				got = append(got, args[0])
			}
		}
		if want := []string{"EVALSHA", "EVALSHA", "DEL"}; !slices.Equal(got, want) {
			t.Errorf("executed %q, want %q", got, want)
		}
	})
}

func TestFlush_ScriptsThatAreLostAgainEndTheConnection(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.vote(0)
		s.change(0, falsify("EVALSHA", refusal("NOSCRIPT No matching script. Please use EVAL.")))
		op := &asker{plan: Props{Key: "a", SealZero: true}, words: []string{"EVALSHA", "one", "1", "a"}}
		s.send(op)
		if a := op.only(t, 0); a.Reply.Err == nil || !a.Sent {
			t.Errorf("answered %+v, want the error", a)
		}
		s.clock.advance(2 * s.pool.options.MasterTimeout)
		if n := s.masters[0].dials; n != 2 {
			t.Errorf("%d connections, want 2", n)
		}
	})
}

func TestFlush_AnotherProcessThatHasNoScriptsDoesNotVote(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.pool.scripts = []string{"one"}
		s.vote(0)
		s.change(0, func(m *fakeMaster) { losesScripts(m); m.runID += "0" }) // behind a balancer, with the memory of the other one
		op := &asker{plan: Props{Key: "a", Exclusive: true, Sealed: true}, words: []string{"EVALSHA", "one", "1", "a"}}
		s.send(op)
		if a := op.only(t, 0); a.Reply.Err != nil || a.Seal.Good || !errors.Is(a.Seal.Err, errBalanced) {
			t.Errorf("answered %+v, want a bad seal", a)
		}
	})
}
