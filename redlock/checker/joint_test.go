package checker

// joint_test.go: the results of the search for an order on readers and writers, on
// permits, and on several keys.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func modesLinear(h History) error   { return checkTogetherLinear(h, searchBounds{}) }
func severalLinear(h History) error { return checkJointly(h, searchBounds{}, keyGroups) }

// Both checks of each mode, the sweep and the search, reject enough bad histories to be
// trusted.
func TestTogether_BothChecksRejectEveryBadHistory(t *testing.T) {
	for _, mode := range []struct {
		name   string
		bad    []badHistory
		sweep  func(History) error
		search func(History) error
		least  int
	}{
		{"readers", badReaders(), func(h History) error { return checkSwept(h, (*keyRecord).readersAndWriters) }, modesLinear, 25},
		{"permits", badPermits(), func(h History) error { return checkSwept(h, (*keyRecord).counted) }, modesLinear, 20},
		{"several", badSeveral(), CheckExclusion, severalLinear, 8},
	} {
		shown := map[rune]int{}
		for _, bad := range mode.bad {
			for _, initial := range bad.rules {
				check, want := mode.sweep, ruleOfInitial[initial]
				if initial == 'L' {
					check = mode.search
				}
				shown[initial]++
				if err := check(bad.history); err == nil || !strings.Contains(err.Error(), "checker: "+want) {
					t.Errorf("%s: no %s among: %v", bad.name, want, err)
				}
			}
			for _, check := range []func(History) error{mode.sweep, mode.search} {
				var flaw *Undecided
				if err := check(bad.history); errors.Is(err, ErrMalformed) || errors.As(err, &flaw) {
					t.Errorf("%s: %v", bad.name, err)
				}
			}
		}
		if shown['L'] < mode.least || shown['E'] < mode.least/2 {
			t.Errorf("%s: the search was shown %d bad histories and the sweep %d, want at least %d and half of that", mode.name, shown['L'], shown['E'], mode.least)
		}
	}
}

func TestTogether_TheSearchAcceptsWhatCanHaveHappened(t *testing.T) {
	for _, good := range append(readersHistories(), permitsHistories()...) {
		if err := modesLinear(good.history); good.rules == "" && err != nil {
			t.Errorf("%s: %v", good.name, err)
		}
	}
	for _, good := range goodSeveral() {
		if err := CheckSeveral(good.history); err != nil {
			t.Errorf("%s: %v", good.name, err)
		}
	}
}

// Of exclusive locks the two models must agree on everything.
func TestTogether_AgreesWithTheModelOfExclusiveLocks(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	legal := 0
	for range 8_000 {
		h := later(chaos(random))
		keys, err := newIndex(h)
		if err != nil {
			t.Fatal(err)
		}
		want := porcupine.CheckOperations(lockModel(lockState{}), plainOperations(keys[0]))
		for _, s := range []searchBounds{{}, {window: 10}} {
			if got := checkTogetherLinear(h, s) == nil; got != want {
				t.Fatalf("accepted: %v with %+v, the model of exclusive locks gives %v:\n%v", got, s, want, listing(h))
			}
		}
		if want {
			legal++
		}
	}
	if legal < 800 || legal > 7200 {
		t.Errorf("%d legal histories of 8000: too one-sided to tell anything", legal)
	}
}

// later moves a history away from its origin: no deadline is below 0.
func later(h History) History {
	for i := range h {
		h[i].Invoke += time.Second
		if h[i].Complete != Never {
			h[i].Complete += time.Second
		}
	}
	return h
}

// inModes makes some of the acquires a reader's, or those of one of two permits.
// Readers may become writers; a permit's token has nothing else.
func inModes(random *rand.Rand, h History, as func(*CallRecord)) History {
	for i := range h {
		as(&h[i])
		if h[i].Shared && random.IntN(3) == 0 {
			h[i].Shared = false
		}
		if h[i].Limit > 0 && h[i].Token == "c" || h[i].Op != Acquire {
			h[i].Limit, h[i].Shared = 0, false
		}
	}
	return h
}

// What the search accepts, no sweep may reject: they report only what is certain.
func TestTogether_TheSweepsRejectNothingThatHasAnOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 12))
	for name, mode := range map[string]struct {
		as    func(*CallRecord)
		sweep func(History) error
	}{
		"readers": {func(e *CallRecord) { e.Shared = true }, func(h History) error {
			return checkRules(h, rule{ruleExclusion, (*keyRecord).readersAndWriters}, rule{ruleContinuity, (*keyRecord).ownContinuity})
		}},
		"permits": {func(e *CallRecord) { e.Limit = 2 }, func(h History) error {
			return checkRules(h, rule{ruleExclusion, (*keyRecord).counted}, rule{ruleContinuity, (*keyRecord).ownContinuity})
		}},
	} {
		legal, caught := 0, 0
		for range 8_000 {
			h := inModes(random, later(chaos(random)), mode.as)
			order := modesLinear(h) == nil
			if cut := checkTogetherLinear(h, searchBounds{window: 10}) == nil; cut != order {
				t.Fatalf("%s: accepted: %v, and in several windows: %v\n%s", name, order, cut, listing(h))
			}
			swept := mode.sweep(h)
			if order && swept != nil {
				t.Fatalf("%s: an order exists, yet the sweep reports: %v\n%s", name, swept, listing(h))
			}
			if order {
				legal++
			} else if swept != nil {
				caught++
			}
		}
		if legal < 800 || caught < 400 {
			t.Errorf("%s: %d legal histories of 8000, %d rejected by both: too one-sided to tell anything", name, legal, caught)
		}
	}
}

// A history of a thousand holders is searched to the end, in several stretches.
func TestTogether_SearchesLongHistoriesInStretches(t *testing.T) {
	var h History
	for i := range 600 {
		at := 20 * i
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		h = append(h, per(a, at, at+1, 1000), per(b, at+2, at+3, 10), rel1(a, at+5, at+6), rel1(b, at+7, at+8))
	}
	if err := checkTogetherLinear(h, searchBounds{window: 100}); err != nil {
		t.Fatal(err)
	}
	h = append(h, per("c", 8003, 8004, 10))
	var v *Violation
	if err := checkTogetherLinear(h, searchBounds{window: 100}); !errors.As(err, &v) || v.Events[0].Invoke < ms(8000) || v.Events[0].Invoke > ms(8010) {
		t.Errorf("verdict %v, want a violation near 8.003s", err)
	}
}

func TestTogether_ReportsAStretchWithoutAnEndAsUndecided(t *testing.T) {
	var h History
	for i := range 60 { // each reads on into the time of the next
		h = append(h, shr(fmt.Sprintf("a%d", i), 10*i, 10*i+1, 50))
	}
	if err := modesLinear(h); err != nil {
		t.Fatalf("as one window: %v", err)
	}
	var u *Undecided
	if err := checkTogetherLinear(h, searchBounds{window: 20}); !errors.As(err, &u) || !strings.Contains(err.Error(), "no instant without a holder") {
		t.Errorf("verdict %v, want *Undecided that names the limit", err)
	}
}
