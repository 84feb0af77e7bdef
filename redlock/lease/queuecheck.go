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
	"time"

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
		keys = append(keys, l.engine.KeyOf("q:", key), l.engine.KeyOf("qx:", key), l.engine.KeyOf("qw:", key))
	}
	return keys
}

// queueCheck is a part of the modes whose scripts check the queue.
type queueCheck struct {
	sameAgain
	keys    []string // see QueueKeys; nil = the script of the mode checks them itself
	behind  int      // masters where another waiter is ahead; the ballot's lock guards it
	foreign int      // masters where the queue is other data; likewise
}

func newQueueCheck(a *lockBallot) queueCheck {
	return queueCheck{keys: a.call.leases.QueueKeys(&a.call.request)}
}

// again is the check of the next ballot.
func (q *queueCheck) again() queueCheck { return queueCheck{keys: q.keys} }

// Ticket is a place in a queue.
type Ticket struct {
	ID     string
	Number int64         // 0 until it is established
	Since  time.Duration // when that was
}

// enqueued is a mode with a place in the queue, or of a wait.
type enqueued struct {
	Mode
	ticket *Ticket
	waiter bool
}

func (e *enqueued) waits() bool                 { return e.waiter }
func (e *enqueued) bounded(r *LockRequest) bool { return !e.waiter && e.Mode.bounded(r) }

// Waiting is the mode of a request that a wait repeats, with its place in the queue if it has one.
func Waiting(m Mode, t *Ticket) Mode { return &enqueued{withoutPlace(m), t, true} }

// Enqueued is a mode of a request that has a place in the queue; without one, t is nil.
func Enqueued(m Mode, t *Ticket) Mode {
	if m = withoutPlace(m); t == nil {
		return m
	}
	return &enqueued{m, t, false}
}

func withoutPlace(m Mode) Mode {
	switch e, ok := m.(*enqueued); {
	case ok:
		return e.Mode
	case m == nil:
		return exclusive
	}
	return m
}

func ticketOf(m Mode) *Ticket {
	if e, ok := m.(*enqueued); ok {
		return e.ticket
	}
	return nil
}

// Ticket is the place of the request in the queue; nil = it has none.
func (r *LockRequest) Ticket() *Ticket { return ticketOf(r.Mode) }

// isFresh reports whether no master can know the ballot's token, or a place of the request in the queue.
func isFresh(a *lockBallot) bool {
	return a.call.request.Token == "" && ticketOf(a.call.request.Mode) == nil
}

// Writes reports whether the request waits in a queue as a writer does, for all before it.
func (r *LockRequest) Writes() bool { return r.Kind() != Shared || LevelOwner(r.Mode) != "" }

// precede makes the lock script of a command check the queue first.
func (q *queueCheck) precede(a *lockBallot, c *pool.Command) {
	if q.keys == nil {
		return
	}
	r := &a.call.request
	ticket, id := "", ""
	if t := ticketOf(r.Mode); t != nil {
		ticket, id = strconv.FormatInt(t.Number, 10), t.ID
	}
	locks := 1 + len(r.More)
	c.Args[1], c.Args[2] = a.call.leases.engine.Scripts.Fair[c.Args[1]], strconv.Itoa(locks+len(q.keys))
	c.Args = slices.Insert(c.Args, 3+locks, q.keys...)
	c.Args = append(c.Args, ticket, id, engine.Flag(r.Writes()), strconv.Itoa(locks))
}

// group puts the queues beside the key of a bulk.
func (q *queueCheck) group(a *lockBallot, c *pool.BulkCall) { c.Group(a.key, q.keys) }

// refuses notes what a master's answer shows of the queue, and reports whether another waiter is ahead.
func (q *queueCheck) refuses(r pool.Reply) bool {
	switch {
	case engine.IsWrongType(r): // the lock scripts look at the lock's type first
		q.foreign++
		return false
	case r.Err != nil || len(r.Items) != 1 || r.Items[0].Int != -2:
		return false
	}
	q.behind++
	return true
}

// refused is ErrHeld or, if that may be why, ErrBehind.
func (q *queueCheck) refused(a *lockBallot, v quorum.Result) error {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	if q.behind > 0 && v != quorum.Split {
		return ErrBehind
	}
	return engine.ErrHeld
}

// isForeign reports whether most masters have other data in the place of the queue.
func (q *queueCheck) isForeign(a *lockBallot) bool {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	t := &a.ballot.Tally
	return q.foreign > t.N-t.Quorum
}

func (q *queueCheck) undecided(a *lockBallot, note string) error {
	if q.isForeign(a) {
		return &engine.ForeignData{Keys: a.call.leases.QueueKeys(&a.call.request)}
	}
	return a.ballot.NoQuorum(note)
}

func (q *queueCheck) repeats(a *lockBallot) bool { return !q.isForeign(a) }
