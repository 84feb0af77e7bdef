package lease

import (
	"errors"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// answered gives a permit's ballot these answers, one a master, and returns what follows.
func answered(d *pureDaemon, f *permitMode, tries int, v quorum.Result, answers ...[]int64) (*permitMode, error) {
	a := &lockBallot{
		call: &acquireCall{leases: d.Leases, request: LockRequest{Key: "k"}, tries: tries},
		mode: f, ballot: engine.Ballot{Engine: d.engine, Tally: quorum.Tally{N: 5, Quorum: 3}},
	}
	for lane, numbers := range answers {
		r := pool.Reply{Kind: pool.ReplyArray}
		for _, n := range numbers {
			r.Items = append(r.Items, pool.Reply{Kind: pool.ReplyInt, Int: n})
		}
		if len(numbers) == 1 && numbers[0] != 0 {
			r = r.Items[0]
		}
		said := f.read(a, pool.Answer{Lane: lane, Sent: true, Reply: r, Seal: pool.Seal{Good: true}})
		if said.wrongType {
			a.ballot.WrongType++
		}
	}
	next, err := f.after(a, v)
	after, _ := next.(*permitMode)
	return after, err
}

func TestPermits_TheMastersAnswersChooseTheNextSlot(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	taken := func(free ...int64) []int64 { return append([]int64{0}, free...) }
	yes := []int64{1}
	for what, of := range map[string]struct {
		answers [][]int64
		tries   int
		v       quorum.Result
		slot    int // 0 = ErrHeld
	}{
		"the slot that most have free":                  {[][]int64{taken(3, 4), taken(4, 5), taken(4), yes, yes}, 1, quorum.Refused, 4},
		"one that too few can have free":                {[][]int64{taken(3), taken(4), taken(5), taken(), taken()}, 1, quorum.Refused, 0},
		"those that gave the slot did not answer":       {[][]int64{taken(3), taken(), taken(), yes, yes}, 1, quorum.Refused, 3},
		"none is free":                                  {[][]int64{taken(), taken(), taken(), yes, yes}, 1, quorum.Refused, 0},
		"the token's own":                               {[][]int64{{2, 7}, {2, 7}, {2, 7}, taken(4, 7), taken(4, 7)}, 1, quorum.Refused, 7},
		"the third round was the last":                  {[][]int64{taken(4), taken(4), taken(4), yes, yes}, 3, quorum.Refused, 0},
		"a few masters with another number":             {[][]int64{{3, 9}, {3, 9}, taken(4), taken(4), taken(4)}, 1, quorum.Refused, 4},
		"slots that do not exist":                       {[][]int64{taken(0, 99, -4), taken(99), taken(99), yes, yes}, 1, quorum.Refused, 0},
		"a split goes on after the third round":         {[][]int64{taken(4), taken(4), yes, yes, {}}, 9, quorum.Split, 4},
		"another key's mode on all masters":             {[][]int64{taken(), taken(), taken(), taken(), taken()}, 1, quorum.Refused, 0},
		"answers that no master of ours gives are no's": {[][]int64{{2, 0}, {2, 0}, {2, 0}, taken(4), taken(4)}, 1, quorum.Refused, 4},
	} {
		next, err := answered(d, &permitMode{limit: 8, slot: 2, named: true}, of.tries, of.v, of.answers...)
		switch {
		case of.slot == 0 && !errors.Is(err, engine.ErrHeld):
			t.Errorf("%s: %+v, %v, want ErrHeld", what, next, err)
		case of.slot > 0 && (err != nil || next.slot != of.slot || next.limit != 8 || !next.named):
			t.Errorf("%s: %+v, %v, want slot %d", what, next, err, of.slot)
		}
	}
	other := []int64{3, 9}
	var limit *OtherLimit
	if _, err := answered(d, &permitMode{limit: 8, slot: 2}, 1, quorum.Refused, other, other, other); !errors.As(err, &limit) || limit.Limit != 9 {
		t.Errorf("another number on most masters: %v", err)
	}
	odd := []int64{-1}
	if _, err := answered(d, &permitMode{limit: 8, slot: 2}, 1, quorum.Refused, odd, odd, odd); !errors.Is(err, engine.ErrWrongType) {
		t.Errorf("no lock on most masters: %v", err)
	}
}

func TestPermits_TheFirstSlotsOfAKeyAreInTurn(t *testing.T) {
	one, other := slotTurns{seed: 1}, slotTurns{seed: 7}
	r, between := LockRequest{Key: "k"}, LockRequest{Key: "other"}
	for seen, n := map[int]bool{}, 0; n < 10; n++ {
		slot := one.first(&r, 10)
		if slot < 1 || slot > 10 || seen[slot] {
			t.Errorf("slot %d after %v", slot, seen)
		}
		seen[slot] = true
		one.first(&between, 10)
	}
	r.Token = "chosen by the caller"
	if a, b := one.first(&r, 10), other.first(&r, 10); a != b || a != one.first(&r, 10) || a < 1 || a > 10 {
		t.Errorf("a repeat through another daemon begins with slot %d after %d", b, a)
	}
}

func TestUsedFences_AFenceIsGivenOnceForAsLongAsItCanBeOnItsWay(t *testing.T) {
	var c usedFences
	keep := time.Second
	if !c.reserve(7, 0, keep) || c.reserve(7, 1, keep) || !c.reserve(8, 2, keep) {
		t.Error("not the first one only")
	}
	for at := time.Duration(0); at < 2*keep; at += keep / 10 {
		c.reserve(int64(100+at), at, keep)
		if at <= keep && c.reserve(7, at, keep) {
			t.Errorf("forgotten after %v", at)
		}
	}
	c.reserve(1, 10*keep, keep)
	c.reserve(2, 20*keep, keep)
	if n := len(c.current) + len(c.previous); n > 2 {
		t.Errorf("%d fences are remembered for ever", n)
	}
}

// A fence that cannot fit a quorum any more is given up at once, for another one: the
// masters that have not answered yet may take their time.
func TestSharedFence_DoesNotWaitForMastersThatCannotChangeIt(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	done := make(chan error, 2) // 2: so that a second answer would be seen
	l := d.Leases
	l.engine.EnterAlways()
	f := &sharedMode{sharedFences: sharedFences{open: true}, downgrade: &downgrade{}}
	a := &lockBallot{
		call: &acquireCall{
			leases: l, group: l.engine.Pool.Group(0), request: LockRequest{Key: "k", Mode: Readers, TTL: time.Minute},
			done: func(_ Grant, err error) { done <- err },
		},
		mode: f, fences: f, token: engine.NewToken(), start: l.engine.Clock.Now(),
		fencing: quorum.Fencing{Rounds: 1},
	}
	a.ballot.Prepare(l.engine, a.call.group, a)
	a.ballot.Tally.Yes = 5
	for lane := range 5 {
		a.fencing.Voted(quorum.Interval{Lane: lane, Incarnation: "of another time", Low: 1, Top: 2})
	}
	c := &sharedFence{ballot: a, of: &f.sharedFences, fence: 10}
	for lane := range 3 { // somebody else has been there, and was ahead
		c.onAnswer(pool.Answer{Lane: lane, Seal: pool.Seal{Good: true, IncarnationID: "of another time", Old: 11, Top: 12}})
	}
	// These voters' memory is not the masters', so that no later fence fits either.
	if err := <-done; err == nil {
		t.Error("a fence was found")
	}
	if a.fencing.Rounds != maxSharedFenceSeals {
		t.Errorf("%d seals, want %d", a.fencing.Rounds, maxSharedFenceSeals)
	}
	for lane := 3; lane < 5; lane++ {
		c.onAnswer(pool.Answer{Lane: lane})
	}
	if len(done) > 0 {
		t.Error("answered twice")
	}
}
