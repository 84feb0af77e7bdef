// Forward sends a command as it is to every master, for the test suites of lock libraries.
// These also write plain values, look into lists and empty the database. Nothing here is a lock
// operation: it uses no seal, takes nothing back, and may overwrite a copy of a client's lock.
// Clients get here only with --compat-test.

package lease

import (
	"cmp"
	"reflect"
	"slices"

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
	words, p := slices.Clone(r.Words), pool.Props{SharesKey: true}
	for _, i := range r.Names {
		words[i] = l.engine.MasterKey(engine.Key(words[i]))
		p.Key = cmp.Or(p.Key, words[i])
	}
	l.engine.Collect(b, l.engine.Pool.Group(r.DB), p, func(_ *pool.SendContext, c *pool.Command) { c.Set(words...) }, func(answers []pool.Answer) {
		l.engine.Leave()
		done(alike(l.engine, answers))
	})
	for _, i := range r.Names {
		l.freed(b, r.DB, engine.Key(r.Words[i])) // it may be free now
	}
}

// alike is the answer that a quorum gives alike.
func alike(e *engine.Engine, answers []pool.Answer) (pool.Reply, error) {
	var replies []pool.Reply
	var m engine.Missing
	for lane := range answers {
		if a := &answers[lane]; a.Sent && engine.FromMaster(a.Reply) {
			m.MarkCounted(lane)
			replies = append(replies, a.Reply)
		} else {
			m.MarkMissing(lane, e.Pool.Absence(a))
		}
	}
	reply, n := quorum.MostAlike(replies, sameReply)
	if n < e.Pool.Quorum() {
		return pool.Reply{}, e.NoQuorum(&m, "no quorum answered alike; each master that answered has run the command")
	}
	return reply, nil
}

func sameReply(a, b pool.Reply) bool { return reflect.DeepEqual(a, b) }
