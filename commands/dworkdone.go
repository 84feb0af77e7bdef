// DWORKDONE, DWORKFAIL and DWORKEXTEND: end or prolong a worker's attempt.

package commands

import (
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// dworkdone answers 1 if the work is marked done, 0 if the attempt was taken
// over meanwhile.
func (t *Table) dworkdone(c *Call) error {
	request, err := attemptOf(c)
	if err != nil {
		return err
	}
	t.deps.WorkEnds.WorkDone(c.Batch, request, t.ended(c, request))
	return nil
}

// dworkfail answers 1 if the attempt is given up, 0 if it was taken over
// meanwhile.
func (t *Table) dworkfail(c *Call) error {
	request, err := attemptOf(c)
	if err != nil {
		return err
	}
	t.deps.WorkEnds.WorkFail(c.Batch, request, t.ended(c, request))
	return nil
}

// attemptOf reads the key and the token of an attempt.
func attemptOf(c *Call) (redlock.WorkEndRequest, error) {
	request := redlock.WorkEndRequest{DB: c.Client.DB}
	var err error
	if request.Key, err = parseWork(c.Args[1]); err != nil {
		return request, err
	}
	request.Token, err = parseToken(c.Args[2])
	return request, err
}

// ended takes the outcome of an end. Whatever it is, unless it is undecided, the
// attempt is not the user's any more.
func (t *Table) ended(c *Call, request redlock.WorkEndRequest) redlock.WorkEndDone {
	return func(so bool, err error) {
		if err == nil {
			t.deps.Users.Released(access.WorkQuotaKey(request.DB, request.Key), request.Token)
		}
		switch {
		case err != nil:
			c.Reply(failure(err))
		case so:
			c.Reply(Int(1))
		default:
			c.Reply(Int(0))
		}
	}
}

// dworkextend answers the new validity in milliseconds, or nil if the attempt
// was taken over.
func (t *Table) dworkextend(c *Call) error {
	request, err := attemptOf(c)
	if err != nil {
		return err
	}
	if request.Timeout, err = t.leaseBounds().parseTime("timeout", c.Args[3]); err != nil {
		return err
	}
	answer := &workExtendAnswer{completer: c.Completer, users: t.deps.Users, at: access.WorkQuotaKey(request.DB, request.Key)}
	t.deps.WorkEnds.WorkExtend(c.Batch, request, answer.decided)
	return nil
}

// workExtendAnswer is the reply of one DWORKEXTEND.
type workExtendAnswer struct {
	completer Completer
	users     *access.Users
	at        access.HeldKey
	work      redlock.Work
}

// decided takes the outcome from the masters.
func (a *workExtendAnswer) decided(work redlock.Work, err error) {
	if err != nil {
		a.completer.Complete(failure(err))
		return
	}
	a.work = work
	a.completer.CompleteDeferred(a)
}

// Reply reports what is left when it is written.
func (a *workExtendAnswer) Reply() Reply {
	validity := a.work.Validity()
	if validity < time.Millisecond {
		return tooLate(a.work.Spent(), "the attempt may be taken over")
	}
	a.users.Prolonged(a.at, a.work.Token, validity)
	return Int(validity.Milliseconds())
}

// Undelivered does nothing: the attempt runs, and its worker may still be there on
// another connection.
func (a *workExtendAnswer) Undelivered() {}
