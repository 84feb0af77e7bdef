// acquireCall and ballot: one lock, from the request to the grant.

package redlock

import (
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// acquireCall is one request for a lock. It may take several ballots.
type acquireCall struct {
	locker  *Locker
	group   *pool.Group
	request LockRequest
	began   time.Duration
	tries   int
	done    LockDone
	others  []*acquireCall // calls that wait for this call's outcome, see hotkey.go
	first   ballot         // most requests need only one
	// downgrading is set once a master has been sent the command that makes the writer a
	// reader. That command is never undone, so from then on the token holds at most a reader's
	// lock.
	downgrading atomic.Bool
}

// finish answers the caller, once, and starts the next operation that uses the same token.
func (c *acquireCall) finish(g Grant, err error) {
	l, r := c.locker, &c.request
	l.engine.Leave()
	c.done(g, err)
	if r.bounded() {
		defer l.hot.leave(c)
		c.answerOthers(err)
	}
	if r.Token == "" {
		return
	}
	l.tokenQueue.leave(lockID{r.DB, r.Key, r.Token})
	for i, key := range r.More {
		l.tokenQueue.leave(lockID{r.DB, key, r.tokenOf(i+1, r.Token)})
	}
}

// ballot puts one request to all masters. Every lane answers it exactly once, from several
// goroutines.
type ballot struct {
	call  *acquireCall
	mode  lockMode
	key   string
	rest  []string // further keys, of a request for several
	token Token
	start time.Duration // before anything was queued

	mu              sync.Mutex
	tally           quorum.Tally
	missing         engine.Missing
	fencing         quorum.Fencing
	answered        uint16 // lanes, as bits
	copies          [quorum.MaxMasters]copyState
	ends            [quorum.MaxMasters]int64          // expiry written for each master, ms of its clock
	connectedAt     *[quorum.MaxMasters]time.Duration // connections the command was written for; nil unless the caller chose the token
	wrongType       int                               // masters that hold something that is not a lock
	kept            []keptExpiry                      // the token's copies that a script wants to end earlier
	fresh           bool
	refused         bool // by at least one master
	sharedFenceOpen bool // another seal for the fence is in flight
	over            bool // decided
	won             bool
}

// copyState is what is known about this ballot's copy on one master.
type copyState uint8

const (
	copyNone     copyState = iota // not sent, refused, or not answered yet
	copyMade                      // this ballot made it
	copyMaybe                     // sent, but no answer came
	copyEarlier                   // the token had it before: never undone
	copyUpgraded                  // the token was a reader before and is now the writer
)

var _ pool.Operation = (*ballot)(nil)

// start starts the call now, or when the acquire in flight with the same token ends.
func (c *acquireCall) start(b *Batch) {
	r := &c.request
	switch {
	case r.Token == "":
		c.try(b)
	case len(r.More) > 0:
		c.startInTurn(b, r.sortedIDs())
	default:
		c.locker.tokenQueue.enter(lockID{r.DB, r.Key, r.Token}, b, queuedOperation{holds: true, run: c.try})
	}
}

// try starts the first ballot.
func (c *acquireCall) try(b *Batch) { c.startBallot(b, nil) }

// startBallot starts a ballot in the mode that follows from the last ballot; nil for the first.
// Without a caller's token each ballot has a token of its own. So nothing that an earlier
// ballot made can be mistaken for this one's.
func (c *acquireCall) startBallot(b *Batch, f lockMode) {
	a := &c.first
	if c.tries > 0 {
		a = &ballot{}
	}
	c.tries++
	a.token = c.request.Token
	if a.token == "" {
		a.token = c.locker.options.Tokens()
	} else {
		a.connectedAt = new([quorum.MaxMasters]time.Duration)
	}
	if f == nil {
		f = lockModeOf(&c.request, a.token)
	}
	a.call, a.mode, a.key = c, f, c.locker.engine.MasterKey(c.request.Key)
	for _, key := range c.request.More {
		a.rest = append(a.rest, c.locker.engine.MasterKey(key))
	}
	a.start, a.fresh = c.locker.engine.Recent(), true
	a.tally = quorum.Tally{N: c.locker.engine.Pool.N(), Quorum: c.locker.engine.Pool.Quorum()}
	c.locker.engine.Submit(b, c.group, c.locker.traced(c.request.trace(), a))
}

// Props: in one flush, only other acquires may follow on its keys: those that may hold the keys
// together with it, or those of which at most one counts.
func (a *ballot) Props() pool.Props {
	alone := a.call.request.Mode == Exclusive
	return pool.Props{Key: a.key, Rest: a.rest, Exclusive: true, SharesKey: !alone, SharesFlush: alone, Sealed: true}
}

// Propose notes the fence that this ballot proposes.
func (a *ballot) Propose(fence int64) { a.fencing.Proposal = fence }

// Command writes the command for one master, unless the lease could not be used any more.
func (a *ballot) Command(m *pool.SendContext, c *pool.Command) bool {
	request := &a.call.request
	if m.Now >= quorum.Deadline(a.start, request.TTL) {
		return false
	}
	end := quorum.Expiry(m.Time, request.TTL, a.call.locker.engine.Late)
	a.ends[m.Lane] = end // read only after this lane has answered
	if h := request.Hold; h != nil {
		h.wrote[m.Lane] = max(h.wrote[m.Lane], end)
	}
	if a.connectedAt != nil {
		a.connectedAt[m.Lane] = m.ConnectedAt
	}
	a.mode.command(a, m, c, end)
	return true
}

// Answer counts one vote.
func (a *ballot) Answer(answer pool.Answer) {
	a.mu.Lock()
	v := a.mode.read(a, answer)
	if v.yes && answer.Taken.Void(a.key, a.rest) {
		answer.Seal = pool.Seal{IncarnationID: answer.Seal.IncarnationID, Err: pool.ErrSecondTaker}
	}
	if a.over && !a.won {
		a.mu.Unlock()
		a.giveBackLate(answer.Lane, v.copy)
		return
	}
	a.copies[answer.Lane] = v.copy
	if v.no {
		a.refused = true
	}
	if a.over { // the copy is part of the lease, and the lease's release also reaches this master
		a.mu.Unlock()
		if v.no && a.call.request.Hold != nil {
			a.call.locker.holds.noteCopy(a.ids(), false)
		}
		return
	}
	a.answered |= 1 << answer.Lane
	a.count(answer, v)
	step := a.decide()
	a.mu.Unlock()
	step.run(a)
}

// count counts one answer. A yes counts under a good seal of a master that is not quarantined.
// A no also counts from a quarantined master: it cannot have forgotten what it holds.
func (a *ballot) count(answer pool.Answer, s vote) {
	seal := answer.Seal
	switch {
	case s.yes && seal.Good && !seal.Quarantined:
		a.tally.Yes++
		a.missing.MarkCounted(answer.Lane)
		a.fencing.Voted(engine.IntervalOf(answer.Lane, seal))
	case s.no && seal.Good:
		a.tally.No++
		a.missing.MarkCounted(answer.Lane)
	default:
		a.tally.Uncounted++
		a.missing.MarkMissing(answer.Lane, a.call.locker.engine.Pool.Absence(&answer))
	}
	if s.wrongType {
		a.wrongType++
	}
	if s.copy == copyEarlier || s.hadCopy {
		a.fresh = false
	}
}

// ballotStep is the next action. It is taken after the ballot's lock is released.
type ballotStep struct {
	fence     int64 // > 0: granted with this fence
	fail      quorum.Result
	raise     []int         // lanes whose register must be raised first
	sealAhead time.Duration // > 0: another seal first, with a proposal this far ahead
}

// decide evaluates the votes so far. At most one caller ever gets an outcome.
func (a *ballot) decide() ballotStep {
	v := a.tally.Result()
	mode := a.mode
	if f, ok := mode.(*fairMode); ok {
		mode = f.lockMode
	}
	if r, ok := mode.(*sharedMode); ok && v == quorum.Undecided && r.downgradesNext(a) {
		v = quorum.Split
	}
	switch v {
	case quorum.Undecided:
		return ballotStep{}
	case quorum.Granted:
		if a.call.request.Mode != Exclusive && !pool.Broken(pool.RuleOneSeal) {
			return a.chooseSharedFenceLocked()
		}
		fence, lanes, impossible := a.fencing.Choose(a.tally.Quorum, a.tally.Pending())
		a.over, a.won = fence > 0 || impossible, fence > 0
		if impossible {
			return ballotStep{fail: quorum.Unknown}
		}
		return ballotStep{fence: fence, raise: lanes}
	default:
		a.over = true
		return ballotStep{fail: v}
	}
}

func (n ballotStep) run(a *ballot) {
	switch {
	case n.fence > 0:
		a.grant(n.fence)
	case len(n.raise) > 0:
		engine.RaiseRegisters(a.call.group, n.raise, a.onRaised)
	case n.sealAhead > 0:
		a.sealAhead(n.sealAhead)
	case n.fail != quorum.Undecided:
		a.fail(n.fail)
	}
}

// onRaised takes the answer of a further seal for the fence.
func (a *ballot) onRaised(lane int, seal pool.Seal) {
	a.mu.Lock()
	a.fencing.Raised(engine.IntervalOf(lane, seal), seal.Good)
	if a.over {
		a.mu.Unlock()
		return
	}
	step := a.decide()
	a.mu.Unlock()
	step.run(a)
}

func (a *ballot) grant(fence int64) {
	l, r := a.call.locker, &a.call.request
	now := l.engine.Recent() // the reply reads the clock again before it promises anything
	g := Grant{
		Key: r.Key, More: r.More, Token: a.token, Fence: Fence(fence), Fresh: a.fresh,
		db: r.DB, mode: r.Mode, until: quorum.Deadline(a.start, r.TTL), ttl: r.TTL, start: a.start, clock: l.engine.Clock,
	}
	if g.until <= now {
		a.takeBack()
		l.engine.Counts.Expired.Add(1)
		a.call.finish(Grant{}, &Expired{Elapsed: now - a.start, TTL: r.TTL})
		return
	}
	if r.Token != "" {
		g.ballot = a
	}
	known := leaseRecord{until: g.until, gone: a.start + r.TTL + l.engine.MasterTimeout + l.engine.Late, copies: a.lanesWithCopy(), mode: r.Mode, fence: g.Fence}
	l.leases.note(lockID{r.DB, r.Key, a.token}, known, now)
	l.events.emit(EventAcquired, lockID{r.DB, r.Key, a.token}, g.Fence, known.gone-now)
	for i, key := range r.More {
		id := lockID{r.DB, key, r.tokenOf(i+1, a.token)}
		l.leases.note(id, known, now)
		l.events.emit(EventAcquired, id, g.Fence, known.gone-now)
	}
	if r.Hold != nil {
		g.Hold = l.hold(g, a, r.Hold)
	}
	l.noteGrant(r, &g)
	if r.Script != nil {
		l.shorten(a.call.group, a.kept, g.until, a.ids()...)
	}
	l.engine.Counts.Acquired.Add(1)
	if a.fencing.Rounds > 0 {
		l.engine.Counts.SecondSeals.Add(1)
	}
	if a.fencing.Rounds > 1 {
		l.engine.Counts.ThirdSeals.Add(1)
	}
	a.call.finish(g, nil)
}

// ids are the leases of the request's keys.
func (a *ballot) ids() []lockID {
	r := &a.call.request
	ids := []lockID{{r.DB, r.Key, a.token}}
	for i, key := range r.More {
		ids = append(ids, lockID{r.DB, key, r.tokenOf(i+1, a.token)})
	}
	return ids
}

// lanesWithCopy are the masters that may have a copy: those that made one, gave an unclear
// answer, or have not answered yet.
func (a *ballot) lanesWithCopy() uint16 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var lanes uint16
	for lane := range a.tally.N {
		if a.copies[lane] != copyNone || a.answered&(1<<lane) == 0 {
			lanes |= 1 << lane
		}
	}
	return lanes
}

// copiedEverywhere reports whether every master is known to have a copy.
func (a *ballot) copiedEverywhere() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.copies[:a.tally.N] {
		if c == copyNone || c == copyMaybe {
			return false
		}
	}
	return true
}

// wasRefused reports whether some master has a copy of another token.
func (a *ballot) wasRefused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}
