// acquireCall and lockBallot: one lock, from the request to the grant.

package lease

import (
	"errors"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// acquireCall is one request for a lock. It may take several ballots.
type acquireCall struct {
	leases     *Leases
	group      *pool.Group
	request    LockRequest
	began      time.Duration // of this try
	tries      int
	done       LockDone
	others     []*acquireCall // calls that wait for this call's outcome, see hotkey.go
	first      lockBallot     // most requests need only one
	bounded    bool           // it counts among the tries for its key
	turn       turnEnd
	unanswered time.Duration // end of the first ballot that no quorum answered, 0 = none
	copies     uint16        // masters that may get a copy of a failed ballot, as bits: a caller's token is not undone on another connection
}

// finish answers the caller, once, and starts the next operation that uses the same token.
func (c *acquireCall) finish(g Grant, err error) {
	l, r := c.leases, &c.request
	l.engine.Leave()
	c.done(g, err)
	if r.tries() && l.tries != nil {
		l.tries.Ended(r, err)
	}
	if c.bounded {
		defer l.hot.leave(c)
		if errors.Is(err, engine.ErrWrongType) {
			l.refusals.noLock(r.DB, r.Key)
		}
		c.answerOthers(err)
	}
	c.leaveTurn()
}

func (c *acquireCall) leaveTurn() {
	if r := &c.request; r.Token != "" && c.turn.isOver() {
		r.eachLease(r.Token, c.leases.tokenQueue.leave)
	}
}

// lockBallot puts one request to all masters.
type lockBallot struct {
	engine.Plain
	ballot  engine.Ballot
	fencing quorum.Fencing
	call    *acquireCall
	mode    ballotMode
	fences  fencingMode // nil: the ballot chooses its fence
	key     string
	rest    []string // further keys, of a request for several
	token   engine.Token
	start   time.Duration // before anything was queued

	// Guarded by the ballot's lock.
	copies      laneCopies
	ends        [quorum.MaxMasters]int64          // expiry written for each master, ms of its clock
	connectedAt *[quorum.MaxMasters]time.Duration // connections the command was written for; nil unless the caller chose the token
	fresh       bool
	refused     bool // by at least one master
	awaits      bool // the next operation with the token awaits what masters answer after a refusal
	won         bool
}

var _ engine.Question = (*lockBallot)(nil)

// start starts the call now, or when the acquire in flight with the same token ends.
func (c *acquireCall) start(b *engine.Batch) {
	r := &c.request
	switch {
	case r.Token == "":
		c.try(b)
	case len(r.More) > 0:
		c.startInTurn(b, r.sortedIDs())
	default:
		c.leases.tokenQueue.enter(engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Token}, b, queuedOperation{holds: true, run: c.try})
	}
}

// startInTurn starts the call once no other acquire with this token is under way for any
// of the keys. All calls take the keys in one order, so they never wait in a cycle.
func (c *acquireCall) startInTurn(b *engine.Batch, ids []engine.LeaseID) {
	if len(ids) == 0 {
		c.try(b)
		return
	}
	c.leases.tokenQueue.enter(ids[0], b, queuedOperation{holds: true, run: func(b *engine.Batch) {
		c.startInTurn(b, ids[1:])
	}})
}

// try requests the lock, also once more when the masters were too slow.
func (c *acquireCall) try(b *engine.Batch) {
	c.began = c.leases.engine.Recent()
	c.startBallot(b, nil)
}

// startBallot starts a ballot in the mode that follows from the last ballot, or else in that of the request.
// Without a caller's token each ballot has a token of its own. So nothing that an earlier
// ballot made can be mistaken for this one's. A part has the token of the parts before it: what an
// earlier ballot left on a master refuses it there.
func (c *acquireCall) startBallot(b *engine.Batch, f ballotMode) {
	a := &c.first
	if c.tries > 0 {
		a = &lockBallot{}
	}
	c.tries++
	if a.token = c.request.Token; a.token != "" {
		a.connectedAt = new([quorum.MaxMasters]time.Duration)
	} else {
		a.token = c.request.Mode.token(c.leases.tokens())
	}
	a.call, a.key = c, c.leases.engine.MasterKey(c.request.Key)
	for _, key := range c.request.More {
		a.rest = append(a.rest, c.leases.engine.MasterKey(key))
	}
	if a.mode = f; f == nil {
		a.mode = c.request.Mode.ballot(a)
	}
	a.fences, _ = a.mode.(fencingMode)
	a.start, a.fresh = c.leases.engine.Recent(), true
	e, group, trace := c.leases.engine, c.group, c.request.trace()
	if a.fences != nil {
		a.ballot.Ask(e, b, group, trace, a)
		return
	}
	a.ballot.AskFenced(e, b, group, trace, &a.fencing, a)
}

// Props: in one flush, only other acquires may follow on its keys: those that may hold the keys
// together with it, or those of which at most one counts.
func (a *lockBallot) Props() pool.Props {
	alone := a.fences == nil
	p := pool.Props{Key: a.key, Rest: a.rest, Exclusive: true, SharesKey: !alone, SharesFlush: alone, Sealed: true}
	if mode, ok := a.mode.(bulkMode); ok {
		p.Bulk = mode.bulkScript(a, a.call.leases.engine.Scripts)
	}
	return p
}

// BulkToken is the mode's.
func (a *lockBallot) BulkToken() string { return a.mode.bulkToken(a) }

// Command writes the command for one master, unless the lease could not be used any more.
func (a *lockBallot) Command(m *pool.SendContext, c *pool.Command) bool {
	end, usable := a.expiry(m)
	if usable {
		a.mode.command(a, m, c, end)
	}
	return usable
}

// AddToBulk is Command for a bulk.
func (a *lockBallot) AddToBulk(m *pool.SendContext, c *pool.BulkCall) bool {
	end, usable := a.expiry(m)
	if usable {
		a.mode.(bulkMode).addToBulk(a, m, c, end)
	}
	return usable
}

// expiry chooses when the copy on one master ends, unless the lease could not be used any more.
func (a *lockBallot) expiry(m *pool.SendContext) (end int64, usable bool) {
	request := &a.call.request
	if m.Now >= quorum.Deadline(a.start, request.TTL) {
		return 0, false
	}
	end = quorum.Expiry(m.Time, request.lasts(), a.call.leases.engine.Late)
	a.ends[m.Lane] = end // read only after this lane has answered
	if a.connectedAt != nil {
		a.connectedAt[m.Lane] = m.ConnectedAt
	}
	return end, true
}

// read turns one master's answer into a vote, with the ballot's lock held. A second lock of a key
// in one flush does not count.
func (a *lockBallot) read(answer *pool.Answer) vote {
	v := a.mode.read(a, *answer)
	if v.yes && answer.Taken.Void(a.key, a.rest) {
		answer.Seal = pool.Seal{IncarnationID: answer.Seal.IncarnationID, Err: pool.ErrSecondTaker}
	}
	return v
}

// Read: a yes counts under a good seal of a master that is not quarantined. A no also counts
// from a quarantined master: it cannot have forgotten what it holds.
func (a *lockBallot) Read(answer pool.Answer) engine.Reading {
	v := a.read(&answer)
	a.copies.note(answer.Lane, v.copy)
	a.copies.answered |= 1 << answer.Lane
	a.refused, a.awaits = a.refused || v.no, a.awaits || v.awaits
	if v.wrongType {
		a.ballot.WrongType++
	}
	a.fresh = a.fresh && v.isFresh()
	seal := answer.Seal
	switch {
	case v.yes && seal.Good && !seal.Quarantined:
		if a.fences != nil {
			a.fencing.Voted(engine.IntervalOf(answer.Lane, seal))
		}
		return engine.Yes
	case v.no && seal.Good:
		return engine.No
	}
	a.ballot.Missing.MarkMissing(answer.Lane, a.ballot.Engine.Pool.Absence(&answer))
	return engine.Uncounted
}

func (a *lockBallot) Decide(t *quorum.Tally) quorum.Result {
	v := t.Result()
	if r, ok := a.mode.(splitMode); ok && v == quorum.Undecided && r.splits(a) {
		v = quorum.Split
	}
	if v == quorum.Granted && a.fences != nil {
		return a.fences.chooseFenceLocked(a)
	}
	return v
}

// Owned: a lock is of the keys' own group.
func (a *lockBallot) Owned(by func(engine.Key) bool) bool {
	r := &a.call.request
	return by(r.Key) && !slices.ContainsFunc(r.More, func(k engine.Key) bool { return !by(k) })
}

func (a *lockBallot) Decided(v quorum.Result) {
	if v == quorum.Granted {
		a.grant(a.ballot.Fence)
		return
	}
	a.fail(v)
}

// Undecided queues the seal that a mode's fence needs.
func (a *lockBallot) Undecided() {
	if a.fences != nil {
		a.fences.raiseRegisters(a)
	}
}

func (a *lockBallot) IsYes(r pool.Reply) bool {
	return engine.IsYes(r)
}

func (a *lockBallot) grant(fence int64) {
	l, r := a.call.leases, &a.call.request
	now := l.engine.Recent() // the reply reads the clock again before it promises anything
	g := Grant{
		Key: r.Key, More: r.More, Token: a.token, Fence: engine.Fence(fence), Fresh: a.fresh,
		Term: l.engine.NewTerm(a.start, r.TTL), db: r.DB, kind: r.Kind(), linger: r.Linger, made: a,
	}
	if g.Until() <= now {
		a.takeBack()
		l.engine.Counts.Expired.Add(1)
		a.call.finish(Grant{}, &engine.Expired{Elapsed: now - a.start, TTL: r.TTL})
		return
	}
	if g.chosen, g.part = r.Token != "", !r.Mode.announced(); g.chosen || g.part {
		g.ballot = a
	}
	known := leaseRecord{until: g.Until(), gone: l.goneAt(a.start, now, r.lasts()), copies: a.lanesWithCopy() | a.call.copies,
		kind: r.Kind(), linger: r.Linger, fence: g.Fence, granted: now, requester: r.Requester.untraced()}
	r.eachLease(a.token, func(id engine.LeaseID) {
		l.records.note(id, known, now)
		if !g.part {
			l.announce(r, id, known, now)
		}
	})
	if mode, ok := a.mode.(grantedMode); ok {
		mode.granted(a)
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

// announce reports a grant.
func (l *Leases) announce(r *LockRequest, id engine.LeaseID, known leaseRecord, now time.Duration) {
	l.changed(acquired, id, known, known.until, known.gone-now, r)
}

// tokenOf is the token of the i-th key.
func (a *lockBallot) tokenOf(i int) engine.Token { return a.call.request.Mode.tokenOf(i, a.token) }

func (a *lockBallot) ids() (ids []engine.LeaseID) {
	a.call.request.eachLease(a.token, func(id engine.LeaseID) { ids = append(ids, id) })
	return ids
}

// lanesWithCopy are the masters that may have a copy.
func (a *lockBallot) lanesWithCopy() uint16 {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	return a.copies.lanes(a.ballot.Tally.N)
}

// CopiedEverywhere reports whether every master is known to have a copy.
func (a *lockBallot) CopiedEverywhere() bool {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	return a.copies.everywhere(a.ballot.Tally.N)
}

// WasRefused reports whether some master has a copy of another token.
func (a *lockBallot) WasRefused() bool {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	return a.refused
}
