package engine

import (
	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// collection hands over the answers of all masters.
type collection struct {
	Plain
	ballot  Ballot
	props   pool.Props
	command func(m *pool.SendContext, c *pool.Command)
	done    func([]pool.Answer)
	answers []pool.Answer
}

var _ Question = (*collection)(nil)

// Collect sends one command to every master, at once or with its read batch, and hands over all
// answers, by lane.
func (e *Engine) Collect(b *Batch, g *pool.Group, p pool.Props, command func(*pool.SendContext, *pool.Command), done func([]pool.Answer)) {
	q := &collection{props: p, command: command, done: done, answers: make([]pool.Answer, quorum.MaxMasters)}
	q.ballot.Ask(e, b, g, nil, q)
}

func (q *collection) Props() pool.Props { return q.props }

func (q *collection) Command(m *pool.SendContext, c *pool.Command) bool {
	q.command(m, c)
	return true
}

func (q *collection) Read(a pool.Answer) Reading {
	q.answers[a.Lane] = a
	return Neither
}

func (q *collection) Decide(t *quorum.Tally) quorum.Result {
	if t.Pending() > 0 {
		return quorum.Undecided
	}
	return quorum.Granted
}

func (q *collection) Decided(quorum.Result) { q.done(q.answers[:q.ballot.Tally.N]) }
