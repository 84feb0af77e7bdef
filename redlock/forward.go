// Forward sends a command as it is to every master, for the test suites of lock libraries.
// These also write plain values, look into lists and empty the database. Nothing here is a lock
// operation: it uses no seal, takes nothing back, and may overwrite a copy of a client's lock.
// Clients get here only with --compat-test.

package redlock

import (
	"reflect"
	"sync"

	"redlockd/pool"
	"redlockd/redlock/engine"
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
func (l *Locker) Forward(b *Batch, r ForwardRequest, done ForwardDone) {
	if err := l.engine.Enter(); err != nil {
		done(pool.Reply{}, err)
		return
	}
	f := &forward{locker: l, group: l.engine.Pool.Group(r.DB), words: append([]string(nil), r.Words...), done: done}
	for _, i := range r.Names {
		f.words[i] = l.engine.MasterKey(Key(f.words[i]))
	}
	if len(r.Names) > 0 {
		f.key = f.words[r.Names[0]]
	}
	l.engine.Submit(b, f.group, f)
	for _, i := range r.Names {
		l.waits.onRelease(b, dbKey{r.DB, Key(r.Words[i])}) // it may be free now
	}
}

// forward is one call of Forward.
type forward struct {
	locker *Locker
	group  *pool.Group
	words  []string
	key    string
	done   ForwardDone

	mu       sync.Mutex
	missing  engine.Missing
	replies  []pool.Reply // of masters that answered
	answered int
	over     bool
}

var _ pool.Operation = (*forward)(nil)

func (f *forward) Props() pool.Props { return pool.Props{Key: f.key, SharesKey: true} }
func (f *forward) Propose(int64)     {}

func (f *forward) Command(_ *pool.SendContext, c *pool.Command) bool {
	c.Set(f.words...)
	return true
}

// Answer counts one master. The answer that a quorum gives alike is the result.
func (f *forward) Answer(answer pool.Answer) {
	n, quorum := f.locker.engine.Pool.N(), f.locker.engine.Pool.Quorum()
	f.mu.Lock()
	if f.over { // the fields are now read without the lock
		f.mu.Unlock()
		return
	}
	f.answered++
	alike := 0
	if answer.Sent && engine.FromMaster(answer.Reply) {
		f.missing.MarkCounted(answer.Lane)
		f.replies = append(f.replies, answer.Reply)
		for _, other := range f.replies {
			if reflect.DeepEqual(other, answer.Reply) {
				alike++
			}
		}
	} else {
		f.missing.MarkMissing(answer.Lane, f.locker.engine.Pool.Absence(&answer))
	}
	decided, last := alike >= quorum, f.answered == n
	f.over = decided || last
	f.mu.Unlock()
	switch {
	case !decided && !last:
	case decided:
		f.locker.engine.Leave()
		f.done(answer.Reply, nil)
	default:
		f.locker.engine.Leave()
		f.done(pool.Reply{}, f.locker.engine.NoQuorum(&f.missing, "no quorum answered alike; each master that answered has run the command"))
	}
}
