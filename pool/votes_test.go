package pool

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func (s *stage) report(lane int) MasterReport { return s.group.Reports()[lane] }

func TestVotes_TellConsentRefusalAndUncountedApart(t *testing.T) {
	good, quarantined, bad := Seal{Good: true}, Seal{Good: true, Quarantined: true}, Seal{}
	for _, c := range []struct {
		answer Answer
		want   Votes
	}{
		{Answer{Sent: true, Reply: text("OK"), Seal: good}, Votes{Yes: 1}},
		{Answer{Sent: true, Reply: number(2), Seal: good}, Votes{Yes: 1}},
		{Answer{Sent: true, Reply: list(number(1), number(0)), Seal: good}, Votes{Yes: 1}},
		{Answer{Sent: true, Reply: list(number(2), number(7)), Seal: good}, Votes{No: 1}},
		{Answer{Sent: true, Reply: Reply{}, Seal: good}, Votes{No: 1}},
		{Answer{Sent: true, Reply: number(0), Seal: good}, Votes{No: 1}},
		{Answer{Sent: true, Reply: number(-1), Seal: quarantined}, Votes{No: 1}},
		{Answer{Sent: true, Reply: text("OK"), Seal: quarantined}, Votes{Uncounted: 1}},
		{Answer{Sent: true, Reply: text("OK"), Seal: bad}, Votes{Uncounted: 1}},
		{Answer{Sent: true, Reply: refusal("ERR no"), Seal: good}, Votes{Uncounted: 1}},
		{Answer{Reply: text("OK"), Seal: good}, Votes{Uncounted: 1}},
	} {
		var got Votes
		if got.count(&c.answer); got != c.want {
			t.Errorf("%+v counts as %+v, want %+v", c.answer, got, c.want)
		}
	}
}

func TestReports_CountVotesAndRoundTripsOfEachMaster(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.change(1, func(m *fakeMaster) { m.cutAfter = true })
		s.send(acquiring("key"), acquiring("other"), releasing("third"))
		if got := s.report(0); got.Votes != (Votes{Yes: 2}) || got.RTT.Count() == 0 || got.Role != "master" || got.InFlight != 0 {
			t.Errorf("master a: %+v", got)
		}
		if got := s.report(1).Votes; got != (Votes{Uncounted: 2}) {
			t.Errorf("master b, whose answers were lost: %+v", got)
		}
	})
}

func TestReports_CountWhatWaitedForAConnectionThatDidNotCome(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		op, l := acquiring("key"), s.group.lanes[0]
		s.group.mu.Lock()
		l.queue.push(queueEntry{op: op, props: op.Props()})
		s.group.mu.Unlock()
		l.dialFailed(errCut)
		if got := s.report(0).Votes; got != (Votes{Uncounted: 1}) || op.only(t, 0).Sent {
			t.Errorf("votes %+v", got)
		}
	})
}

func TestReports_ShowWhatIsOnItsWay(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.change(2, func(m *fakeMaster) { m.hangs = true })
		s.send(acquiring("key"), acquiring("other"))
		if got := s.report(2); got.InFlight != 2 || got.Votes != (Votes{}) {
			t.Errorf("%d in flight, votes %+v", got.InFlight, got.Votes)
		}
		s.clock.advance(s.pool.options.MasterTimeout)
		s.send(acquiring("third"))
		if got := s.report(2).Votes; got != (Votes{Uncounted: 3}) {
			t.Errorf("votes %+v of a master that does not answer", got)
		}
	})
}

func TestCounters_SayWhyASealWasVoid(t *testing.T) {
	for reason, change := range map[string]func(*fakeMaster){
		"forgot":      falsify("ZSCORE", Reply{}),
		"rolled-back": func(m *fakeMaster) { m.register-- },
		"damaged":     func(m *fakeMaster) { m.register = MaxRegister + 1 },
		"suspect":     falsify("TIME", list(number(1<<62), number(1<<62))),
		"other":       falsify("TIME", Reply{}),
	} {
		t.Run(reason, func(t *testing.T) {
			onStage(t, 5, Options{}, func(s *stage) {
				s.vote(0)
				s.change(0, change)
				s.send(acquiring("key"))
				void := map[string]int64{}
				for i, n := range s.group.Counters().Void {
					void[VoidReason(i)] = n
				}
				if void[reason] == 0 {
					t.Errorf("void seals by reason: %v", void)
				}
			})
		})
	}
	names := map[string]bool{}
	for reason := range VoidReasons {
		names[VoidReason(reason)] = true
	}
	if len(names) != VoidReasons || names[""] {
		t.Error(fmt.Sprint("reasons without a name of their own: ", names))
	}
}

func TestDatabases_AreThoseInUse(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.pool.Group(7)
		s.pool.Group(2)
		if got := fmt.Sprint(s.pool.Databases()); got != "[0 2 7]" {
			t.Error(got)
		}
	})
}

func TestReports_CompareTheClocksOfMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 3, Options{}, func(m *fakeMaster, i int) { m.ahead = time.Duration(i) * 100 * time.Millisecond })
		defer s.pool.Close()
		for lane, want := range []time.Duration{-100 * time.Millisecond, 0, 100 * time.Millisecond} {
			if got := s.report(lane); got.State != "voting" || (got.Clock-want).Abs() > time.Millisecond {
				t.Errorf("master %s is %s and its clock is ahead by %s, want %s", got.Name, got.State, got.Clock, want)
			}
		}
	})
}

// The requests of one read batch leave in one flush for each group, in whatever order they came.
func TestBatch_OfSeveralGroupsIsOneFlushForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 3, Options{})
		defer s.pool.Close()
		other := s.pool.Group(1)
		synctest.Wait()
		before := [2]Counters{s.group.Counters(), other.Counters()}
		var b Batch
		for i := range 6 {
			op := acquiring(string(rune('a' + i)))
			if i%2 == 0 {
				b.Add(s.group, op)
			} else {
				b.Add(other, op)
			}
		}
		if n := s.pool.Busy(); n != 0 {
			t.Errorf("%d operations and lanes are busy before the batch is sent", n)
		}
		b.Send()
		synctest.Wait()
		for i, g := range []*Group{s.group, other} {
			now := g.Counters()
			if flushes, commands := now.Flushes-before[i].Flushes, now.Commands-before[i].Commands; flushes != 3 || commands != 9 {
				t.Errorf("group %d: %d commands in %d flushes, want 9 in 3", i, commands, flushes)
			}
		}
		b.Send() // it is empty
	})
}
