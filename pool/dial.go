// Dials: from an ended connection to one whose master may vote.

package pool

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// minRetryDelay is also the interval between dials of a server that does not answer: they
// cost next to nothing, and clients wait for the server. With it a quorum that returned
// granted again after 7 to 40 ms; with delays that doubled, after 137 to 634 ms.
// A server that answers and is unfit waits for its operator.
const (
	minRetryDelay = 25 * time.Millisecond
	maxRetryDelay = time.Second
)

// retryLimit is the longest delay between two dials.
func retryLimit(cause error) time.Duration {
	var reason *admission.Unfit
	var reply *rueidis.RedisError
	if errors.As(cause, &reason) || errors.As(cause, &reply) {
		return maxRetryDelay
	}
	return minRetryDelay
}

func (l *lane) downLocked(s laneState, cause error) {
	l.state, l.cause, l.since = s, cause, l.group.now()
}

// dialSoon schedules the next dial: at once after an admitted connection ended
// for a reason that a new admission settles, otherwise with growing delays.
func (l *lane) dialSoon(cause error) {
	g := l.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	if l.attempts == 0 && !errors.Is(cause, errStalled) {
		l.submitDialLocked()
		return
	}
	delay := min(retryLimit(cause), minRetryDelay<<min(l.attempts, 8))
	delay = delay/2 + g.pool.Jitter(delay/2+1)
	l.redial = g.pool.options.Clock.AfterFunc(delay, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.closed {
			l.submitDialLocked()
		}
	})
}

func (l *lane) submitDialLocked() {
	g := l.group
	g.counters.Dials++
	g.dialing.Add(1)
	err := g.pool.tasks.Submit(func() {
		defer g.dialing.Done()
		l.dialOnce()
	})
	if err != nil {
		g.dialing.Done()
	}
}

// dialOnce is one attempt, from the socket to the first vote.
func (l *lane) dialOnce() {
	g := l.group
	ctx, cancel := context.WithTimeout(context.Background(), 2*g.pool.dialTimeout())
	defer cancel()
	link, err := g.pool.dial(ctx, l.master, g.db)
	var c *connection
	if err == nil {
		if c, err = l.verify(ctx, link); err != nil {
			link.Close()
		}
	}
	if err != nil {
		l.dialFailed(err)
		return
	}
	l.activate(c)
}

// dialFailed records why the attempt failed and answers the operations that waited for it.
func (l *lane) dialFailed(err error) {
	g := l.group
	state := stateDown
	var reason *admission.Unfit
	if errors.As(err, &reason) {
		state = stateRefused
	}
	g.mu.Lock()
	changed := l.cause == nil || l.cause.Error() != err.Error() || l.state != state
	newReason := changed && !bothTimedOut(l.cause, err)
	before := l.since
	again := l.state == state && !changed
	l.downLocked(state, err)
	if again {
		l.since = before
	}
	l.tried, l.claimedRunID = true, ""
	l.attempts++
	g.checkRecordsReadLocked()
	queued := l.swapQueueLocked(nil)
	closed := g.closed
	if newReason && l.statusLog.logged == loggedAbsent {
		l.logAbsentLocked(err)
	} else {
		l.noteAbsentLocked(err)
	}
	g.mu.Unlock()
	l.votes.addUncounted(queued)
	for _, e := range queued {
		g.answer(e.op, Answer{Lane: l.index, Reply: Reply{Kind: ReplyError, Err: err}})
	}
	if closed {
		return
	}
	l.dialSoon(err)
}

// verify checks the server's identity and admits the connection.
func (l *lane) verify(ctx context.Context, link Link) (*connection, error) {
	g := l.group
	if g.pool.embedded() {
		return l.verifyEmbedded(link)
	}
	f, err := admission.Probe(link, g.pool.options.Clock)
	if err != nil {
		return nil, l.quarantineEvicting(link, f, err)
	}
	if err := l.identify(f); err != nil {
		return nil, err
	}
	if err := l.readRecords(link); err != nil {
		return nil, err
	}
	if !g.pool.tasks.Await(ctx, g.ready) {
		return nil, errNoClocks
	}
	if !g.pool.tasks.Await(ctx, g.recordsRead) {
		return nil, errNoRecords
	}
	a, err := l.admitOnce(link, f)
	if err != nil {
		return nil, err
	}
	if err := l.endPredecessor(link, f); err != nil {
		return nil, err
	}
	if err := admission.LoadScripts(link, g.pool.scripts); err != nil {
		return nil, err
	}
	return l.connected(link, f, a), nil
}

// identify stores the server's run_id and clock, and refuses a server that
// is another master already.
func (l *lane) identify(f admission.ServerInfo) error {
	g := l.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.lanes {
		if other != l && other.claimedRunID == f.RunID {
			return admission.Unfitf("is the same server as master %s (run_id %s): every master must be a server of its own", other.master.Name, f.RunID)
		}
	}
	l.claimedRunID, l.version, l.volatile = f.RunID, f.Version, f.Volatile
	if l.est.Known && l.incarnation != nil {
		// A clock that stepped while this daemon was not connected has stepped all the same.
		now := g.now()
		if off := clock.Abs(f.Est.At(now) - l.est.At(now)); off > clock.Micros(clock.MinStep)+l.est.Spread(now)+f.Est.Err {
			g.pool.options.Logger.Warn("clock of a master stepped between two connections",
				"master", l.master.Name, "by_ms", off/1000)
			l.invalidated = l.incarnation.Identity
			g.counters.Invalidated++
		}
	}
	if reset := l.statsResetLocked(f.Commands); reset != nil && l.incarnation != nil && l.lastRun == f.RunID {
		g.pool.options.Logger.Warn("incarnation invalidated", "master", l.master.Name, "db", g.db, "err", reset.Error())
		l.invalidated = l.incarnation.Identity
		g.counters.Invalidated++
	}
	l.est = f.Est
	g.updateClockLocked()
	return nil
}

// admitOnce runs the admission. An incarnation whose register lies below what this daemon
// has seen acknowledged, or what the other masters have recorded, was rolled back and is
// invalidated. That includes an incarnation earlier than the last one that this daemon
// admitted: a new incarnation begins above the register of the one before.
func (l *lane) admitOnce(link Link, f admission.ServerInfo) (admission.Admission, error) {
	g := l.group
	for range maxAdmissions {
		g.mu.Lock()
		least := l.minRegisterLocked()
		r := admission.Request{Clock: g.medianLocked(g.now()), Durable: l.durable(f), Invalidate: l.invalidated, Floor: max(g.hybrid.Seen, least)}
		g.mu.Unlock()
		a, err := g.admit(link, l.master.Name, r)
		if err != nil {
			return a, err
		}
		if a.Incarnation.Identity != r.Invalidate && a.Score >= least {
			return a, nil
		}
		g.mu.Lock()
		l.invalidated = a.Incarnation.Identity
		g.counters.Invalidated++
		g.mu.Unlock()
		g.pool.options.Logger.Warn("master lost acknowledged writes; quarantined as a new incarnation",
			"master", l.master.Name, "register", a.Score, "acknowledged", least)
	}
	return admission.Admission{}, admission.Unfitf("every new incarnation of it begins with too low a register, %d times: its register is damaged; stop all daemons, delete %s on this master, start again", maxAdmissions, g.sealKey)
}

// admit runs one admission of a master.
func (g *Group) admit(link Link, name string, r admission.Request) (admission.Admission, error) {
	r.SealKey, r.DB, r.Fingerprint = g.sealKey, g.db, forMaster(g.fingerprint, name)
	return admission.Admit(link, r)
}

// durable is what the admission receives: what CONFIG answers, or the operator's
// assurance where CONFIG is forbidden.
func (l *lane) durable(f admission.ServerInfo) bool {
	return f.Volatile == "" || l.group.pool.options.AssumeDurable && f.Volatile == admission.ConfigRefused
}

// endPredecessor makes sure that nothing of an earlier connection of this lane
// is executed any more. Only on the same process: CLIENT IDs restart with it.
func (l *lane) endPredecessor(link Link, f admission.ServerInfo) error {
	l.group.mu.Lock()
	id, run := l.lastID, l.lastRun
	l.group.mu.Unlock()
	if id == 0 || run != f.RunID {
		return nil
	}
	replies := link.Exchange([]Command{{Args: []string{"CLIENT", "KILL", "ID", strconv.FormatInt(id, 10)}}}, nil)
	if err := wire.ExchangeErr(replies, 1); err != nil {
		return err
	}
	if err := replies[0].Err; err != nil {
		return admission.Unfitf("CLIENT KILL is refused (%v): allow the commands of the documented ACL", err)
	}
	return nil
}

func (l *lane) connected(link Link, f admission.ServerInfo, a admission.Admission) *connection {
	g := l.group
	c := &connection{lane: l, link: link, incarnation: a.Incarnation, connectedAt: g.now()}
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.incarnation == nil || l.incarnation.ID != a.Incarnation.ID {
		g.counters.NewIncarnations++
		clear(l.recordsWritten) // the records that it held may be lost with the incarnation before
	}
	if a.Score <= MaxRegister { // otherwise the register is damaged, as its seal will show
		l.acked = max(l.acked, a.Score)
	}
	l.lastID, l.lastRun, l.incarnation, l.invalidated = f.ClientID, f.RunID, a.Incarnation, ""
	l.gain.restart(c.connectedAt, l.est.Offset+l.est.Spread(c.connectedAt), l.budget()) // this daemon has not watched its clock
	return c
}

// activate puts the connection to work: first the pending releases, then what is to be
// repeated, then what waits.
func (l *lane) activate(c *connection) {
	g := l.group
	c.timer = g.pool.options.Clock.AfterFunc(g.pool.options.MasterTimeout, c.onTimer)
	c.armed = true
	again := g.reconnectEntries()
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		c.timer.Stop()
		c.link.Close()
		l.dialFailed(errClosed)
		return
	}
	g.counters.Admissions++
	l.conn, l.state, l.cause, l.since = c, stateUp, nil, g.now()
	l.tried, l.attempts, l.provedAt, l.failing = true, 0, 0, nil
	l.queueFirstLocked(again)
	l.queuePendingFirstLocked()
	l.beat = true
	wait := l.quarantineLocked()
	if wait > 0 { // before the lane wakes: the log has it in front of the first vote
		l.statusLog = statusLog{loggedAbsent, max(g.now(), 1)}
		g.pool.options.Logger.Warn("master admitted, but "+quarantineText(wait), "master", l.master.Name, "db", g.db, "incarnation", c.incarnation.ID)
	}
	l.wakeLocked()
	g.mu.Unlock()
}

// votingLocked reports whether the master's consent counts as far as is known.
func (l *lane) votingLocked(now time.Duration) bool {
	return l.conn != nil && l.anomaly == nil && l.failing == nil && l.conn.incarnation.MayVote(l.est.At(now), l.group.pool.options.Age())
}
