package checker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// plainOperations builds the operations as the model describes them, nothing
// left out, every open return open: what windows() must be equivalent to.
func plainOperations(k *keyRecord) []porcupine.Operation {
	var operations []porcupine.Operation
	add := func(in input, call, until time.Duration) {
		operations = append(operations, porcupine.Operation{Input: &in, Call: int64(call), Return: int64(until)})
	}
	for _, t := range k.tokens {
		for _, e := range slices.Concat(t.acquires, t.extends) {
			in := input{step: take, token: t.token, until: e.deadline(), event: e}
			switch {
			case e.Outcome == Unknown:
				in.step, in.until = perhaps, 0
				add(in, e.Invoke, Never)
				continue
			case e.Op == Extend:
				in.step = prolong
			}
			add(in, e.Invoke, e.Complete)
			in.step = lapse
			add(in, max(e.Invoke, e.deadline()), Never)
		}
		for _, e := range t.releases {
			add(input{step: give, token: t.token, event: e}, e.Invoke, e.effectBy())
		}
	}
	return operations
}

// chaos is a short history of anything.
func chaos(random *rand.Rand) History {
	h := make(History, 2+random.IntN(6))
	for i := range h {
		invoke := random.IntN(20)
		e := call([]OpKind{Acquire, Acquire, Extend, Release}[random.IntN(4)], string(rune('a'+random.IntN(3))), invoke, invoke+random.IntN(6))
		switch dice := random.IntN(10); {
		case dice == 0:
			e = no(e)
		case dice == 1:
			e = unknown(e)
		case e.Op == Release:
			e.Released = random.IntN(3) > 0
		default:
			e.Validity = ms(random.IntN(12) - 3)
		}
		h[i] = e
	}
	return h
}

func accepted(windows []*window) bool {
	for _, w := range windows {
		if !porcupine.CheckOperations(lockModel(w.start), w.operations) {
			return false
		}
	}
	return true
}

func TestLinear_AgreesWithTheUnreducedModelOnSmallHistories(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	histories, legal, cut := 30_000, 0, 0
	if testing.Short() {
		histories = 10_000
	}
	for range histories {
		h := chaos(random)
		keys, err := newIndex(h)
		if err != nil {
			t.Fatal(err)
		}
		k := keys[0]
		want := porcupine.CheckOperations(lockModel(lockState{}), plainOperations(k))
		whole, parts := k.windows(10_000), k.windows(1)
		if got := accepted(whole); got != want {
			t.Fatalf("accepted: %v, the unreduced model gives %v:\n%v", got, want, listing(h))
		}
		if got := accepted(parts); got != want {
			t.Fatalf("accepted: %v in %d windows, the unreduced model gives %v:\n%v", got, len(parts), want, listing(h))
		}
		intervals := errors.Join(CheckExclusion(h), checkRules(h, exclusiveRules[3]))
		if want && intervals != nil {
			t.Fatalf("an order exists, yet the intervals contradict each other:\n%v\n%v", listing(h), intervals)
		}
		if want {
			legal++
		}
		if len(parts) > 1 {
			cut++
		}
	}
	if tenth := histories / 10; legal < tenth || legal > 9*tenth || cut < tenth {
		t.Errorf("%d legal and %d cut histories of %d: too one-sided to tell anything", legal, cut, histories)
	}
}

func listing(h History) string {
	var lines []string
	for i := range h {
		lines = append(lines, h[i].String())
	}
	return strings.Join(lines, "\n")
}

// pileUp is a history of n grants whose requests all overlap, each lease inside
// the requests of all others: legal in one order, and hard to search for.
func pileUp(n int, last CallRecord) History {
	var h History
	for i := range n {
		token := fmt.Sprintf("a%d", i)
		h = append(h, acq(token, 0, 1000+i, -990))
	}
	return append(h, last)
}

func TestLinear_ReportsAWindowItCouldNotSearchInTimeAsUndecided(t *testing.T) {
	h := pileUp(40, ext("z", 2000, 2001, 10))
	h = append(h, unknown(acq("z", 0, 1, 0)), acq("y", 1500, 1900, 1000))
	err := linear(h, searchBounds{timeout: time.Millisecond})
	var u *Undecided
	if !errors.As(err, &u) {
		t.Fatalf("verdict %v, want *Undecided", err)
	}
	if !strings.Contains(err.Error(), "longer than 1ms") || u.Key != "k" || u.Operations < 40 {
		t.Errorf("verdict %v (key %q, %d operations), want one that names the time-out, the key and the size", err, u.Key, u.Operations)
	}
}

func TestLinear_ReportsAStretchWithoutAQuietInstantAsUndecided(t *testing.T) {
	var h History
	for i := range 30 { // each request overlaps the next
		h = append(h, acq(fmt.Sprintf("a%d", i), 10*i, 10*i+15, 2))
	}
	if err := linear(h, searchBounds{}); err != nil {
		t.Fatalf("as one window: %v", err)
	}
	err := linear(h, searchBounds{window: 20})
	var u *Undecided
	if !errors.As(err, &u) || !strings.Contains(err.Error(), "no instant without a pending call within 20 operations") {
		t.Fatalf("verdict %v, want *Undecided that names the limit", err)
	}
}

func TestLinear_FindsAViolationInALaterWindow(t *testing.T) {
	var h History
	for i := range 50 {
		h = append(h, acq(fmt.Sprintf("a%d", i), 100*i, 100*i+1, 50))
	}
	keys, err := newIndex(h)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(keys[0].windows(20)); n < 10 {
		t.Fatalf("%d windows, want at least 10", n)
	}
	if err := linear(h, searchBounds{window: 20}); err != nil {
		t.Fatal(err)
	}
	h = append(h, acq("b", 4210, 4211, 1))
	err = linear(h, searchBounds{window: 20})
	var v *Violation
	if !errors.As(err, &v) || v.Events[0].Invoke < ms(4200) || v.Events[0].Invoke > ms(4211) {
		t.Fatalf("verdict %v, want a violation near 4.21s", err)
	}
}

func TestLinear_CutsBehindLongLeasesWhoseReleaseWasNotAnswered(t *testing.T) {
	var h History
	for i := range 50 {
		token := fmt.Sprintf("a%d", i)
		h = append(h, acq(token, 100*i, 100*i+1, 1e6), unknown(rel1(token, 100*i+10, 100*i+11)))
	}
	if err := linear(h, searchBounds{window: 20}); err != nil {
		t.Error(err)
	}
}

func TestLinear_CutsBehindLongLeasesThatOneTokenReleased(t *testing.T) {
	var h History
	for i := range 50 {
		h = append(h, acq("a", 100*i, 100*i+1, 1e6), rel1("a", 100*i+10, 100*i+11))
	}
	if err := linear(h, searchBounds{window: 20}); err != nil {
		t.Error(err)
	}
}

func TestLinear_KeepsALeaseAcrossACut(t *testing.T) {
	h := History{acq("a", 0, 1, 1000)}
	for i := range 20 {
		h = append(h, rel0("b", 10*i+10, 10*i+11)) // calls without effect, to cut between
	}
	h = append(h, acq("b", 500, 501, 10))
	keys, err := newIndex(h)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(keys[0].windows(5)); n < 10 {
		t.Fatalf("%d windows, want at least 10", n)
	}
	if err := linear(h, searchBounds{window: 5}); err == nil {
		t.Error("a grant within a lease that began many windows earlier was accepted")
	}
}

// linear searches an order for each key of the history.
func linear(h History, s searchBounds) error {
	keys, err := newIndex(h)
	if err != nil {
		return err
	}
	return checkLinear(keys, s)
}
