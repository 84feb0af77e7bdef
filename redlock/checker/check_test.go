package checker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The hand-made histories count in milliseconds and use the key "k" unless on
// says otherwise. A token is one letter; its client is the letter's number.

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func call(op OpKind, token string, invoke, complete int) CallRecord {
	return CallRecord{Client: int(token[0] - 'a'), Op: op, Key: "k", Token: token, Invoke: ms(invoke), Complete: ms(complete), Outcome: OK}
}

// acq is a grant without a fence.
func acq(token string, invoke, complete, validity int) CallRecord {
	e := call(Acquire, token, invoke, complete)
	e.Validity = ms(validity)
	return e
}

func fenced(fence int64, token string, invoke, complete, validity int) CallRecord {
	e := acq(token, invoke, complete, validity)
	e.Fence = fence
	return e
}

func ext(token string, invoke, complete, validity int) CallRecord {
	e := call(Extend, token, invoke, complete)
	e.Validity = ms(validity)
	return e
}

func rel1(token string, invoke, complete int) CallRecord {
	e := call(Release, token, invoke, complete)
	e.Released = true
	return e
}

func rel0(token string, invoke, complete int) CallRecord {
	return call(Release, token, invoke, complete)
}

func no(e CallRecord) CallRecord {
	e.Outcome, e.Validity, e.Fence, e.Released = No, 0, 0, false
	return e
}

func unknown(e CallRecord) CallRecord {
	e = no(e)
	e.Outcome = Unknown
	return e
}

func never(e CallRecord) CallRecord {
	e = unknown(e)
	e.Complete = Never
	return e
}

func on(key string, e CallRecord) CallRecord {
	e.Key = key
	return e
}

func by(client int, e CallRecord) CallRecord {
	e.Client = client
	return e
}

// rulesBroken lists which rules a verdict names, sorted, each once.
func rulesBroken(err error) []string {
	var rules []string
	var walk func(error)
	walk = func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				walk(e)
			}
			return
		}
		var v *Violation
		if errors.As(err, &v) {
			rules = append(rules, v.Rule)
		}
	}
	walk(err)
	slices.Sort(rules)
	return slices.Compact(rules)
}

func TestCheck_TellsWhichCallsContradictEachOther(t *testing.T) {
	err := CheckExclusion(History{acq("a", 0, 1, 10), ext("a", 5, 6, 100), acq("b", 50, 51, 10)})
	var v *Violation
	if !errors.As(err, &v) {
		t.Fatalf("verdict %v, want a *Violation", err)
	}
	if v.Key != "k" || len(v.Events) != 3 {
		t.Errorf("key %q and %d events, want \"k\" and both calls of the one lease and the call of the other", v.Key, len(v.Events))
	}
	for _, part := range []string{`"a" and "b" both hold it for 10ms, over [51ms, 61ms]`, "client 0 acquire", "client 0 extend", "client 1 acquire"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q:\n%v", part, err)
		}
	}
}

func TestCheck_ReportsTheFirstViolationsOfARuleAndCountsTheRest(t *testing.T) {
	var h History
	for i := range 30 {
		h = append(h, fenced(int64(100-i), fmt.Sprintf("a%d", i), 20*i, 20*i+1, 10))
	}
	err := checkRules(h, exclusiveRules[1])
	if n := strings.Count(err.Error(), "was answered before"); n != maxFindings {
		t.Errorf("%d violations reported, want %d", n, maxFindings)
	}
	if want := fmt.Sprintf("%d more violations", 29-maxFindings); !strings.Contains(err.Error(), want) {
		t.Errorf("the error lacks %q:\n%v", want, err)
	}
}

func TestCheck_RejectsAnEventThatContradictsItself(t *testing.T) {
	good := acq("a", 0, 1, 100)
	for name, spoil := range map[string]func(*CallRecord){
		"unknown op":               func(e *CallRecord) { e.Op = "lock" },
		"no outcome":               func(e *CallRecord) { e.Outcome = "" },
		"no key":                   func(e *CallRecord) { e.Key = "" },
		"grant without token":      func(e *CallRecord) { e.Token = "" },
		"release without token":    func(e *CallRecord) { *e = rel0("a", 0, 1); e.Token = "" },
		"negative time":            func(e *CallRecord) { e.Invoke = -1 },
		"answered before invoked":  func(e *CallRecord) { e.Invoke = 2 * time.Millisecond },
		"answered, never complete": func(e *CallRecord) { e.Complete = Never },
		"negative fence":           func(e *CallRecord) { e.Fence = -1 },
		"fence of a refusal":       func(e *CallRecord) { e.Outcome, e.Fence = No, 1 },
		"fence of an extend":       func(e *CallRecord) { e.Op, e.Fence = Extend, 1 },
		"released by an acquire":   func(e *CallRecord) { e.Released = true },
		"released, outcome no":     func(e *CallRecord) { *e = no(rel1("a", 0, 1)); e.Released = true },
	} {
		e := good
		spoil(&e)
		if err := Check(History{good, e}); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "event 1") {
			t.Errorf("%s: verdict %v, want ErrMalformed that names event 1", name, err)
		}
	}
}

func TestCheck_JoinsWhatTheSingleRulesSay(t *testing.T) {
	rules := map[string]func(History) error{ruleLinear: func(h History) error { return linear(h, searchBounds{}) }}
	for _, r := range exclusiveRules {
		rules[r.name] = func(h History) error { return checkRules(h, r) }
	}
	for _, bad := range badHistories() {
		broken := rulesBroken(Check(bad.history))
		for name, check := range rules {
			if got := check(bad.history) != nil; got != slices.Contains(broken, name) {
				t.Errorf("%s: rule %q alone rejects it: %v, Check names %q", bad.name, name, got, broken)
			}
		}
	}
	malformed := History{{}}
	for name, check := range rules {
		if err := check(malformed); !errors.Is(err, ErrMalformed) {
			t.Errorf("rule %q on a malformed history: %v", name, err)
		}
	}
}
