// One lock, from the request to the grant.
package redlock

import (
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// acquire is a request for a lock over all of its attempts.
type acquire struct {
	locker  *Locker
	group   *pool.Group
	request LockRequest
	began   time.Duration
	tries   int
	done    LockDone
	others  []*acquire // what waits for the outcome, see hotkey.go
	first   attempt    // most requests need only one
	// stepping: a master has been asked to make the writer a reader. That is never
	// undone, so whatever comes of it, the lock is at most a reader's.
	stepping atomic.Bool
}

// finish tells the caller, once, and lets the next one with the same token in.
func (c *acquire) finish(g Grant, err error) {
	l, r := c.locker, &c.request
	l.leave()
	c.done(g, err)
	if r.bounded() {
		defer l.hot.left(c)
		c.answerOthers(err)
	}
	if r.Token == "" {
		return
	}
	l.turns.leave(lockID{r.DB, r.Key, r.Token})
	for i, key := range r.More {
		l.turns.leave(lockID{r.DB, key, r.tokenOf(i+1, r.Token)})
	}
}

// attempt is one ballot of all masters. It is answered by every lane exactly
// once, from several goroutines.
type attempt struct {
	call  *acquire
	form  form
	key   string
	rest  []string // further keys, of a request for several
	token Token
	start time.Duration // before anything was queued

	mu       sync.Mutex
	tally    tally
	missing  missing
	fencing  fencing
	answered uint16 // lanes, as bits
	copies   [maxMasters]copyState
	ends     [maxMasters]int64          // expiry written for each master, ms of its clock
	met      *[maxMasters]time.Duration // the connections it was written for; of a caller's token
	odd      int                        // masters that hold something that is not a lock
	kept     []keptEnd                  // of the token's copies that a script wants to end earlier
	fresh    bool
	refused  bool // by a master at least
	claiming bool // one more seal for the fence is under way
	over     bool // decided
	won      bool
}

// copyState is what is known about this attempt's copy on one master.
type copyState uint8

const (
	copyNone     copyState = iota // not asked, refused, or not answered yet
	copyMade                      // this attempt made it
	copyMaybe                     // asked, and no answer came
	copyEarlier                   // the token's from before: never to be undone
	copyUpgraded                  // the token's reader from before, made the writer
)

var _ pool.Operation = (*attempt)(nil)

// start begins now, or when an acquire in flight with the same token is over.
func (c *acquire) start(b *Batch) {
	r := &c.request
	switch {
	case r.Token == "":
		c.try(b)
	case len(r.More) > 0:
		c.inTurn(b, r.sortedIDs())
	default:
		c.locker.turns.take(lockID{r.DB, r.Key, r.Token}, b, turn{holds: true, run: c.try})
	}
}

// try starts the first attempt.
func (c *acquire) try(b *Batch) { c.attempt(b, nil) }

// attempt starts one, in the form that follows from the last one; nil for the
// first. Without a caller's token each attempt has a token of its own, so that
// nothing of an earlier one can be mistaken for it.
func (c *acquire) attempt(b *Batch, f form) {
	a := &c.first
	if c.tries > 0 {
		a = &attempt{}
	}
	c.tries++
	a.token = c.request.Token
	if a.token == "" {
		a.token = c.locker.options.Tokens()
	} else {
		a.met = new([maxMasters]time.Duration)
	}
	if f == nil {
		f = formOf(&c.request, a.token)
	}
	a.call, a.form, a.key = c, f, c.locker.masterKey(c.request.Key)
	for _, key := range c.request.More {
		a.rest = append(a.rest, c.locker.masterKey(key))
	}
	a.start, a.fresh = c.locker.recent(), true
	a.tally = tally{n: c.locker.pool.N(), quorum: c.locker.pool.Quorum()}
	c.locker.submit(b, c.group, c.locker.watch(c.request.trace(), a))
}

// Plan: only other acquires may follow on its keys in one flush: those beside which
// it holds them, or those of which one at most counts.
func (a *attempt) Plan() pool.Plan {
	alone := a.call.request.Mode == Exclusive
	return pool.Plan{Key: a.key, Rest: a.rest, Takes: true, Joins: !alone, Shares: alone, Sealed: true}
}

// Propose notes the fence this attempt would like.
func (a *attempt) Propose(fence int64) { a.fencing.proposal = fence }

// Command asks one master, unless the lease could not be used any more.
func (a *attempt) Command(m *pool.Moment, c *pool.Command) bool {
	request := &a.call.request
	if m.Now >= deadline(a.start, request.TTL) {
		return false
	}
	end := expiry(m.Time, request.TTL, a.call.locker.late)
	a.ends[m.Lane] = end // read only after this lane has answered
	if h := request.Hold; h != nil {
		h.wrote[m.Lane] = max(h.wrote[m.Lane], end)
	}
	if a.met != nil {
		a.met[m.Lane] = m.Met
	}
	a.form.command(a, m, c, end)
	return true
}

// Answer counts one vote.
func (a *attempt) Answer(answer pool.Answer) {
	a.mu.Lock()
	said := a.form.read(a, answer)
	if said.took && answer.Taken.Void(a.key, a.rest) {
		answer.Seal = pool.Seal{Lineage: answer.Seal.Lineage, Err: pool.ErrSecondTaker}
	}
	if a.over && !a.won {
		a.mu.Unlock()
		a.giveBackLate(answer.Lane, said.copy)
		return
	}
	a.copies[answer.Lane] = said.copy
	if said.refused {
		a.refused = true
	}
	if a.over { // part of the lease: its release will reach this master, too
		a.mu.Unlock()
		if said.refused && a.call.request.Hold != nil {
			a.call.locker.holds.heard(a.ids(), false)
		}
		return
	}
	a.answered |= 1 << answer.Lane
	a.count(answer, said)
	step := a.decide()
	a.mu.Unlock()
	step.run(a)
}

// count: a consent counts under a good seal of a master that is old enough; a
// refusal is believed from a young one, too: what it holds it cannot have forgotten.
func (a *attempt) count(answer pool.Answer, s said) {
	seal := answer.Seal
	switch {
	case s.took && seal.Good && !seal.Young:
		a.tally.yes++
		a.missing.counts(answer.Lane)
		a.fencing.voted(answer.Lane, seal)
	case s.refused && seal.Good:
		a.tally.no++
		a.missing.counts(answer.Lane)
		if pool.Broken(pool.RuleFenceVote) {
			a.fencing.voted(answer.Lane, seal)
		}
	default:
		a.tally.silent++
		a.missing.lacks(answer.Lane, a.call.locker.pool.Absence(&answer))
	}
	if s.odd {
		a.odd++
	}
	if s.copy == copyEarlier || s.repeats {
		a.fresh = false
	}
}

// next is what has to happen once the attempt's lock is released.
type next struct {
	fence int64 // > 0: granted with it
	fail  verdict
	raise []int         // lanes whose register must be raised first
	claim time.Duration // > 0: one more seal first, with a proposal so far ahead
}

// decide looks at the votes so far. At most one caller ever gets an outcome.
func (a *attempt) decide() next {
	v := a.tally.verdict()
	asked := a.form
	if f, ok := asked.(*fairly); ok {
		asked = f.form
	}
	if r, ok := asked.(*reader); ok && v == undecided && r.stepsNext(a) {
		v = split
	}
	switch v {
	case undecided:
		return next{}
	case granted:
		if a.call.request.Mode != Exclusive && !pool.Broken(pool.RuleOneSeal) {
			return a.claimLocked()
		}
		fence, lanes, hopeless := a.fencing.choose(a.tally.quorum, a.tally.pending())
		a.over, a.won = fence > 0 || hopeless, fence > 0
		if hopeless {
			return next{fail: unknown}
		}
		return next{fence: fence, raise: lanes}
	default:
		a.over = true
		return next{fail: v}
	}
}

func (n next) run(a *attempt) {
	switch {
	case n.fence > 0:
		a.grant(n.fence)
	case len(n.raise) > 0:
		raise(a.call.group, n.raise, a.lifted)
	case n.claim > 0:
		a.call.locker.submit(nil, a.call.group, &claim{attempt: a, ahead: n.claim.Microseconds()})
	case n.fail != undecided:
		a.fail(n.fail)
	}
}

// lifted takes the answer of a further seal for the fence.
func (a *attempt) lifted(lane int, seal pool.Seal) {
	a.mu.Lock()
	a.fencing.lifted(lane, seal)
	if a.over {
		a.mu.Unlock()
		return
	}
	step := a.decide()
	a.mu.Unlock()
	step.run(a)
}

func (a *attempt) grant(fence int64) {
	l, r := a.call.locker, &a.call.request
	now := l.recent() // the reply looks at the clock again before it promises anything
	g := Grant{
		Key: r.Key, More: r.More, Token: a.token, Fence: Fence(fence), Fresh: a.fresh,
		db: r.DB, mode: r.Mode, until: deadline(a.start, r.TTL), ttl: r.TTL, start: a.start, clock: l.clock,
	}
	if g.until <= now {
		a.takeBack()
		l.counts.expired.Add(1)
		a.call.finish(Grant{}, &Expired{Elapsed: now - a.start, TTL: r.TTL})
		return
	}
	if r.Token != "" {
		g.attempt = a
	}
	known := lease{until: g.until, gone: a.start + r.TTL + 2*l.late, copies: a.holders(), mode: r.Mode, fence: g.Fence}
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
	l.describe(r, &g)
	if r.Script != nil {
		l.trim(a.call.group, a.kept, g.until, a.ids()...)
	}
	l.counts.acquired.Add(1)
	if a.fencing.rounds > 0 {
		l.counts.secondSeals.Add(1)
	}
	if a.fencing.rounds > 1 {
		l.counts.thirdSeals.Add(1)
	}
	a.call.finish(g, nil)
}

// ids are the leases of the request's keys.
func (a *attempt) ids() []lockID {
	r := &a.call.request
	ids := []lockID{{r.DB, r.Key, a.token}}
	for i, key := range r.More {
		ids = append(ids, lockID{r.DB, key, r.tokenOf(i+1, a.token)})
	}
	return ids
}

// holders are the masters that may have a copy: those that made one, did not
// say, or have not answered yet.
func (a *attempt) holders() uint16 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var lanes uint16
	for lane := range a.tally.n {
		if a.copies[lane] != copyNone || a.answered&(1<<lane) == 0 {
			lanes |= 1 << lane
		}
	}
	return lanes
}

// everywhere tells whether every master is known to have a copy.
func (a *attempt) everywhere() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.copies[:a.tally.n] {
		if c == copyNone || c == copyMaybe {
			return false
		}
	}
	return true
}

// wasRefused tells whether somebody else has a copy on some master.
func (a *attempt) wasRefused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}
