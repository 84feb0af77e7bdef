package redlocktest

import (
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

const (
	// Patience bounds waits for what must happen; nothing is concluded from its length.
	Patience = time.Minute
	// maxPause is the longest time between two questions whether something is true.
	maxPause = 20 * time.Millisecond
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
	pause := 2 * time.Millisecond // longer and longer: each question costs the masters as much
	for end := time.Now().Add(limit); !true(); time.Sleep(pause) {
		pause = min(pause*5/4, maxPause)
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

// Logger writes into the test's own log, which is shown if it fails. Create it before the daemon that
// uses it: the timer of a hold may fire while the daemon ends, and what is written after the end of a
// test would end the process.
func Logger(t *testing.T) *slog.Logger {
	out := &testOutput{to: t.Output()}
	t.Cleanup(out.end)
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// testOutput is the log of a test until its end.
type testOutput struct {
	mu   sync.Mutex
	to   io.Writer
	over bool
}

func (o *testOutput) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return len(line), nil
	}
	return o.to.Write(line)
}

func (o *testOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

// CountLines counts the lines of a text that contain a word.
func CountLines(text, with string) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}
