// Tests of masters that are taken out of service.

package pool

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDrain_AsksForNothingNewAndForEverythingElse(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		if err := s.pool.Drain("a"); err != nil {
			t.Fatal(err)
		}
		s.change(0, func(m *fakeMaster) { m.executed = nil })
		for name, plan := range map[string]Props{
			"takes": {Key: "k", Exclusive: true, Sealed: true}, "begins": {Key: "k", StartsNew: true, Sealed: true},
		} {
			op := &asker{plan: plan, words: []string{"SET", "k"}}
			s.send(op)
			if a := op.only(t, 0); a.Sent || !errors.Is(a.Reply.Err, errDrained) {
				t.Errorf("%s: %+v, want not asked", name, a)
			}
			if a := op.only(t, 2); !a.Sent || !a.Seal.Good {
				t.Errorf("%s: master c suffers with a: %+v", name, a)
			}
		}
		for name, op := range map[string]*asker{
			"release": releasing("k"), "extension": {plan: Props{Key: "k", SharesKey: true, Sealed: true}, words: []string{"GET", "k"}},
		} {
			s.send(op)
			if a := op.only(t, 0); !a.Sent {
				t.Errorf("%s: %+v, want asked", name, a)
			}
		}
		s.retryReleases(7, 8, time.Minute)
		if heard := s.heard(); slices.Contains(heard, "SET") || !slices.Contains(heard, "D7") {
			t.Errorf("master a heard %q", heard)
		}
		if s.group.Voters() != 4 {
			t.Errorf("%d voters", s.group.Voters())
		}
		if err := s.pool.Undrain("a"); err != nil || !s.vote(0).Seal.Good || s.group.Voters() != 5 {
			t.Errorf("%v: master a does not vote again", err)
		}
	})
}

func TestDrain_IsRefusedWithoutAQuorumOfTheOthers(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.hangs = true })
		s.vote(1)
		s.clock.advance(s.pool.options.MasterTimeout)
		if err := s.pool.Drain("b"); err != nil { // c, d, e are left
			t.Fatal(err)
		}
		if err := s.pool.Drain("b"); err != nil {
			t.Errorf("said again: %v", err)
		}
		refused := s.pool.Drain("c")
		if refused == nil {
			t.Fatal("a master was drained that a quorum needs")
		}
		for _, word := range []string{"master c cannot be drained", "2 of 5 masters", "3 are needed", "a=a:6379 down", "b=b:6379 draining"} {
			if !strings.Contains(refused.Error(), word) {
				t.Errorf("%q does not say %q", refused, word)
			}
		}
		if !s.vote(2).Seal.Good {
			t.Error("what was refused was done")
		}
		if err := s.pool.Undrain("b"); err != nil {
			t.Error(err)
		}
		if err := s.pool.Drain("c"); err != nil { // b, d, e are left
			t.Error(err)
		}
	})
}

func TestDrain_CountsNoMasterThatIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 3, Options{}, func(m *fakeMaster, i int) { m.blessed = i != 0 })
		defer s.pool.Close()
		if err := s.pool.Drain("c"); err == nil || !strings.Contains(err.Error(), "a=a:6379 quarantined") {
			t.Errorf("%v", err)
		}
		if err := s.pool.Drain("a"); err != nil { // it does not vote anyway
			t.Error(err)
		}
	})
}

func TestDrain_OfAnUnknownNameSaysTheNames(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		for _, err := range []error{s.pool.Drain("x\r\n"), s.pool.Undrain("")} {
			var unknown *NoMaster
			if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "a, b, c") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		}
		if err := s.pool.Undrain("a"); err != nil {
			t.Errorf("of a master that is not drained: %v", err)
		}
	})
}

func TestDrain_ShowsWhenNothingRestsOnTheMasterAnyMore(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		if err := s.pool.Drain("b"); err != nil {
			t.Fatal(err)
		}
		if b := s.group.Statuses()[1]; b.State != "draining" || b.Detail != "what was granted before is over in "+humanDuration(s.pool.drainTime()) {
			t.Errorf("%+v", b)
		}
		if phrase := s.group.Statuses()[1].phrase(); !strings.HasPrefix(phrase, "b=b:6379 draining (") {
			t.Errorf("%q", phrase)
		}
		s.clock.advance(s.pool.drainTime())
		synctest.Wait()
		if b := s.group.Statuses()[1]; b.State != "drained" {
			t.Errorf("%+v", b)
		}
		s.change(1, func(m *fakeMaster) { m.forbidden = errors.New("connection refused") })
		s.masters[1].links[len(s.masters[1].links)-1].Close()
		s.clock.advance(heartbeat)
		synctest.Wait()
		if b := s.group.Statuses()[1]; b.State != "down" || !strings.HasSuffix(b.Detail, "being drained") {
			t.Errorf("%+v", b)
		}
	})
}

func TestDrain_HoldsInDatabasesThatAreFirstUsedLater(t *testing.T) {
	onStage(t, 3, Options{Databases: 2}, func(s *stage) {
		if err := s.pool.Drain("b"); err != nil {
			t.Fatal(err)
		}
		s.group = s.pool.Group(1)
		synctest.Wait()
		if a := s.vote(1); a.Sent || !errors.Is(a.Reply.Err, errDrained) {
			t.Errorf("%+v", a)
		}
		if err := s.pool.Undrain("b"); err != nil || !s.vote(1).Seal.Good {
			t.Error(err)
		}
	})
}

// A master comes back from its maintenance as it was left: not asked.
func TestDrain_OutlastsTheMastersRestart(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		if err := s.pool.Drain("b"); err != nil {
			t.Fatal(err)
		}
		s.masters[1].links[len(s.masters[1].links)-1].Close()
		s.clock.advance(time.Second)
		synctest.Wait()
		if s.masters[1].dials < 2 || s.state(1) != "draining" {
			t.Errorf("%d dials, %s", s.masters[1].dials, s.state(1))
		}
		if a := s.vote(1); a.Sent {
			t.Errorf("%+v", a)
		}
	})
}
