package chaos

// ledger_test.go: the report of what failed, in three places: where it happened, in the
// artefacts of its run, and at the very end, for a reader of ten minutes of output.

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// ledger is a test that remembers why it failed.
type ledger struct {
	testing.TB
	expected bool // failures are: they are remembered, and the test goes on without them

	mu   sync.Mutex
	said []string
}

func (l *ledger) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, strings.TrimSpace(text))
}

func (l *ledger) sentences() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.said...)
}

func (l *ledger) Error(words ...any) {
	l.Helper()
	l.note(fmt.Sprintln(words...))
	if l.expected {
		l.TB.Log(words...)
		return
	}
	l.TB.Error(words...)
}

func (l *ledger) Errorf(format string, words ...any) {
	l.Helper()
	l.note(fmt.Sprintf(format, words...))
	if l.expected {
		l.TB.Logf(format, words...)
		return
	}
	l.TB.Errorf(format, words...)
}

func (l *ledger) Fatal(words ...any) {
	l.Helper()
	l.note(fmt.Sprintln(words...))
	l.TB.Fatal(words...)
}

func (l *ledger) Fatalf(format string, words ...any) {
	l.Helper()
	l.note(fmt.Sprintf(format, words...))
	l.TB.Fatalf(format, words...)
}

// epilogue is what is printed after all tests.
type epilogue struct {
	mu   sync.Mutex
	runs []string
}

// add a run that failed: what repeats it, where its artefacts are, and why.
func (e *epilogue) add(m mix, seed uint64, dir string, sentences []string) {
	text := fmt.Sprintf("FAILED: %q, CHAOS_MIX=%q CHAOS_SEED=%d, artefacts in %s", m.name, m.name, seed, dir)
	e.append(strings.Join(append([]string{text}, sentences...), "\n  "))
}

// append a text, of a run that did not take place, for example.
func (e *epilogue) append(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs = append(e.runs, text)
}

func (e *epilogue) print(w io.Writer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range e.runs {
		fmt.Fprintln(w, text)
	}
}
