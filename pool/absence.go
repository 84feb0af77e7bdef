// Absence is the reason why the answer of one master does not count in one ballot.

package pool

import (
	"errors"
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/masterlog"
)

// Absence is stored for every answer that does not count, also where the ballot is
// won without it. So it holds the parts of a text, and no text. The zero value is
// a master that has not answered yet.
type Absence struct {
	err  error
	span time.Duration
	kind absenceKind
}

type absenceKind uint8

const (
	notYet       absenceKind = iota // it has not answered
	notSent                         // the command was never sent
	lost                            // it was sent, and the answer did not come
	voided                          // the seal is bad
	unsealed                        // there is no seal, because the flush was late
	errorReply                      // an error reply under a good seal
	inQuarantine                    // the seal is good, and the memory too new
	other                           // a reason of the ballot's own
	unreadable                      // none of these
)

// Absence returns the reason why an answer does not count.
func (p *Pool) Absence(a *Answer) Absence {
	err := a.Reply.Err
	_, replied := err.(MasterError)
	switch {
	case !a.Sent && err == nil:
		return Absence{kind: notSent, err: a.Seal.Err}
	case !a.Sent:
		return Absence{kind: notSent, err: err}
	case err != nil && !replied:
		return Absence{kind: lost, err: err}
	case a.Seal.Err != nil:
		return Absence{kind: voided, err: a.Seal.Err}
	case err != nil:
		return Absence{kind: errorReply, err: err}
	case !a.Seal.Good:
		return Absence{kind: unsealed}
	case a.Seal.Quarantined:
		return Absence{kind: inQuarantine, span: max(0, p.options.Age()-a.Seal.Age)}
	}
	return Absence{kind: unreadable}
}

// AbsentFor is a reason of the ballot's own, with the time after which it ends; 0 = it has none.
func AbsentFor(reason error, span time.Duration) Absence {
	return Absence{kind: other, err: reason, span: span}
}

// Unreadable reports that only the content of the answer is wrong.
func (a *Absence) Unreadable() bool { return a.kind == unreadable }

// Delayed reports that the master was too slow, that another daemon raised its register in the middle
// of the flush, or that it is being dialled because its configuration changed, and not that it is away
// or refuses.
func (a *Absence) Delayed() bool {
	return a.kind == unsealed || errors.Is(a.err, errStalled) || errors.Is(a.err, errLate) || errors.Is(a.err, errNotRaised) ||
		errors.Is(a.err, errUnobserved) || errors.Is(a.err, errEstimateBehind) ||
		errors.Is(a.err, errOtherEpoch) || a.kind != voided && errors.Is(a.err, errMemoryGone)
}

// String is the reason as a state with its cause.
func (a Absence) String() string {
	switch a.kind {
	case notYet:
		return "has not answered yet"
	case notSent:
		if a.err == nil {
			return "did not receive the command (the time for it was over)"
		}
		return stateOf(a.err) + " (" + a.err.Error() + ")"
	case lost:
		if errors.Is(a.err, errStalled) {
			return "down (" + a.err.Error() + ")"
		}
		return "down (" + a.err.Error() + ", before it answered)"
	case voided:
		return voidWord(a.err) + " (" + a.err.Error() + ")"
	case unsealed:
		return voidWord(errLate) + " (" + errLate.Error() + ")"
	case errorReply:
		return "answered an error (" + a.err.Error() + ")"
	case inQuarantine:
		return quarantinedState + " (" + masterlog.QuarantineText(a.span) + ")"
	case other:
		if a.span == 0 {
			return a.err.Error()
		}
		return a.err.Error() + " " + humanDuration(a.span)
	}
	return "answered something unexpected"
}

// stateOf is the state of a master that received no command.
func stateOf(err error) string {
	var reason *admission.Unfit
	switch {
	case errors.As(err, &reason):
		return "refused"
	case errors.Is(err, errDrained):
		return "draining"
	case errors.Is(err, errQueueFull):
		return "busy"
	case errors.Is(err, errNoClocks):
		return dialingState
	}
	return "down"
}

// voidWord is the reason of Counters.Void, or the state of a master that refuses to write.
func voidWord(err error) string {
	if reason := voidReason(err); reason != voidOther {
		return VoidReason(reason)
	}
	return "failing"
}

// Absent names the master of a lane, and the reason why its answer does not count.
func (p *Pool) Absent(lane int, a Absence) string { return p.NameOf(lane) + " " + a.String() }

// NameOf is a master's name with its address.
func (p *Pool) NameOf(lane int) string {
	m := p.Master(lane)
	return Status{Name: m.Name, Address: m.Address}.named()
}
