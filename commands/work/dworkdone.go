// DWORKDONE, DWORKFAIL and DWORKEXTEND: end or prolong a worker's attempt.

package work

import (
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// dworkdone answers 1 if the work is marked done, 0 if the attempt was taken
// over meanwhile.
func (h *handlers) dworkdone(c *commands.Call) error {
	request, err := attemptOf(c)
	if err != nil {
		return err
	}
	h.deps.Works.WorkDone(c.Batch, request, h.ended(c, request))
	return nil
}

// dworkfail answers 1 if the attempt is given up, 0 if it was taken over
// meanwhile.
func (h *handlers) dworkfail(c *commands.Call) error {
	request, err := attemptOf(c)
	if err != nil {
		return err
	}
	h.deps.Works.WorkFail(c.Batch, request, h.ended(c, request))
	return nil
}

// attemptOf reads the key and the token of an attempt.
func attemptOf(c *commands.Call) (redlock.WorkEndRequest, error) {
	request := redlock.WorkEndRequest{DB: c.Client.DB}
	var err error
	if request.Key, err = arg.ParseWork(c.Args[1]); err != nil {
		return request, err
	}
	request.Token, err = arg.ParseToken(c.Args[2])
	return request, err
}

// ended takes the outcome of an end. Whatever it is, unless it is undecided, the
// attempt is not the user's any more.
func (h *handlers) ended(c *commands.Call, request redlock.WorkEndRequest) redlock.WorkEndDone {
	return func(so bool, err error) {
		if err == nil {
			h.deps.Users.Released(access.WorkQuotaKey(request.DB, request.Key), request.Token)
		}
		switch {
		case err != nil:
			c.Reply(commands.Failure(err))
		case so:
			c.Reply(commands.Int(1))
		default:
			c.Reply(commands.Int(0))
		}
	}
}

// dworkextend answers the new validity in milliseconds, or nil if the attempt
// was taken over.
func (h *handlers) dworkextend(c *commands.Call) error {
	request, err := attemptOf(c)
	if err != nil {
		return err
	}
	if request.Timeout, err = h.leaseBounds().ParseTime("timeout", c.Args[3]); err != nil {
		return err
	}
	answer := &workExtendAnswer{completer: c.Completer, users: h.deps.Users, at: access.WorkQuotaKey(request.DB, request.Key)}
	h.deps.Works.WorkExtend(c.Batch, request, answer.decided)
	return nil
}

// workExtendAnswer is the reply of one DWORKEXTEND.
type workExtendAnswer struct {
	completer commands.Completer
	users     *access.Users
	at        access.HeldKey
	work      redlock.Work
}

// decided takes the outcome from the masters.
func (a *workExtendAnswer) decided(work redlock.Work, err error) {
	if err != nil {
		a.completer.Complete(commands.Failure(err))
		return
	}
	a.work = work
	a.completer.CompleteDeferred(a)
}

// Reply reports what is left when it is written.
func (a *workExtendAnswer) Reply() commands.Reply {
	validity := a.work.Validity()
	if validity < time.Millisecond {
		return commands.TooLate(a.work.ExpiredError(), "the attempt may be taken over")
	}
	a.users.Prolonged(a.at, a.work.Token, validity)
	return commands.Int(validity.Milliseconds())
}

// Undelivered does nothing: the attempt runs, and its worker may still be there on
// another connection.
func (a *workExtendAnswer) Undelivered() {}
