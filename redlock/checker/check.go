package checker

// Check, which applies every rule, and the form of what the rules report.

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Check applies every rule to a history and joins what they report. nil means: no
// contradiction found and nothing left undecided. A history that cannot be
// checked gives an error that wraps ErrMalformed. Contradictions are *Violation;
// windows that could not be searched in time are *Undecided.
func Check(h History) error {
	keys, err := newIndex(h)
	if err != nil {
		return err
	}
	return errors.Join(applyRules(keys, exclusiveRules), checkLinear(keys, searchBounds{}))
}

// The names of the rules, as Violation.Rule carries them.
const (
	ruleExclusion  = "exclusion"
	ruleFence      = "fence"
	ruleRelease    = "release truth"
	ruleContinuity = "continuity"
	ruleLinear     = "linearizability"
	ruleIDs        = "ids"
)

// Violation is one contradiction in a history.
type Violation struct {
	Rule   string       // which rule was broken
	Key    string       // the lock's key, or the counter's name
	Why    string       // what contradicts what
	Events []CallRecord // the calls that cannot both have been answered so
}

func (v *Violation) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "checker: %s on %q: %s", v.Rule, v.Key, v.Why)
	for i := range v.Events {
		fmt.Fprintf(&text, "\n\t%v", &v.Events[i])
	}
	return text.String()
}

// Undecided is a stretch of a history that was not searched to the end. It is
// neither a pass nor a violation.
type Undecided struct {
	Key        string
	From, To   time.Duration // on the clock of the history
	Operations int           // in the model's terms
	Why        string        // what to change to get a verdict
}

func (u *Undecided) Error() string {
	return fmt.Sprintf("checker: undecided on %q: %d operations of %s: %s",
		u.Key, u.Operations, span(u.From, u.To), u.Why)
}

// maxFindings bounds what one rule reports: a broken lock breaks every lease,
// and the first few are enough to see why.
const maxFindings = 10

// findings collects the violations of one rule.
type findings struct {
	rule    string
	key     string
	errs    []error
	dropped int
}

func (f *findings) add(why string, events ...*CallRecord) {
	if len(f.errs) >= maxFindings {
		f.dropped++
		return
	}
	v := &Violation{Rule: f.rule, Key: f.key, Why: why}
	for _, e := range events {
		v.Events = append(v.Events, *e)
	}
	f.errs = append(f.errs, v)
}

func (f *findings) err() error {
	if f.dropped > 0 {
		return errors.Join(append(f.errs, fmt.Errorf("checker: %s: %d more violations", f.rule, f.dropped))...)
	}
	return errors.Join(f.errs...)
}

// rule is one check of a key, with its name.
type rule struct {
	name  string
	check func(*keyRecord, *findings)
}

// exclusiveRules are those of keys that one token holds at a time.
var exclusiveRules = []rule{
	{ruleExclusion, (*keyRecord).exclusion},
	{ruleFence, (*keyRecord).fences},
	{ruleRelease, (*keyRecord).releaseTruth},
	{ruleContinuity, (*keyRecord).continuity},
}

// applyRules applies rules to every key and joins what they report.
func applyRules(keys []*keyRecord, rules []rule) error {
	var errs []error
	for _, r := range rules {
		f := &findings{rule: r.name}
		for _, k := range keys {
			f.key = k.key
			r.check(k, f)
		}
		errs = append(errs, f.err())
	}
	return errors.Join(errs...)
}

// checkRules applies some rules alone to a history.
func checkRules(h History, rules ...rule) error {
	keys, err := newIndex(h)
	if err != nil {
		return err
	}
	return applyRules(keys, rules)
}
