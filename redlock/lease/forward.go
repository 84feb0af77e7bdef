// Forward sends a command as it is to every master, for the test suites of lock libraries.
// These also write plain values, look into lists and empty the database. Nothing here is a lock
// operation: it uses no seal, takes nothing back, and may overwrite a copy of a client's lock.
// Clients get here only with --compat-test.

package lease

import (
	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// ForwardRequest is one command.
type ForwardRequest struct {
	DB    int
	Words []string
	Names []int // which of the words are keys: they get the key prefix
}

// ForwardDone is called exactly once, from any goroutine, with the answer that a quorum of
// masters gave alike, even if it is an error. err is *NoQuorum, also when the masters differ,
// *Busy or ErrShutdown.
type ForwardDone func(r pool.Reply, err error)

// Forward runs a command on every master.
func (l *Leases) Forward(b *engine.Batch, r ForwardRequest, done ForwardDone) {
	if err := l.engine.Enter(); err != nil {
		done(pool.Reply{}, err)
		return
	}
	f := &forward{words: append([]string(nil), r.Words...), done: done}
	for _, i := range r.Names {
		f.words[i] = l.engine.MasterKey(engine.Key(f.words[i]))
	}
	if len(r.Names) > 0 {
		f.key = f.words[r.Names[0]]
	}
	f.ballot.Ask(l.engine, b, l.engine.Pool.Group(r.DB), nil, f)
	for _, i := range r.Names {
		l.freed(b, r.DB, engine.Key(r.Words[i])) // it may be free now
	}
}

type forward struct {
	engine.Plain
	ballot engine.Ballot
	words  []string
	key    string
	done   ForwardDone

	replies []pool.Reply // of masters that answered
	most    pool.Reply   // the one that most of them gave
}

var _ engine.Question = (*forward)(nil)

func (f *forward) Props() pool.Props { return pool.Props{Key: f.key, SharesKey: true} }

func (f *forward) Command(_ *pool.SendContext, c *pool.Command) bool {
	c.Set(f.words...)
	return true
}

func (f *forward) Read(answer pool.Answer) engine.Reading {
	if !answer.Sent || !engine.FromMaster(answer.Reply) {
		return engine.Uncounted
	}
	f.replies = append(f.replies, answer.Reply)
	return engine.Neither
}

// Decide: the answer that a quorum gives alike is the result.
func (f *forward) Decide(t *quorum.Tally) quorum.Result {
	var alike int
	f.most, alike = quorum.MostAlike(f.replies, sameReply)
	switch {
	case alike >= t.Quorum:
		return quorum.Granted
	case t.Pending() == 0:
		return quorum.Unknown
	}
	return quorum.Undecided
}

func (f *forward) Decided(r quorum.Result) {
	f.ballot.Engine.Leave()
	if r == quorum.Granted {
		f.done(f.most, nil)
		return
	}
	f.done(pool.Reply{}, f.ballot.NoQuorum("no quorum answered alike; each master that answered has run the command"))
}
