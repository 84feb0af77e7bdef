package checker

// The recorded history: a CallRecord is one call of one client as that client saw
// it, a History is all of them. Nothing here depends on how the lock works.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// OpKind names what a client requested.
type OpKind string

// The three requests that a client can send about a lock.
const (
	Acquire OpKind = "acquire"
	Extend  OpKind = "extend"
	Release OpKind = "release"
)

// Outcome names what the client received.
type Outcome string

// A refusal (No) and an unknown outcome (Unknown) are different: an unknown call may
// have taken effect, or may yet do so at any time after it was invoked.
const (
	OK      Outcome = "ok"
	No      Outcome = "no"
	Unknown Outcome = "unknown"
)

// Never is the Complete of a call whose answer never came.
const Never = time.Duration(math.MaxInt64)

// CallRecord is one call. Times are read from one monotonic clock that all clients
// of a history share, and count from its origin.
type CallRecord struct {
	Client   int
	Op       OpKind
	Key      string
	Token    string        // may be "" only where nothing was granted and the token was the server's to choose
	Invoke   time.Duration // read before the request left
	Complete time.Duration // read after the answer came; Never if it did not
	Outcome  Outcome

	// Validity is how long after Complete the client relies on the lock, for a
	// successful acquire or extend. A client behind a socket subtracts one round
	// trip from the validity in the reply. Zero or less: the answer came too late to
	// be relied on, but it still proves that the lock was granted.
	Validity time.Duration

	// Shared: an acquire as a reader. Limit: an acquire of one of so many
	// permits. Neither: an exclusive acquire.
	Shared bool
	Limit  int

	// Fence of a successful acquire; 0 = none, as with a client that uses the
	// masters without redlockd. Such grants are outside the fence rules.
	Fence int64

	// Released is the answer to a release that was answered: 1 (true) or 0.
	// A release with outcome No is read as 0 too.
	Released bool
}

// History is a set of events in any order. It must be complete: an acquire that
// is missing makes later, honest answers look like contradictions.
type History []CallRecord

// Dump writes the history for people, as JSON, one event a line.
func (h History) Dump(w io.Writer) error {
	encoder := json.NewEncoder(w)
	for i := range h {
		if err := encoder.Encode(&h[i]); err != nil {
			return fmt.Errorf("checker: writing event %d of %d: %w", i, len(h), err)
		}
	}
	return nil
}

// ErrMalformed: the history cannot be checked because an event contradicts
// itself. The recording is wrong, which proves nothing about the lock.
var ErrMalformed = errors.New("malformed history")

// Validate returns an error that wraps ErrMalformed and names the first event
// that cannot have happened as recorded.
func (h History) Validate() error {
	for i := range h {
		if flaw := h[i].flaw(); flaw != "" {
			return fmt.Errorf("checker: %w: event %d (%v): %s", ErrMalformed, i, &h[i], flaw)
		}
	}
	return nil
}

// flaw is what is wrong with the event by itself, "" if nothing is.
func (e *CallRecord) flaw() string {
	granted := e.Outcome == OK && e.Op != Release
	switch {
	case !slices.Contains([]OpKind{Acquire, Extend, Release}, e.Op):
		return fmt.Sprintf("op is %q, want acquire, extend or release", e.Op)
	case !slices.Contains([]Outcome{OK, No, Unknown}, e.Outcome):
		return fmt.Sprintf("outcome is %q, want ok, no or unknown", e.Outcome)
	case e.Key == "":
		return "the key is empty"
	case e.Token == "" && (granted || e.Op != Acquire):
		return "the token is empty; only an acquire that was not granted may lack one"
	case e.Invoke < 0 || e.Complete < e.Invoke:
		return "want 0 <= invoke <= complete"
	case e.Complete == Never && e.Outcome != Unknown:
		return "it was answered, yet it never completed; record when the answer came"
	case e.Fence < 0:
		return "the fence is negative; 0 means none"
	case e.Fence != 0 && !(granted && e.Op == Acquire):
		return "only a granted acquire carries a fence"
	case e.Released && !(e.Op == Release && e.Outcome == OK):
		return "released is the answer 1 of a release with outcome ok"
	}
	return ""
}

// deadline is the instant up to which the client relies on the answer.
func (e *CallRecord) deadline() time.Duration {
	if e.Validity > Never-e.Complete {
		return Never
	}
	return e.Complete + e.Validity
}

// String shows the event in one line, as errors do.
func (e *CallRecord) String() string {
	text := fmt.Sprintf("client %d %s %q by %q at %s: ", e.Client, e.Op, e.Key, e.Token, span(e.Invoke, e.Complete))
	switch {
	case e.Outcome == OK && e.Op == Release:
		if e.Released {
			return text + "released"
		}
		return text + "not held"
	case e.Outcome != OK:
		return text + string(e.Outcome)
	}
	text += "ok for " + e.Validity.String()
	if e.Fence != 0 {
		text += fmt.Sprintf(" with fence %d", e.Fence)
	}
	return text
}

func span(from, until time.Duration) string {
	if until == Never {
		return fmt.Sprintf("[%v, never]", from)
	}
	return fmt.Sprintf("[%v, %v]", from, until)
}
