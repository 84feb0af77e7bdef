// DWORKDONE, DWORKFAIL and DWORKEXTEND: end or prolong a worker's attempt.

package work

import (
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// dworkdone answers 1 if the work is marked done, dworkfail 1 if the attempt is given up;
// 0 if it was taken over meanwhile.
func (h *handlers) dworkdone(c *commands.Call) error { return h.end(c, h.deps.Works.WorkDone) }
func (h *handlers) dworkfail(c *commands.Call) error { return h.end(c, h.deps.Works.WorkFail) }

// end ends an attempt. Whatever the outcome, unless it is undecided, the attempt is not
// the user's any more.
func (h *handlers) end(c *commands.Call, end func(*redlock.Batch, redlock.WorkEndRequest, redlock.WorkEndDone)) error {
	words := c.Words()
	request := redlock.WorkEndRequest{DB: c.Client.DB, Key: words.Work(), Token: words.Token()}
	if words.More() { // of DWORKDONE alone
		words.Option()
		result := words.Result()
		request.Result = &result
	}
	if err := words.Err(); err != nil {
		return err
	}
	end(c.Batch, request, func(so bool, err error) {
		if err == nil {
			h.deps.Users.Released(access.WorkQuotaKey(request.DB, request.Key), request.Token)
		}
		c.Reply(commands.Either(so, err, commands.Int(1), commands.Int(0)))
	})
	return nil
}

// dworkextend answers the new validity in milliseconds, or nil if the attempt
// was taken over. Nothing is undone if that is not delivered: the attempt runs, and its
// worker may still be there on another connection.
func (h *handlers) dworkextend(c *commands.Call) error {
	words := c.Words()
	request := redlock.WorkEndRequest{DB: c.Client.DB, Key: words.Work(), Token: words.Token(), Timeout: words.Time("timeout", h.leaseBounds())}
	if err := words.Err(); err != nil {
		return err
	}
	h.deps.Works.WorkExtend(c.Batch, request, func(work redlock.Work, err error) {
		if err != nil {
			c.Reply(commands.Failure(err))
			return
		}
		c.Completer.CompleteDeferred(commands.Later(func() commands.Reply {
			validity := work.Validity()
			if validity < time.Millisecond {
				return commands.TooLate(work.ExpiredError(), "the attempt may be taken over")
			}
			h.deps.Users.Prolonged(access.WorkQuotaKey(request.DB, request.Key), work.Token, validity)
			return commands.Int(validity.Milliseconds())
		}))
	})
	return nil
}
