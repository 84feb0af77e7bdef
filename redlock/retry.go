package redlock

import "redlockd/pool"

// retryUntilAnswered is a command for one master that is sent until the master answers.
type retryUntilAnswered struct {
	group   *pool.Group
	key     string
	pending pool.PendingRelease
}

var _ pool.Operation = (*retryUntilAnswered)(nil)

func (r *retryUntilAnswered) Props() pool.Props { return pool.Props{Key: r.key, SharesKey: true} }
func (r *retryUntilAnswered) Propose(int64)     {}

func (r *retryUntilAnswered) Command(m *pool.SendContext, c *pool.Command) bool {
	if r.pending.Lapsed(m) {
		return false
	}
	c.Set(r.pending.CommandArgs(m)...)
	return true
}

func (r *retryUntilAnswered) Answer(a pool.Answer) {
	if a.Reply.Err != nil {
		r.group.RetryRelease(a.Lane, r.pending)
	}
}
