// fairMode refuses requests that are not the first of the queue.

package lease

import (
	"errors"
	"fmt"
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// ErrBehind: refused because another waiter is ahead in the queue.
var ErrBehind = fmt.Errorf("%w, or another waiter is ahead in the queue", engine.ErrHeld)

// QueueKeys are the keys of the queues of a request.
func (l *Leases) QueueKeys(r *LockRequest) []string {
	var keys []string
	for _, key := range append([]engine.Key{r.Key}, r.More...) {
		for _, kind := range []string{"q:", "qx:", "qw:"} {
			keys = append(keys, l.engine.KeyOf(kind, key))
		}
	}
	return keys
}

// fairMode is a lockMode that checks the queue first.
type fairMode struct {
	lockMode
	behind int // masters where another waiter is ahead
}

var _ lockMode = (*fairMode)(nil)

func (f *fairMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	f.lockMode.command(a, m, c, end)
	r := &a.call.request
	ticket, id := "", ""
	if r.Ticket != nil {
		ticket, id = strconv.FormatInt(r.Ticket.Number, 10), r.Ticket.ID
	}
	locks := 1 + len(r.More)
	queues := a.call.leases.QueueKeys(r)
	words := append([]string{"EVALSHA", a.call.leases.engine.Scripts.Fair[c.Args[1]], strconv.Itoa(locks + len(queues))}, c.Args[3:3+locks]...)
	words = append(append(words, queues...), c.Args[3+locks:]...)
	c.Set(append(words, ticket, id, engine.Flag(r.Mode != Shared), strconv.Itoa(locks))...)
}

func (f *fairMode) read(a *lockBallot, answer pool.Answer) vote {
	if n := engine.Numbers(answer.Reply); answer.Reply.Err == nil && len(n) == 1 && n[0] == -2 {
		f.behind++
		return vote{no: true}
	}
	return f.lockMode.read(a, answer)
}

func (f *fairMode) after(a *lockBallot, v quorum.Result) (lockMode, error) {
	next, err := f.lockMode.after(a, v)
	a.ballot.Lock()
	behind := f.behind
	a.ballot.Unlock()
	if errors.Is(err, engine.ErrHeld) && behind > 0 {
		err = ErrBehind
	}
	if next == nil {
		return nil, err
	}
	return &fairMode{lockMode: next}, err
}
