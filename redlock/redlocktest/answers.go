package redlocktest

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

const (
	// Patience bounds waits for what must happen; nothing is concluded from its length.
	Patience = time.Minute
	// Long is a lease that no test outlives, and longer than Patience: what is gone within it
	// did not expire.
	Long = 3 * time.Minute
)

// RuleBroken reports that this process is a mutant. What a test then waits for may never come,
// and waiting longer proves no more.
var RuleBroken = mutants.Name() != ""

// Eventually polls until something is true.
func Eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	limit := Patience
	if RuleBroken {
		limit /= 3
	}
	EventuallyIn(t, limit, what, true)
}

// EventuallyIn is Eventually with a limit of its own.
func EventuallyIn(t *testing.T, limit time.Duration, what string, true func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !true(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("within %v it did not come about that %s", limit, what)
		}
	}
}

// Receive waits for an answer.
func Receive[A any](t *testing.T, answer <-chan A) A {
	t.Helper()
	select {
	case a := <-answer:
		return a
	case <-time.After(Patience):
		t.Fatal("an operation was never answered")
		panic("unreachable")
	}
}

// Logger writes into the test's own log, which is shown if it fails.
func Logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// CountLines is how many lines of a text contain a word.
func CountLines(text, with string) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}
