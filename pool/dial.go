// Dials: from an ended connection to one whose master may vote.

package pool

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var errNoClocks = errors.New("waits for the clocks of a quorum of masters")

// minRetryDelay is also the interval between dials of a server that does not answer: they
// cost next to nothing, and clients wait for the server. With it a quorum that returned
// granted again after 7 to 40 ms; with delays that doubled, after 137 to 634 ms.
// A server that answers and is unfit waits for its operator.
const (
	firstRetry = 25 * time.Millisecond
	lastRetry  = time.Second
)

// retryLimit is the longest delay between two dials.
func patienceWith(cause error) time.Duration {
	var reason *unfit
	var reply *rueidis.RedisError
	if errors.As(cause, &reason) || errors.As(cause, &reply) {
		return lastRetry
	}
	return firstRetry
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
	delay := min(patienceWith(cause), firstRetry<<min(l.attempts, 8))
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
	ctx, cancel := context.WithTimeout(context.Background(), 2*g.pool.patience())
	defer cancel()
	link, err := g.pool.dial(ctx, l.master, g.db)
	var c *connection
	if err == nil {
		if c, err = l.prove(ctx, link); err != nil {
			link.Close()
		}
	}
	if err != nil {
		l.refused(err)
		return
	}
	l.welcome(c)
}

// dialFailed records why the attempt failed and answers the operations that waited for it.
func (l *lane) refused(err error) {
	g := l.group
	state := stateDown
	var reason *unfit
	if errors.As(err, &reason) {
		state = stateRefused
	}
	g.mu.Lock()
	changed := l.cause == nil || l.cause.Error() != err.Error() || l.state != state
	newReason := changed && !sameSilence(l.cause, err)
	before := l.since
	again := l.state == state && !changed
	l.downLocked(state, err)
	if again {
		l.since = before
	}
	l.tried, l.claim = true, ""
	l.attempts++
	g.recalledLocked()
	queued := l.handOverLocked(nil)
	closed := g.closed
	if newReason && l.notice.told == toldAbsent {
		l.tellAbsentLocked(err)
	} else {
		l.absentLocked(err)
	}
	g.mu.Unlock()
	l.said.silence(queued)
	for _, e := range queued {
		g.answer(e.op, Answer{Lane: l.index, Reply: Reply{Kind: ReplyError, Err: err}})
	}
	if closed {
		return
	}
	l.dialSoon(err)
}

// verify checks the server's identity and admits the connection.
func (l *lane) prove(ctx context.Context, link Link) (*connection, error) {
	g := l.group
	if g.pool.embedded() {
		return l.proveEmbedded(link)
	}
	f, err := probe(link, g.pool.options.Clock)
	if err != nil {
		return nil, l.quarantineEvicting(link, f, err)
	}
	if err := l.meet(f); err != nil {
		return nil, err
	}
	if err := l.recall(link); err != nil {
		return nil, err
	}
	if !g.pool.tasks.Await(ctx, g.ready) {
		return nil, errNoClocks
	}
	if !g.pool.tasks.Await(ctx, g.records) {
		return nil, errNoRecords
	}
	a, err := l.admitOnce(link, f)
	if err != nil {
		return nil, err
	}
	if err := l.endPredecessor(link, f); err != nil {
		return nil, err
	}
	if err := load(link, g.pool.scripts); err != nil {
		return nil, err
	}
	return l.connected(link, f, a), nil
}

// identify stores the server's run_id and clock, and refuses a server that
// is another master already.
func (l *lane) meet(f facts) error {
	g := l.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.lanes {
		if other != l && other.claim == f.runID && !Broken(RuleDistinct) {
			return unfitf("is the same server as master %s (run_id %s): every master must be a server of its own", other.master.Name, f.runID)
		}
	}
	l.claim, l.version, l.volatile = f.runID, f.version, f.volatile
	if l.est.known && l.life != nil {
		// A clock that stepped while this daemon was not connected has stepped all the same.
		now := g.now()
		if off := abs(f.est.at(now) - l.est.at(now)); off > micros(minStep)+l.est.spread(now)+f.est.err {
			g.pool.options.Logger.Warn("clock of a master stepped between two connections",
				"master", l.master.Name, "by_ms", off/1000)
			l.retire = l.life.Identity
			g.counters.Latched++
		}
	}
	if reset := l.resetLocked(f.commands); reset != nil && l.life != nil && l.lastRun == f.runID {
		g.pool.options.Logger.Warn("incarnation invalidated", "master", l.master.Name, "db", g.db, "err", reset.Error())
		l.retire = l.life.Identity
		g.counters.Latched++
	}
	l.est = f.est
	g.reclockLocked()
	return nil
}

// admitOnce runs the admission. An incarnation whose register lies below what this daemon
// has seen acknowledged, or what the other masters have recorded, was rolled back and is
// invalidated. That includes an incarnation earlier than the last one that this daemon
// admitted: a new incarnation begins above the register of the one before.
func (l *lane) admitOnce(link Link, f facts) (admission, error) {
	g := l.group
	for range admissions {
		g.mu.Lock()
		least := l.leastLocked()
		r := admissionRequest{clock: g.medianLocked(g.now()), durable: l.durable(f), retire: l.retire, floor: max(g.hybrid.seen, least)}
		g.mu.Unlock()
		a, err := g.admit(link, l.master.Name, r)
		if err != nil {
			return a, err
		}
		if a.life.Identity != r.retire && (a.score >= least || Broken(RuleGreater)) {
			return a, nil
		}
		g.mu.Lock()
		l.retire = a.life.Identity
		g.counters.Latched++
		g.mu.Unlock()
		g.pool.options.Logger.Warn("master lost acknowledged writes; quarantined as a new incarnation",
			"master", l.master.Name, "register", a.score, "acknowledged", least)
	}
	return admission{}, unfitf("every new incarnation of it begins with too low a register, %d times: its register is damaged; stop all daemons, delete %s on this master, start again", admissions, g.sealKey)
}

// durable is what the admission receives: what CONFIG answers, or the operator's
// assurance where CONFIG is forbidden.
func (l *lane) durable(f facts) bool {
	return f.volatile == "" || l.group.pool.options.AssumeDurable && f.volatile == configRefused
}

// endPredecessor makes sure that nothing of an earlier connection of this lane
// is executed any more. Only on the same process: CLIENT IDs restart with it.
func (l *lane) endPredecessor(link Link, f facts) error {
	l.group.mu.Lock()
	id, run := l.lastID, l.lastRun
	l.group.mu.Unlock()
	if id == 0 || run != f.runID {
		return nil
	}
	replies := link.Exchange([]Command{{[]string{"CLIENT", "KILL", "ID", strconv.FormatInt(id, 10)}}}, nil)
	if err := gone(replies, 1); err != nil {
		return err
	}
	if err := replies[0].Err; err != nil {
		return unfitf("CLIENT KILL is refused (%v): allow the commands of the documented ACL", err)
	}
	return nil
}

func (l *lane) connected(link Link, f facts, a admission) *connection {
	g := l.group
	c := &connection{lane: l, link: link, life: a.life, met: g.now()}
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.life == nil || l.life.Lineage != a.life.Lineage {
		g.counters.NewLives++
		clear(l.filed) // the records that it held may be lost with the incarnation before
	}
	if a.score <= tooHigh { // otherwise the register is damaged, as its seal will show
		l.acked = max(l.acked, a.score)
	}
	l.lastID, l.lastRun, l.life, l.retire = f.clientID, f.runID, a.life, ""
	l.gain.restart(c.met, l.est.offset+l.est.spread(c.met), l.budget()) // this daemon has not watched its clock
	return c
}

// activate puts the connection to work: first the pending releases, then what is to be
// repeated, then what waits.
func (l *lane) welcome(c *connection) {
	g := l.group
	c.watch = g.pool.options.Clock.AfterFunc(g.pool.options.MasterTimeout, c.stalled)
	c.armed = true
	again := g.again()
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		c.watch.Stop()
		c.link.Close()
		l.refused(errClosed)
		return
	}
	g.counters.Admissions++
	l.conn, l.state, l.cause, l.since = c, stateUp, nil, g.now()
	l.tried, l.attempts, l.proved, l.ailing = true, 0, 0, nil
	l.againFirstLocked(again)
	l.duesFirstLocked()
	l.beat = true
	wait := l.quarantineLocked()
	if wait > 0 { // before the lane wakes: the log has it in front of the first vote
		l.notice = notice{toldAbsent, max(g.now(), 1)}
		g.pool.options.Logger.Warn("master admitted, but "+young(wait), "master", l.master.Name, "db", g.db, "incarnation", c.life.Lineage)
	}
	l.wakeLocked()
	g.mu.Unlock()
}

// votingLocked reports whether the master's consent counts as far as is known.
func (l *lane) votingLocked(now time.Duration) bool {
	return l.conn != nil && l.suspect == nil && l.ailing == nil && l.conn.life.votes(l.est.at(now), l.group.pool.options.age())
}
