package redlock

import "redlockd/pool"

// retryUntilAnswered is a command for one master that is sent until the master answers.
type repeated struct {
	group *pool.Group
	key   string
	debt  pool.Debt
}

var _ pool.Operation = (*repeated)(nil)

func (r *repeated) Plan() pool.Plan { return pool.Plan{Key: r.key, Joins: true} }
func (r *repeated) Propose(int64)   {}

func (r *repeated) Command(m *pool.Moment, c *pool.Command) bool {
	if r.debt.Lapsed(m) {
		return false
	}
	c.Set(r.debt.Words(m)...)
	return true
}

func (r *repeated) Answer(a pool.Answer) {
	if a.Reply.Err != nil {
		r.group.Owe(a.Lane, r.debt)
	}
}
