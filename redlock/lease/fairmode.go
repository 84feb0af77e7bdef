// fairMode checks the queue of FAIR in front of a lock script.
//
// Every script that takes a lock checks it, with FAIR and without: once a queue is
// established on a quorum, no such request passes it. While there is no queue, that costs one EXISTS
// in a script that runs anyway. A plain SET NX does not check it, because it is the hot path and the
// command of all other Redlock clients. It can pass the queue only in the moments at which the key
// is free, in which the first of the queue contends, too.
//
// A marker at the key, in the place of a lock that ends while a queue is there, would refuse
// every SET NX, but it does not hold what it seems to promise. Nothing writes it when a lock
// expires, or when another Redlock client releases it. Each release of redlockd would have to look
// for a queue: that is the other half of the hot path. A marker of a daemon that died would
// refuse clients that do not use queues, and look to them like a lock without a holder. So
// names that must be fair are configured (--fair-keys), and waiters check the queue after
// some hand-overs, see package wait.

package lease

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
	"redlockd/redlock/scripts"
)

// ErrBehind: refused because another waiter is ahead in the queue.
var ErrBehind = fmt.Errorf("%w, or another waiter is ahead in the queue", engine.ErrHeld)

// QueueKeys are the keys of the queues of a request.
func (l *Leases) QueueKeys(r *LockRequest) []string {
	var keys []string
	for _, key := range append([]engine.Key{r.Key}, r.More...) {
		keys = append(keys, l.engine.KeyOf("q:", key), l.engine.KeyOf("qx:", key), l.engine.KeyOf("qw:", key))
	}
	return keys
}

// fairMode is a lockMode that checks the queue first.
type fairMode struct {
	lockMode
	queues  []string // see QueueKeys; nil = the script of the lockMode checks them itself
	behind  int      // masters where another waiter is ahead
	foreign int      // masters where the queue is other data
}

var _ lockMode = (*fairMode)(nil)

func (f *fairMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	f.lockMode.command(a, m, c, end)
	if f.queues == nil {
		return
	}
	r := &a.call.request
	ticket, id := "", ""
	if r.Ticket != nil {
		ticket, id = strconv.FormatInt(r.Ticket.Number, 10), r.Ticket.ID
	}
	locks := 1 + len(r.More)
	c.Args[1], c.Args[2] = a.call.leases.engine.Scripts.Fair[c.Args[1]], strconv.Itoa(locks+len(f.queues))
	c.Args = slices.Insert(c.Args, 3+locks, f.queues...)
	c.Args = append(c.Args, ticket, id, engine.Flag(r.Writes()), strconv.Itoa(locks))
}

// bulkMode is a lockMode of which several acquires in a flush can be one call of a script.
type bulkMode interface {
	bulkScript(s *scripts.Set) string
	// addToBulk adds the arguments; fairMode has added the keys if it has queues.
	addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64)
}

// bulk is the SHA1 of that script; "" = the acquire has a command of its own.
func (f *fairMode) bulk(a *lockBallot) string {
	if mode, ok := f.lockMode.(bulkMode); ok && a.call.request.isFresh() {
		return mode.bulkScript(a.call.leases.engine.Scripts)
	}
	return ""
}

func (f *fairMode) addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64) {
	if f.queues != nil {
		c.Group(a.key, f.queues)
	}
	f.lockMode.(bulkMode).addToBulk(a, m, c, end)
}

func (f *fairMode) read(a *lockBallot, answer pool.Answer) vote {
	if n := engine.Numbers(answer.Reply); answer.Reply.Err == nil && len(n) == 1 && n[0] == -2 {
		f.behind++
		return vote{no: true}
	}
	if engine.IsWrongType(answer.Reply) { // the lock scripts look at the lock's type first
		f.foreign++
	}
	return f.lockMode.read(a, answer)
}

// foreignQueue is the error if most masters have other data in the place of the queue.
func (a *lockBallot) foreignQueue() error {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	f, ok := a.mode.(*fairMode)
	if t := &a.ballot.Tally; !ok || a.call.downgrading.Load() || f.foreign <= t.N-t.Quorum {
		return nil
	}
	return &engine.ForeignData{Keys: a.call.leases.QueueKeys(&a.call.request)}
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
	return &fairMode{lockMode: next, queues: f.queues}, err
}
