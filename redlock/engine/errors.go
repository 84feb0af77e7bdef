package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"redlockd/pool"
)

// Refused (no), failed (unknown) and not sent are three outcomes, and stay three from here to
// the socket. ErrHeld and ErrNotHeld are a quorum's "no". The types below mean that the masters
// did not decide.
var (
	// ErrHeld: a quorum refused, another token holds the key. The reply is nil.
	ErrHeld = errors.New("held by another token")
	// ErrNotHeld: a quorum no longer has this token for this key. The reply is nil.
	ErrNotHeld = errors.New("not held by this token")
	// ErrWrongType: most masters keep something at this key that is not a lock; it was left untouched.
	ErrWrongType = errors.New("the key holds something that is not a lock; it was left untouched")
	// ErrShutdown: the daemon is draining; nothing was done.
	ErrShutdown = errors.New("the daemon is shutting down; nothing was done, use another daemon")
)

// ErrNoValue is an ErrWrongType of commands that change or compare the value of a plain lock.
var ErrNoValue error = noValue{}

type noValue struct{}

func (noValue) Is(target error) bool { return target == ErrWrongType }

func (noValue) Error() string {
	return "the key holds readers, permits, or something that is not a lock, and this command needs a lock with one value; it was left untouched"
}

// ForeignData is an ErrWrongType about keys beside the one that the caller named: redlockd keeps
// queues, counters and work there.
type ForeignData struct{ Keys []string }

func (e *ForeignData) Is(target error) bool { return target == ErrWrongType }

func (e *ForeignData) Error() string {
	one := ""
	if len(e.Keys) > 1 {
		one = "one of "
	}
	return one + strings.Join(e.Keys, ", ") + " holds something that redlockd did not write; it was left untouched. Delete it on the masters, or set another --key-prefix"
}

// IsWrongType reports whether a script met a value of another type than it expects. Before Redis 7,
// the error of a command stands behind the line of the script.
func IsWrongType(r pool.Reply) bool {
	err, ok := r.Err.(pool.MasterError)
	return ok && (err.Begins("WRONGTYPE") || strings.Contains(string(err), ": WRONGTYPE "))
}

// NoQuorum means that fewer than a quorum of masters gave an answer that
// counts, so the outcome is unknown; what was taken is being given back.
type NoQuorum struct {
	Answered, Needed, Total int
	Missing                 []string // one phrase per missing master: "b=10.0.0.2:6379 down (connection refused)"
	Note                    string   // what this means for the caller, "" for the usual

	// Downgrading: the downgrade of a writer to a reader has begun and is never undone.
	Downgrading bool
	// Moving is why the outcome is unknown if the key has left its group meanwhile.
	Moving *Moving
}

func (e *NoQuorum) Unwrap() error {
	if e.Moving == nil {
		return nil
	}
	return e.Moving
}

func (e *NoQuorum) Error() string {
	if e.Moving != nil {
		return e.Moving.Error()
	}
	text := fmt.Sprintf("%d of %d masters answered, %d needed", e.Answered, e.Total, e.Needed)
	if len(e.Missing) > 0 {
		text += ": " + strings.Join(merged(e.Missing), ", ")
	}
	if e.Note != "" {
		text += "; " + e.Note
	}
	return text
}

// merged are phrases about masters, with one reason of several that follow one another once.
func merged(phrases []string) (all []string) {
	last := ""
	for _, phrase := range phrases {
		name, why, _ := strings.Cut(phrase, " ")
		if why != "" && why == last {
			before := &all[len(all)-1]
			*before = strings.TrimSuffix(*before, " "+why)
			phrase = *before + ", " + name + " " + why
			all = all[:len(all)-1]
		}
		all, last = append(all, phrase), why
	}
	return all
}

// Expired means that a quorum said yes, but so late that no validity was left.
type Expired struct {
	Elapsed, TTL time.Duration
	// Extension: the lease was there before and its old validity stands;
	// otherwise what was taken is being given back.
	Extension bool
}

func (e *Expired) Error() string {
	fate := "what was taken is given back"
	if e.Extension {
		fate = "the lease's old validity stands"
	}
	return fmt.Sprintf("the quorum answered after %d ms, which leaves nothing of a ttl of %d ms; %s, use a longer ttl",
		e.Elapsed.Milliseconds(), e.TTL.Milliseconds(), fate)
}

// Busy means that a limit of the daemon is reached; nothing was done.
type Busy struct {
	What   string // "operations in flight"
	Limit  int
	Option string // "--max-operations"
}

func (e *Busy) Error() string {
	return fmt.Sprintf("%s: limit %d reached (%s); nothing was done, try later", e.What, e.Limit, e.Option)
}
