// Error replies of operations on the masters.

package commands

import (
	"errors"
	"fmt"

	"redlockd/redlock"
)

// RedisText is a caller's mistake in the exact words of Redis, which client
// libraries match on: do not correct its capitals and full stops.
type RedisText string

func (t RedisText) Error() string { return string(t) }

// Failure is the one translation of the errors of package redlock into replies. A
// quorum's "no" is nil and never an error; an error means that the question
// could not be decided. None of the codes is one that clients retry or
// redirect on by themselves, such as LOADING or READONLY.
func Failure(err error) Reply {
	if errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrNotHeld) {
		return Nil
	}
	return Error(Code(err), Wording(err))
}

// Either is the reply to a question of yes or no: one of two, or the failure to decide it.
func Either(yes bool, err error, then, otherwise Reply) Reply {
	switch {
	case err != nil:
		return Failure(err)
	case yes:
		return then
	}
	return otherwise
}

// Code is the machine-readable first word.
func Code(err error) string {
	switch {
	case is[*redlock.Moving](err): // also inside of a NoQuorum
		return "TRYLATER"
	case is[*redlock.NoQuorum](err):
		return "NOQUORUM"
	case is[*redlock.Expired](err):
		return "EXPIRED"
	case is[*redlock.Busy](err):
		return "TRYLATER"
	case is[*redlock.NotDurable](err):
		return "NOTDURABLE"
	case is[*redlock.LostState](err):
		return "LOSTSTATE"
	case is[*redlock.Exhausted](err):
		return "EXHAUSTED"
	case is[*redlock.Deadlock](err):
		return "DEADLOCK"
	case is[Expelled](err):
		return "NOPERM"
	case errors.Is(err, redlock.ErrShutdown):
		return "SHUTDOWN"
	case errors.Is(err, redlock.ErrWrongType):
		return "WRONGTYPE"
	}
	return "ERR" // the caller's: ErrBadToken, BelowKnown
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func Wording(err error) string {
	if errors.Is(err, redlock.ErrWrongType) {
		return "Operation against a key holding the wrong kind of value: " + err.Error()
	}
	return err.Error()
}

// TooLate answers for a quorum's yes whose validity was used up before the
// reply could be written, because replies wait for those before them. fate is
// what becomes of the lock; it depends on the command.
func TooLate(spent error, fate string) Reply {
	late, ok := errors.AsType[*redlock.Expired](spent)
	if !ok {
		return Failure(spent)
	}
	return Error("EXPIRED", fmt.Sprintf("the reply could be written only after %d ms, which leaves nothing of a ttl of %d ms; %s, use a longer ttl",
		late.Elapsed.Milliseconds(), late.TTL.Milliseconds(), fate))
}
