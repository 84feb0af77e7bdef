package checker

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// try is an attempt of three that was given.
func try(attempt int64, invoke, complete int) WorkCall {
	return WorkCall{Key: "k", Op: Try, State: "acquired", Attempt: attempt, Max: 3, Invoke: ms(invoke), Complete: ms(complete)}
}

func tryAnswered(state string, invoke, complete int) WorkCall {
	return WorkCall{Key: "k", Op: Try, State: state, Max: 3, Invoke: ms(invoke), Complete: ms(complete)}
}

func ends(op WorkOp, attempt int64, accepted bool, invoke, complete int) WorkCall {
	return WorkCall{Key: "k", Op: op, Attempt: attempt, Accepted: accepted, Invoke: ms(invoke), Complete: ms(complete)}
}

func unanswered(c WorkCall) WorkCall {
	c.Accepted, c.Unknown = false, true
	return c
}

const workKeep = time.Second

func TestCheckWork_AcceptsWhatMayHappen(t *testing.T) {
	for name, calls := range map[string][]WorkCall{
		"one attempt, done":                      {try(1, 0, 1), ends(Done, 1, true, 5, 6), tryAnswered("done", 7, 8)},
		"two attempts, the first refused":        {try(1, 0, 1), try(2, 50, 51), ends(Done, 1, false, 55, 56), ends(Done, 2, true, 57, 58)},
		"failed, then done":                      {try(1, 0, 1), ends(Fail, 1, true, 5, 6), try(2, 7, 8), ends(Done, 2, true, 9, 10), tryAnswered("done", 11, 12)},
		"answered late: it runs":                 {try(1, 0, 1), ends(Done, 1, true, 5, 6), tryAnswered("running", 7, 8)},
		"tried while it ended":                   {try(1, 0, 1), ends(Done, 1, true, 5, 10), tryAnswered("running", 6, 12)},
		"new work as it was forgotten":           {try(1, 0, 1), ends(Fail, 1, true, 5, 6), try(1, 990, 1010)},
		"new work after it was forgotten":        {try(1, 0, 1), ends(Done, 1, true, 5, 6), try(1, 1100, 1101)},
		"forgotten a little earlier, by a first": {try(1, 0, 1), unanswered(ends(Done, 1, true, 5, 6)), ends(Done, 1, true, 500, 501), try(2, 1000, 1010)},
		"the last one came back":                 {try(3, 0, 1), tryAnswered("exhausted", 50, 51), ends(Done, 3, true, 60, 61), tryAnswered("done", 62, 63)},
		"an end that overlaps the next attempt":  {try(1, 0, 1), ends(Done, 1, true, 50, 55), try(2, 51, 52)},
	} {
		if err := CheckWork(calls, workKeep); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckWork_RejectsWhatMustNot(t *testing.T) {
	for name, calls := range map[string][]WorkCall{
		"beyond the limit":              {try(1, 0, 1), try(4, 50, 51)},
		"attempt 0":                     {try(0, 0, 1)},
		"given twice":                   {try(1, 0, 1), try(1, 50, 51)},
		"given twice at once":           {try(2, 0, 10), try(2, 5, 6)},
		"given after the end":           {try(1, 0, 1), ends(Done, 1, true, 5, 6), try(2, 7, 8)},
		"exhausted after the end":       {try(3, 0, 1), ends(Done, 3, true, 5, 6), tryAnswered("exhausted", 7, 8)},
		"done by a superseded attempt":  {try(1, 0, 1), try(2, 50, 51), ends(Done, 1, true, 55, 56)},
		"given up by a superseded one":  {try(1, 0, 1), try(2, 50, 51), ends(Fail, 1, true, 55, 56)},
		"given after the second of two": {try(1, 0, 1), unanswered(ends(Done, 1, true, 5, 6)), ends(Done, 1, true, 7, 8), try(2, 9, 10)},
	} {
		err := CheckWork(calls, workKeep)
		var v *Violation
		if !errors.As(err, &v) || v.Rule != ruleWork || v.Key != "k" || !strings.Contains(v.Why, "client 0 sends") {
			t.Errorf("%s: verdict %v, want a violation that shows a call", name, err)
		}
	}
}

func TestCheckWork_RejectsWhatCannotBe(t *testing.T) {
	for _, c := range []WorkCall{{Op: Try}, {Key: "k"}, {Key: "k", Op: Done, Invoke: 2, Complete: 1}} {
		if err := CheckWork([]WorkCall{c}, workKeep); !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v: verdict %v, want ErrMalformed", c, err)
		}
	}
}
