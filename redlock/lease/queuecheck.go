// queueCheck checks the queue of FAIR in front of a lock script.
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
// names that must be fair are configured (--fair-keys), and a waiter checks the queue once others
// contend for its key, see package wait.

package lease

import (
	"fmt"
	"slices"
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/engine"
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

// queueCheck is that of one ballot.
type queueCheck struct {
	keys    []string // see QueueKeys; nil = the script of the mode checks them itself
	behind  int      // masters where another waiter is ahead; the ballot's lock guards it
	foreign int      // masters where the queue is other data; likewise
}

// precede makes the lock script of a command check the queue first.
func (q *queueCheck) precede(a *lockBallot, c *pool.Command) {
	r := &a.call.request
	ticket, id := "", ""
	if r.Ticket != nil {
		ticket, id = strconv.FormatInt(r.Ticket.Number, 10), r.Ticket.ID
	}
	locks := 1 + len(r.More)
	c.Args[1], c.Args[2] = a.call.leases.engine.Scripts.Fair[c.Args[1]], strconv.Itoa(locks+len(q.keys))
	c.Args = slices.Insert(c.Args, 3+locks, q.keys...)
	c.Args = append(c.Args, ticket, id, engine.Flag(r.Writes()), strconv.Itoa(locks))
}

// refuses notes what a master's answer shows of the queue, and reports whether another waiter is ahead.
func (q *queueCheck) refuses(r pool.Reply) bool {
	switch {
	case q == nil:
		return false
	case engine.IsWrongType(r): // the lock scripts look at the lock's type first
		q.foreign++
		return false
	case r.Err != nil || len(r.Items) != 1 || r.Items[0].Int != -2:
		return false
	}
	q.behind++
	return true
}

// foreignQueue is the error if most masters have other data in the place of the queue.
func (a *lockBallot) foreignQueue() error {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	if t := &a.ballot.Tally; a.queue == nil || a.call.downgrading.Load() || a.queue.foreign <= t.N-t.Quorum {
		return nil
	}
	return &engine.ForeignData{Keys: a.call.leases.QueueKeys(&a.call.request)}
}
