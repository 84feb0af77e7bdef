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

// end ends an attempt. Its record counts in the user's quota until it is forgotten. One that was taken over,
// or is unknown, is not the user's any more.
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
		switch at := access.WorkQuotaKey(request.DB, request.Key); {
		case err == nil && so:
			h.deps.Users.Prolonged(at, request.Token, redlock.KeepOf(request.Token))
		case err == nil:
			h.deps.Users.Released(at, request.Token)
		}
		c.Reply(commands.Either(so, err, commands.Int(1), commands.Int(0)))
	})
	return nil
}

// dworkextend answers the new validity in milliseconds, or nil if the attempt
// was taken over.
func (h *handlers) dworkextend(c *commands.Call) error {
	words := c.Words()
	request := redlock.WorkEndRequest{DB: c.Client.DB, Key: words.Work(), Token: words.Token(), Timeout: words.Time("timeout", h.leaseBounds())}
	if err := words.Err(); err != nil {
		return err
	}
	h.deps.Works.WorkExtend(c.Batch, request, commands.AnswerValidity(c, "the attempt may be taken over", func(work *redlock.Work, validity time.Duration) {
		h.deps.Users.Prolonged(access.WorkQuotaKey(request.DB, request.Key), work.Token, validity+redlock.KeepOf(work.Token))
	}))
	return nil
}
