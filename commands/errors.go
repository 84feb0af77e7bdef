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

// Code is the machine-readable first word.
func Code(err error) string {
	var noQuorum *redlock.NoQuorum
	var expired *redlock.Expired
	var busy *redlock.Busy
	var notDurable *redlock.NotDurable
	var lostState *redlock.LostState
	var exhausted *redlock.Exhausted
	var deadlock *redlock.Deadlock
	var expelled Expelled
	switch {
	case errors.As(err, &noQuorum):
		return "NOQUORUM"
	case errors.As(err, &expired):
		return "EXPIRED"
	case errors.As(err, &busy):
		return "TRYLATER"
	case errors.As(err, &notDurable):
		return "NOTDURABLE"
	case errors.As(err, &lostState):
		return "LOSTSTATE"
	case errors.As(err, &exhausted):
		return "EXHAUSTED"
	case errors.As(err, &deadlock):
		return "DEADLOCK"
	case errors.As(err, &expelled):
		return "NOPERM"
	case errors.Is(err, redlock.ErrShutdown):
		return "SHUTDOWN"
	case errors.Is(err, redlock.ErrWrongType):
		return "WRONGTYPE"
	}
	return "ERR" // the caller's: ErrBadToken, BelowKnown
}

// Wording is the rest of the line.
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
	var late *redlock.Expired
	if !errors.As(spent, &late) {
		return Failure(spent)
	}
	return Error("EXPIRED", fmt.Sprintf("the reply could be written only after %d ms, which leaves nothing of a ttl of %d ms; %s, use a longer ttl",
		late.Elapsed.Milliseconds(), late.TTL.Milliseconds(), fate))
}
