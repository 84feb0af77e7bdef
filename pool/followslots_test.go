// Tests of slots that change while the pool runs.

package pool

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/pool/admission"
)

// renameSlots puts the next configuration, with other slots, on all masters, and waits until everything
// has come to rest.
func (s *stage) renameSlots(change func(next *admission.Configuration)) *admission.Configuration {
	o := s.pool.Options()
	s.group.mu.Lock()
	next := o.Configuration(admission.EpochOf(s.group.epoch.Mark) + 1)
	s.group.mu.Unlock()
	change(next)
	o.Slots = next.Slots
	texts := admission.StoredConfiguration{Now: next, InForce: true}.Texts()
	for _, m := range s.masters {
		m.mu.Lock()
		_, name, _ := strings.Cut(m.print, "/master=")
		m.strict = true
		m.print, m.texts = o.Fingerprint(0, next.Mark(), name), texts
		m.identity = strings.Join(append(strings.SplitN(m.identity, " ", 5)[:4], m.print), " ")
		m.mu.Unlock()
	}
	for range 20 {
		s.clock.advance(100 * time.Millisecond)
		synctest.Wait()
	}
	return next
}

// admitted is how many masters received the mark in a request for admission.
func (s *stage) admitted(mark string) (n int) {
	for _, m := range s.masters {
		m.mu.Lock()
		if slices.ContainsFunc(m.executed, func(args []string) bool {
			return args[0] == "EVAL" && strings.Contains(strings.Join(args, " "), "/epoch="+mark+"/")
		}) {
			n++
		}
		m.mu.Unlock()
	}
	return n
}

func TestFollow_SlotsChangeOnceTheRouterHasThem(t *testing.T) {
	var s *stage
	var mu sync.Mutex
	var received []string
	early := false
	o := Options{Group: "g1", Slots: "0-99", OnConfiguration: func(c *Configuration) {
		mu.Lock()
		defer mu.Unlock()
		received = append(received, c.MapText())
		if c.MapVersion > 0 && len(received) == 2 {
			s.group.mu.Lock()
			early = s.group.epoch.Mark == c.Mark()
			s.group.mu.Unlock()
		}
	}}
	onStage(t, 3, o, func(stage *stage) {
		s = stage
		s.vote(0)
		next := s.renameSlots(func(c *admission.Configuration) {
			c.Slots, c.MapVersion, c.Leaving, c.To, c.LeftAt = "0-49", 7, "50-99", "g2", 7
		})
		if got := s.voting(); got != "a b c" {
			t.Errorf("voting: %q", got)
		}
		if s.admitted(next.Mark()) != 3 || early {
			t.Errorf("%d masters were admitted under the change; it was used before the router had it: %v", s.admitted(next.Mark()), early)
		}
		if now := s.pool.Options(); now.Slots != "0-49" || now.MapVersion != 7 || now.Leaving != "50-99" || now.To != "g2" {
			t.Errorf("%+v", now)
		}
		if a := s.vote(1); !a.Seal.Good {
			t.Errorf("%+v", a)
		}
		// A change that leaves the map as it is keeps it.
		s.renameSlots(func(*admission.Configuration) {})
		if now := s.pool.Options(); now.MapVersion != 7 || now.Leaving != "50-99" {
			t.Errorf("%+v", now)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(received) < 2 || received[0] != "0-99" || received[1] != "0-49; 50-99 leave for group g2" {
			t.Errorf("the router received %q", received)
		}
	})
}

func TestFollow_OtherSlotsAreRefused(t *testing.T) {
	ignore := func(*Configuration) {}
	for name, c := range map[string]struct {
		router  func(*Configuration)
		version int64
		text    string
	}{
		"a daemon of an only group": {nil, 7, "slots is 0-99 here and 0-49 there, left behind: this daemon has epoch 1, and the master has 2; left behind: the masters have epoch 2: --masters a=a:6379,b=b:6379,c=c:6379; slots have moved to another group: start this daemon again with the [[group]] tables of all groups in its file"},
		"a map that is no later":    {ignore, 0, "slots is 0-99 here and 0-49 there, left behind: this daemon has epoch 1, and the master has 2; left behind: the masters have epoch 2"},
	} {
		onStage(t, 3, Options{Group: "g1", Slots: "0-99", OnConfiguration: c.router}, func(s *stage) {
			s.vote(0)
			s.renameSlots(func(next *admission.Configuration) { next.Slots, next.MapVersion = "0-49", c.version })
			if got := s.pool.Options().Slots; got != "0-99" || s.voting() != "" {
				t.Errorf("%s: slots %s, %q votes", name, got, s.voting())
			}
			if detail := s.group.Statuses()[0].Detail; !strings.Contains(detail, c.text) {
				t.Errorf("%s: %s", name, detail)
			}
		})
	}
}

// It went away and came back: the masters carry its own slots again, with a later version.
func TestFollow_ALaterVersionOfTheSameSlotsIsReported(t *testing.T) {
	var last Configuration
	var mu sync.Mutex
	onStage(t, 3, Options{Group: "g1", Slots: "0-99", OnConfiguration: func(c *Configuration) {
		mu.Lock()
		defer mu.Unlock()
		last = *c
	}}, func(s *stage) {
		s.vote(0)
		s.renameSlots(func(next *admission.Configuration) { next.MapVersion = 12 })
		mu.Lock()
		defer mu.Unlock()
		if last.MapVersion != 12 || s.pool.Options().MapVersion != 12 {
			t.Errorf("the router has version %d, the pool %d", last.MapVersion, s.pool.Options().MapVersion)
		}
	})
}
