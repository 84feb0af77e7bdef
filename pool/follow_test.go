// Tests of lists of masters that change while the pool runs.

package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/admission"
)

// follow changes the list and waits until everything has come to rest.
func (s *stage) follow(names ...string) {
	s.t.Helper()
	var list []Master
	for _, name := range names {
		if s.byName[name] == nil {
			s.newMaster(name)
		}
		list = append(list, named(name))
	}
	if err := s.pool.Follow(list, &admission.Configuration{}, s.rename(list)); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	s.clock.advance(time.Second) // connections that lasted for less are dialled again after a pause
	synctest.Wait()
}

// rename puts the next configuration on the masters of a list, as redlockd reconfigure does.
func (s *stage) rename(list []Master) admission.Known {
	o := s.pool.Options()
	s.group.mu.Lock()
	next := o.Configuration(admission.EpochOf(s.group.epoch.Mark) + 1)
	s.group.mu.Unlock()
	o.Masters = list
	next.Masters = o.Configuration(0).Masters
	texts := admission.StoredConfiguration{Now: next, InForce: true}.Texts()
	for _, one := range list {
		m := s.byName[one.Name]
		m.mu.Lock()
		m.print, m.texts = o.Fingerprint(0, next.Mark(), one.Name), texts
		if words := strings.SplitN(m.identity, " ", 5); len(words) == 5 {
			m.identity = strings.Join(append(words[:4], m.print), " ")
		}
		m.mu.Unlock()
	}
	return admission.Known{Mark: next.Mark(), Texts: texts}
}

// voting are the names of the masters that vote, by lane.
func (s *stage) voting() string {
	var names []string
	for _, r := range s.group.Statuses() {
		if r.State == votingState {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestFollow_ANewcomerTakesThePlaceOfTheMasterThatLeft(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(1, func(m *fakeMaster) { m.hangs = true })
		before := acquiring("key")
		s.send(before)
		s.follow("a", "d", "c")
		if a := before.only(t, 1); !errors.Is(a.Reply.Err, errLeft) || !a.Sent {
			t.Errorf("the master that left: %+v", a)
		}
		if got := s.voting(); got != "a d c" {
			t.Errorf("voting: %s", got)
		}
		after := acquiring("key")
		s.send(after)
		for lane := range 3 {
			if a := after.only(t, lane); !a.Sent || !a.Seal.Good {
				t.Errorf("lane %d: %+v", lane, a)
			}
		}
		if dials := s.masters[0].dials; dials != 2 { // once more, under the new configuration
			t.Errorf("%d dials of a master that stayed", dials)
		}
	})
}

func TestFollow_AQuorumIsOneOfTheListWithWhichAnOperationWasQueued(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		for _, names := range []string{"a b c d", "a b c d e", "a c d e", "a d e"} {
			list := strings.Fields(names)
			s.follow(list...)
			op := releasing("key")
			s.send(op)
			if op.among != len(list) || len(op.answers) != len(list) || s.pool.N() != len(list) {
				t.Errorf("%s: queued among %d, %d answers, %d masters", names, op.among, len(op.answers), s.pool.N())
			}
			voting := strings.Fields(s.voting())
			if slices.Sort(voting); strings.Join(voting, " ") != names {
				t.Errorf("voting are %s, want %s", voting, names)
			}
		}
	})
}

func TestFollow_AMasterThatChangesItsPlaceKeepsWhatIsKnownOfIt(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.vote(4)
		register := s.group.lanes[4].acked
		links := len(s.byName["e"].links)
		s.follow("a", "e", "c") // e moves from the fifth place to the second
		l := s.group.lanes[1]
		if l.master.Name != "e" || l.acked < register || register == 0 {
			t.Fatalf("%s has the register %d, had %d", l.master.Name, l.acked, register)
		}
		if e := s.byName["e"]; len(e.links) != links+1 || !e.heardOf("CLIENT KILL") {
			t.Errorf("%d links, had %d: the connection before was not ended on the master", len(e.links), links)
		}
	})
}

func (m *fakeMaster) heardOf(words string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.executed, func(args []string) bool { return strings.HasPrefix(strings.Join(args, " "), words) })
}

func TestFollow_AReleaseThatIsPendingFollowsItsMaster(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		s.change(4, func(m *fakeMaster) { m.forbidden = errCut })
		for _, l := range s.byName["e"].links {
			l.Close()
		}
		s.vote(0)
		s.group.RetryRelease(4, PendingRelease{Args: []string{"D", "7"}, Until: s.clock.Now() + time.Minute})
		s.follow("a", "e", "c")
		s.change(4, func(m *fakeMaster) { m.forbidden = nil })
		s.clock.advance(time.Second)
		synctest.Wait()
		if !s.byName["e"].heardOf("D 7") {
			t.Errorf("the release was lost: %q", s.byName["e"].executed)
		}
	})
}

func TestFollow_EveryOperationIsAnsweredOnceByEachMasterItWasQueuedOn(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			onStage(t, 3, Options{}, func(s *stage) {
				var ops []*asker
				for range 40 {
					var b Batch
					for range 1 + r.IntN(3) {
						op := acquiring(fmt.Sprint(r.IntN(4)))
						ops = append(ops, op)
						b.Add(s.group, op)
					}
					b.Send()
					if r.IntN(2) == 0 {
						synctest.Wait()
					}
					names := []string{"a", "b", "c", "d", "e", "f", "g"}
					r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
					if r.IntN(3) == 0 {
						s.follow(names[:3+r.IntN(4)]...)
					}
					s.change(r.IntN(3), func(m *fakeMaster) { m.cut = r.IntN(3) == 0 })
					s.clock.advance(time.Duration(r.IntN(200)) * time.Millisecond)
				}
				for _, m := range s.byName {
					m.mu.Lock()
					m.cut = false
					m.mu.Unlock()
				}
				for range 3 { // a dial that awaits its turn sleeps, which the stage's clock does not end
					time.Sleep(time.Second)
					s.clock.advance(10 * time.Second)
				}
				for i, op := range ops {
					for lane := range op.among {
						if len(op.answers[lane]) != 1 {
							t.Fatalf("operation %d: %d answers of lane %d among %d", i, len(op.answers[lane]), lane, op.among)
						}
					}
					if len(op.answers) != op.among {
						t.Fatalf("operation %d: answers of %d lanes among %d", i, len(op.answers), op.among)
					}
				}
			})
		})
	}
}

func TestFollow_ABadListChangesNothing(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		for _, list := range [][]Master{nil, {named("a"), named("b")}, {named("a"), named("b"), named("b")}} {
			if err := s.pool.Follow(list, &admission.Configuration{}, admission.Known{}); err == nil {
				t.Errorf("%v was taken", list)
			}
		}
		if s.voting() != "a b c" {
			t.Error(s.voting())
		}
	})
}

func TestFollow_ADrainEndsWithItsMaster(t *testing.T) {
	onStage(t, 5, Options{}, func(s *stage) {
		for _, name := range []string{"a", "b"} {
			if err := s.pool.Drain(name); err != nil {
				t.Fatal(err)
			}
		}
		s.follow("a", "x", "c", "d", "e")
		if a, x := s.state(0), s.state(1); a != "draining" || x != votingState {
			t.Errorf("a is %s, x is %s", a, x)
		}
	})
}
