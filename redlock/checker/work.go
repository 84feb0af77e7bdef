package checker

// The rules of work: it is done once, by so many attempts at most, and its end stands.
// Check covers that attempts exclude one another, as it does for leases.

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const ruleWork = "work"

// WorkOp names what a worker requested or reported.
type WorkOp string

// A worker tries to get an attempt, and ends the one it has.
const (
	Try  WorkOp = "try"
	Done WorkOp = "done"
	Fail WorkOp = "fail"
)

// WorkCall is one call of a worker. A try that was not answered need not be
// recorded; a done must be, since it may have taken effect.
type WorkCall struct {
	Client  int
	Key     string
	Op      WorkOp
	Attempt int64  // of a try that was given one; of every done and fail
	Max     int64  // of a try
	State   string // the answer to a try: acquired, running, done or exhausted
	// Accepted is the answer 1 to a done or fail, Unknown that there was none.
	Accepted, Unknown bool
	Invoke, Complete  time.Duration
}

func (c *WorkCall) String() string {
	text := fmt.Sprintf("client %d sends %s on %q at %s: ", c.Client, c.Op, c.Key, span(c.Invoke, c.Complete))
	switch {
	case c.Op == Try && c.Attempt > 0:
		return text + fmt.Sprintf("%s, attempt %d of %d", c.State, c.Attempt, c.Max)
	case c.Op == Try:
		return text + c.State
	case c.Unknown:
		return text + fmt.Sprintf("no answer, attempt %d", c.Attempt)
	}
	return text + fmt.Sprintf("accepted %v, attempt %d", c.Accepted, c.Attempt)
}

// CheckWork reports attempts beyond the limit or given twice, attempts given
// after the work's end was acknowledged, and ends accepted from a superseded
// attempt. keep is how long the masters remember at least what was answered:
// later than that, the same key is new work.
func CheckWork(calls []WorkCall, keep time.Duration) error {
	keys := map[string][]*WorkCall{}
	var order []string
	for i := range calls {
		c := &calls[i]
		if c.Key == "" || c.Invoke < 0 || c.Complete < c.Invoke || !slices.Contains([]WorkOp{Try, Done, Fail}, c.Op) {
			return fmt.Errorf("checker: %w: call %d (%v): want a key, try, done or fail, and 0 <= invoke <= complete", ErrMalformed, i, c)
		}
		if keys[c.Key] == nil {
			order = append(order, c.Key)
		}
		keys[c.Key] = append(keys[c.Key], c)
	}
	f := &findings{rule: ruleWork}
	for _, key := range order {
		f.key = key
		all := keys[key]
		slices.SortStableFunc(all, func(a, b *WorkCall) int { return cmp.Compare(a.Invoke, b.Invoke) })
		checkAttempts(all, keep, f)
		checkEnding(all, keep, f)
	}
	return f.err()
}

// checkAttempts checks the calls that gave an attempt, and those that ended one.
func checkAttempts(calls []*WorkCall, keep time.Duration, f *findings) {
	var given, ended []*WorkCall
	for _, c := range calls {
		switch {
		case c.Op == Try && c.State == "acquired":
			given = append(given, c)
		case c.Op != Try && c.Accepted:
			ended = append(ended, c)
		}
	}
	for i, c := range given {
		if c.Attempt < 1 || c.Attempt > c.Max {
			f.add(fmt.Sprintf("the attempts end at %d: %v", c.Max, c))
		}
		for _, before := range given[:i] {
			// Masters may have voted at any time until the answer.
			if before.Attempt == c.Attempt && c.Complete < before.Complete+keep {
				f.add(fmt.Sprintf("one attempt was given twice: %v; %v", before, c))
			}
		}
		for _, e := range ended {
			if e.Attempt < c.Attempt && e.Invoke > c.Complete && e.Complete < c.Complete+keep {
				f.add(fmt.Sprintf("a superseded attempt ended the work: %v; %v", c, e))
			}
		}
	}
}

// checkEnding checks that the first acknowledged end of the work stands.
func checkEnding(calls []*WorkCall, keep time.Duration, f *findings) {
	var acknowledged *WorkCall
	began := Never // when the masters may have begun to store the end
	for _, c := range calls {
		if c.Op != Done || !c.Accepted && !c.Unknown {
			continue
		}
		began = min(began, c.Invoke) // one without an answer may be what took effect
		if c.Accepted && (acknowledged == nil || c.Complete < acknowledged.Complete) {
			acknowledged = c
		}
	}
	for _, c := range calls {
		again := c.State == "acquired" || c.State == "exhausted" // a stale "running" gives nothing out
		if acknowledged != nil && c.Op == Try && again && c.Invoke > acknowledged.Complete && c.Complete < began+keep {
			f.add(fmt.Sprintf("the end of the work was forgotten: %v; %v", acknowledged, c))
		}
	}
}
