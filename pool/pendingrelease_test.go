package pool

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// retryReleases leaves releases D0, D1 … pending for the master in lane 0.
func (s *stage) retryReleases(from, to int, until time.Duration) {
	for i := from; i < to; i++ {
		s.group.RetryRelease(0, PendingRelease{Args: []string{"D" + strconv.Itoa(i)}, Until: s.clock.Now() + until})
	}
	synctest.Wait()
}

// heard are the releases and acquires that the master in lane 0 executed.
func (s *stage) heard() []string {
	var out []string
	for _, words := range s.masters[0].executed {
		if words[0][0] == 'D' || words[0] == "SET" {
			out = append(out, words[0])
		}
	}
	return out
}

// cutOff cuts lane 0 until restore.
func (s *stage) cutOff() {
	s.change(0, func(m *fakeMaster) { m.cut, m.executed = true, nil })
	s.vote(0)
}

func (s *stage) restore() {
	s.change(0, func(m *fakeMaster) { m.cut = false })
	s.clock.advance(2 * time.Second)
}

func TestPendingRelease_IsSentAtOnceWhenTheMasterIsThere(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.retryReleases(0, 2, time.Minute)
		if got := s.heard(); !slices.Equal(got, []string{"D0", "D1"}) {
			t.Errorf("heard %q", got)
		}
		if got := s.group.Statuses()[0].PendingReleases; got != 0 {
			t.Errorf("%d still pending", got)
		}
	})
}

func TestPendingRelease_SurvivesConnectionsAndComesFirst(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.cutOff()
		s.retryReleases(0, 3, time.Minute)
		if got := s.group.Statuses()[0].PendingReleases; got != 3 {
			t.Fatalf("%d pending, want 3", got)
		}
		s.clock.advance(10 * time.Second) // several dials fail
		s.restore()
		s.vote(0)
		if got := s.heard(); !slices.Equal(got, []string{"D0", "D1", "D2", "SET"}) {
			t.Errorf("heard %q, want the releases in order before the acquire, each once", got)
		}
	})
}

func TestPendingRelease_ComesBeforeWhatWasQueuedDuringTheFirstDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := make(chan struct{})
		s := newStage(t, 3, Options{}, func(m *fakeMaster, i int) {
			if i == 0 {
				m.waits = waits
			}
		})
		defer s.pool.Close()
		op := acquiring("key")
		s.send(op)
		if !op.unanswered(0) {
			t.Fatalf("%+v before its first connection, want it queued", op.only(t, 0))
		}
		s.retryReleases(0, 2, time.Minute)
		close(waits)
		synctest.Wait()
		if got := s.heard(); !slices.Equal(got, []string{"D0", "D1", "SET"}) || !op.only(t, 0).Seal.Good {
			t.Errorf("heard %q, want the releases before the acquire", got)
		}
	})
}

func TestPendingRelease_WhoseAnswerWasLostIsSentAgain(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) { m.cutAfter = true })
		s.retryReleases(0, 1, time.Minute)
		s.change(0, func(m *fakeMaster) { m.cutAfter = false })
		s.restore()
		if got := s.heard(); !slices.Equal(got, []string{"D0", "D0"}) {
			t.Errorf("heard %q, want it twice", got)
		}
	})
}

func TestPendingRelease_ThatWasOnItsWayWhenTheMasterPausedIsSentAgain(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		waits := make(chan struct{})
		s.change(0, func(m *fakeMaster) { m.waits, m.executed = waits, nil })
		s.retryReleases(0, 1, time.Minute)
		s.clock.advance(s.pool.options.MasterTimeout)
		if got := s.group.Statuses()[0].PendingReleases; got != 1 {
			t.Errorf("%d pending after the master timeout, want 1", got)
		}
		s.retryReleases(1, 2, time.Minute)
		s.change(0, func(m *fakeMaster) { m.waits = nil })
		close(waits)
		synctest.Wait()
		if got := s.heard(); !slices.Equal(got, []string{"D0", "D0", "D1"}) || s.masters[0].dials != 1 {
			t.Errorf("heard %q on %d connections, want the first release again and then the second", got, s.masters[0].dials)
		}
	})
}

func TestPendingRelease_ThatMayBeExecutedOnceIsRepeatedOnlyIfItWasNot(t *testing.T) {
	once := func(s *stage) {
		s.group.RetryRelease(0, PendingRelease{Args: []string{"D0"}, Until: s.clock.Now() + time.Minute, Once: true})
		synctest.Wait()
	}
	for name, test := range map[string]struct {
		fault, repair func(*fakeMaster)
		want          []string
	}{
		"not sent":       {func(m *fakeMaster) { m.cut, m.executed = true, nil }, func(m *fakeMaster) { m.cut = false }, []string{"D0"}},
		"refused":        {falsify("D0", refusal("READONLY You can't write against a read only replica.")), func(m *fakeMaster) { m.tamper = nil }, []string{"D0", "D0"}},
		"without answer": {func(m *fakeMaster) { m.cutAfter = true }, func(m *fakeMaster) { m.cutAfter = false }, []string{"D0"}},
	} {
		onStage(t, 3, Options{}, func(s *stage) {
			s.change(0, test.fault)
			if name == "not sent" {
				s.vote(0) // and notices
			}
			once(s)
			s.change(0, test.repair)
			s.restore()
			if got := s.heard(); !slices.Equal(got, test.want) {
				t.Errorf("%s: heard %q, want %q", name, got, test.want)
			}
			if got := s.group.Statuses()[0].PendingReleases; got != 0 {
				t.Errorf("%s: %d still pending", name, got)
			}
		})
	}
}

func TestPendingRelease_ThatIsRefusedWaitsForTheNextConnection(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, falsify("D0", refusal("READONLY You can't write against a read only replica.")))
		s.retryReleases(0, 1, time.Minute)
		s.change(0, func(m *fakeMaster) { m.tamper = nil })
		s.restore()
		if got := s.heard(); !slices.Equal(got, []string{"D0", "D0"}) {
			t.Errorf("heard %q, want it again after the new admission", got)
		}
	})
}

func TestPendingRelease_ThatAreRefusedAreFewAHeartbeatAndTakeTurns(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.change(0, func(m *fakeMaster) {
			m.tamper = func(args []string, r *Reply) {
				if args[0][0] == 'D' {
					*r = refusal("NOPERM No permissions to access a key")
				}
			}
		})
		s.retryReleases(0, 2*maxRefusedRetries+1, time.Minute)
		for beat, want := range []int{0, maxRefusedRetries, 2 * maxRefusedRetries} {
			s.change(0, func(m *fakeMaster) { m.executed = nil })
			s.clock.advance(heartbeat)
			got := s.heard()
			if len(got) != maxRefusedRetries || got[0] != "D"+strconv.Itoa(want) {
				t.Errorf("heartbeat %d: %d releases from %s on, want %d from D%d on", beat, len(got), got[0], maxRefusedRetries, want)
			}
		}
		s.change(0, func(m *fakeMaster) { m.tamper = nil })
		s.clock.advance(3 * heartbeat)
		if got := s.group.Statuses()[0].PendingReleases; got != 0 {
			t.Errorf("%d still pending", got)
		}
	})
}

func TestOwed_WhatHasExpiredIsForgotten(t *testing.T) {
	onStage(t, 3, Options{}, func(s *stage) {
		s.cutOff()
		s.retryReleases(0, 1, 5*time.Second)
		s.retryReleases(1, 2, time.Minute)
		s.clock.advance(6 * time.Second)
		s.restore()
		if got := s.heard(); !slices.Equal(got, []string{"D1"}) {
			t.Errorf("heard %q, want only what still matters", got)
		}
	})
}

func TestPendingRelease_AreBoundedAndTheNewestAreKept(t *testing.T) {
	onStage(t, 3, Options{MaxPendingReleases: 8}, func(s *stage) {
		s.cutOff()
		for i := range 100 {
			s.retryReleases(i, i+1, time.Minute)
			if got := s.group.Statuses()[0].PendingReleases; got > 8 {
				t.Fatalf("%d pending, 8 allowed", got)
			}
		}
		s.restore()
		got := s.heard()
		if len(got) < 6 || got[len(got)-1] != "D99" {
			t.Errorf("heard %q, want most of the last 8", got)
		}
		if !slices.IsSortedFunc(got, func(a, b string) int {
			x, _ := strconv.Atoi(a[1:])
			y, _ := strconv.Atoi(b[1:])
			return x - y
		}) {
			t.Errorf("heard %q, want them in order", got)
		}
	})
}

func TestOwed_WhatHasExpiredMakesRoomBeforeTheOldest(t *testing.T) {
	onStage(t, 3, Options{MaxPendingReleases: 4}, func(s *stage) {
		s.cutOff()
		s.retryReleases(0, 2, time.Minute)
		s.retryReleases(2, 4, time.Second)
		s.clock.advance(2 * time.Second)
		s.retryReleases(4, 6, time.Minute)
		s.restore()
		if got := s.heard(); !slices.Equal(got, []string{"D0", "D1", "D4", "D5"}) {
			t.Errorf("heard %q, want everything that still matters", got)
		}
	})
}
