package groups

import (
	"errors"
	"slices"
	"testing"
	"time"

	"redlockd/redlock"
)

// ending is what a client is notified of when its renewal ends.
type ending struct {
	keys   []redlock.Key
	reason error
	goesOn time.Duration
}

// hold takes two keys of two groups and renews them.
func (s *stand) hold() (g redlock.Grant, hold redlock.Hold, endings chan ending) {
	s.t.Helper()
	endings = make(chan ending, 9)
	terms := redlock.HoldTerms{
		OnBegin: func(h redlock.Hold) { hold = h },
		OnEnd:   func(g redlock.Grant, reason error, goesOn time.Duration) { endings <- ending{g.Keys(), reason, goesOn} },
	}
	answers := make(chan answer, 1)
	keys := s.both()
	s.Wait(nil, redlock.LockRequest{Key: keys[0], More: keys[1:], TTL: time.Minute, Wait: time.Minute, Hold: &terms}, func(g redlock.Grant, err error) { answers <- answer{g, err} })
	a := receive(s.t, answers)
	if a.err != nil || hold == nil || s.Holds() != 2 {
		s.t.Fatalf("%+v, %v, %d renewals", a.grant, a.err, s.Holds())
	}
	return a.grant, hold, endings
}

// both is a key of each group, that of the second group first.
func (s *stand) both() []redlock.Key { return []redlock.Key{s.key(1, 0), s.key(0, 0)} }

// ends checks that the client is notified once, of all keys, and that nothing is renewed any more. The keys
// go on unless they are given back at once.
func (s *stand) ends(what string, endings chan ending, reason error, goesOn bool) {
	s.t.Helper()
	e := receive(s.t, endings)
	if (e.goesOn > time.Minute/2) != goesOn {
		s.t.Errorf("%s: the keys stay taken for %v", what, e.goesOn)
	}
	if !errors.Is(e.reason, reason) || !slices.Equal(e.keys, s.both()) || s.Holds() != 0 || len(endings) > 0 {
		s.t.Errorf("%s: %q ended with %v, want %v; %d renewals, %d more endings", what, e.keys, e.reason, reason, s.Holds(), len(endings))
	}
}

func TestSeveral_HoldEndsForAllKeysAtOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	_, hold, endings := s.hold()
	if _, err := s.lock(s.key(0, 0)); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("a key of it: %v", err)
	}
	hold.End()
	s.ends("the connection ends", endings, nil, false)
	s.eventuallyFree(s.both()...)

	g, _, endings := s.hold()
	s.release(g)
	s.ends("a release", endings, nil, true) // until it is acknowledged

	g, hold, endings = s.hold()
	hold.Abandon(redlock.ErrLeft)
	s.ends("the daemon stops", endings, redlock.ErrLeft, true)
	s.release(g) // it runs out by itself

	_, hold, endings = s.hold()
	forced := make(chan bool, 1)
	s.Force(redlock.ForceRequest{Key: s.key(1, 0)}, func(done bool, err error) { forced <- done && err == nil })
	if !receive(t, forced) {
		t.Error("it was not forced")
	}
	if e := receive(t, endings); e.reason == nil || e.goesOn < time.Minute/2 || !slices.Equal(e.keys, s.both()) || s.Holds() != 0 || len(endings) > 0 {
		t.Errorf("a key is forced: %+v, %d renewals", e, s.Holds())
	}
	s.eventuallyFree(s.key(1, 0))
	if _, err := s.lock(s.key(0, 0)); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("the key of the other group has not run out, and a lock answers %v", err)
	}
	hold.End() // it has ended
	if len(endings) > 0 {
		t.Error("it ends twice")
	}
}

// An attempt that fails renews nothing.
func TestSeveral_HoldOfAFailedAttemptIsNone(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	held := s.take(s.key(1, 0))
	answers := make(chan error, 1)
	terms := &redlock.HoldTerms{OnEnd: func(g redlock.Grant, reason error, _ time.Duration) { t.Errorf("%q ended with %v", g.Keys(), reason) }}
	s.Lock(nil, redlock.LockRequest{Key: s.both()[0], More: s.both()[1:], TTL: time.Minute, Hold: terms}, func(_ redlock.Grant, err error) { answers <- err })
	if err := receive(t, answers); !errors.Is(err, redlock.ErrHeld) || s.Holds() != 0 {
		t.Errorf("%v, %d renewals", err, s.Holds())
	}
	s.eventuallyFree(s.key(0, 0))
	s.release(held)
}
