// This file issues ids. Every id is greater than every id whose reply was sent before the
// request for it arrived, over all daemons.
//
// One optimistic round per counter serves all requests that are there when it starts. The
// round proposes the range [X+1, X+n] to every master. A master accepts it if its value
// is below the range, and a quorum of acceptances assigns the range to the round. Two
// successful rounds share a master, and the one that this master accepted later lies
// wholly above the other. X is only a hint. Requests that arrive later join the next
// round: serving them from a range that is already under way would break the order. A
// failed round uses up its range, so gaps are possible.

package redlock

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// IDRequest requests Count consecutive ids of a counter.
type IDRequest struct {
	DB    int
	Name  Key
	Count int64  // 1 … 1 000 000, validated by the caller
	Trace *Trace // receives the votes; may be nil
}

// IDDone receives the first of the ids; see LockDone. Its errors are *NoQuorum,
// *NotDurable, *LostState, *Exhausted, *Busy, ErrWrongType or ErrShutdown.
type IDDone func(first int64, err error)

// idTimeout bounds how long a request competes with other daemons.
const idTimeout = 2 * time.Second

// A master may lose its memory before a round in which it voted is over. An id chosen in
// the same period can be smaller than that round's ids, so it does not show what the
// master forgot. A master therefore adopts only ids chosen when every such round had
// ended. The daemon knows that at no cost: every daemon counts acceptances for
// idRoundTime only, and a master that forgot does not vote for longer than that anyway.
// The margin covers clocks that differ in rate.
const (
	idRoundTime   = 2 * time.Second
	idRoundMargin = idRoundTime / 50
)

// NextID requests ids; done is called exactly once.
func (l *Locker) NextID(b *Batch, r IDRequest, done IDDone) {
	if err := l.engine.Enter(); err != nil {
		done(0, err)
		return
	}
	c := l.ids.get(counterID{r.DB, r.Name}, l)
	c.mu.Lock()
	c.waiting = append(c.waiting, idCaller{r.Count, l.engine.Clock.Now(), done, r.Trace})
	start := !c.running
	c.running = true
	c.mu.Unlock()
	if start {
		l.engine.Submit(b, c.group, c.newRound(0))
	}
}

// idRound is one proposal to all masters.
type idRound struct {
	counter *idCounter
	tries   int

	mu       sync.Mutex
	frozen   bool
	callers  []idCaller
	tooLarge []idCaller // requests for more ids than are left
	lo, hi   int64
	started  time.Duration
	tally    quorum.Tally
	missing  engine.Missing
	high     int64 // highest value that a master reported
	voids    idVoids
	over     bool
	trace    *roundTrace // nil: no request is traced
	early    uint16      // bits: masters that answered before the round was frozen
}

// idVoids counts acceptances that do not count, by reason.
type idVoids struct {
	volatile, untrusted, wrongType int
	quarantinedVolatile            uint16 // bits: quarantined masters that are also volatile
}

var (
	errIDsLate     = errors.New("answered after the time for a round of ids")
	errIDsVolatile = errors.New("is not durable")
	errIDsForgot   = errors.New("may have forgotten the counter")
)

var _ pool.Operation = (*idRound)(nil)

func (c *idCounter) newRound(tries int) *idRound {
	return &idRound{counter: c, tries: tries, tally: quorum.Tally{N: c.locker.engine.Pool.N(), Quorum: c.locker.engine.Pool.Quorum()}}
}

// Props: the order of rounds matters, and an acceptance counts as a vote only with a
// seal.
func (r *idRound) Props() pool.Props {
	return pool.Props{Key: r.counter.key, StartsNew: true, Sealed: true}
}

// Propose does nothing: ids are not fences.
func (r *idRound) Propose(int64) {}

// freeze closes the round for further requests. It runs when the command for the first
// master is written, not when the round is queued: until then nothing has been proposed,
// and arriving requests may join.
func (r *idRound) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.frozen {
		return
	}
	r.frozen = true
	c := r.counter
	r.started = c.locker.engine.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	r.lo = c.highest
	r.hi = c.highest
	for _, caller := range c.waiting {
		if caller.count > math.MaxInt64-r.hi {
			r.tooLarge = append(r.tooLarge, caller)
			continue
		}
		r.hi += caller.count
		r.callers = append(r.callers, caller)
	}
	c.waiting = nil
	r.lo++
	r.announceLocked()
}

// Command proposes the range.
func (r *idRound) Command(m *pool.SendContext, c *pool.Command) bool {
	r.freeze()
	r.mu.Lock()
	lo, hi, empty := r.lo, r.hi, len(r.callers) == 0
	if r.trace != nil {
		r.trace.sent[m.Lane] = m.Now
	}
	r.mu.Unlock()
	if empty {
		return false
	}
	counter := r.counter
	counter.mu.Lock()
	confirmed := int64(0)
	if counter.since > m.ConnectedAt+idRoundTime+idRoundMargin {
		confirmed = counter.confirmed
	}
	counter.mu.Unlock()
	c.Set("EVALSHA", counter.locker.engine.Scripts.NextID, "1", counter.key,
		strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10), m.Incarnation.ID,
		strconv.FormatInt(confirmed, 10), blankIsZero(m.Incarnation))
	return true
}

// blankIsZero reports whether a missing counter counts as zero. That holds only in an
// incarnation that the operator declared to be the first, where no counter can have been
// forgotten.
func blankIsZero(life *pool.Incarnation) string {
	if life.Base == 0 || pool.Broken(pool.RuleTrust) {
		return "1"
	}
	return "0"
}

// Answer counts one master.
func (r *idRound) Answer(a pool.Answer) {
	value := readID(a.Reply)
	r.mu.Lock()
	r.reportLocked(a)
	if r.over { // the code that decided the round reads it without the lock
		r.mu.Unlock()
		return
	}
	r.high = max(r.high, value.number)
	durable := a.Seal.Durable || r.counter.locker.options.VolatileIDs
	inTime := r.counter.locker.engine.Clock.Now()-r.started <= idRoundTime
	good := a.Seal.Good && !a.Seal.Quarantined && inTime
	switch {
	case value.code == 1 && good && durable && value.trusted:
		r.tally.Yes++
		r.missing.MarkCounted(a.Lane)
	case value.code == 0 && a.Seal.Good:
		r.tally.No++
		r.missing.MarkCounted(a.Lane)
	default:
		r.tally.Uncounted++
		r.void(value, good, durable)
		r.missing.MarkMissing(a.Lane, r.absence(&a, value, inTime, durable))
	}
	v := r.tally.Result()
	if v == quorum.Undecided || v == quorum.Unknown && r.tally.Pending() > 0 { // the error lists every missing master
		r.mu.Unlock()
		return
	}
	r.over = true
	refusals := r.tally.No
	r.mu.Unlock()
	if v == quorum.Granted {
		r.succeed()
		return
	}
	r.fail(refusals)
}

func (r *idRound) void(value idValue, good, durable bool) {
	switch {
	case value.code == -1:
		r.voids.wrongType++
	case value.code != 1 || !good:
	case !durable:
		r.voids.volatile++
	case !value.trusted:
		r.voids.untrusted++
	}
}

// absence is why an acceptance does not count.
func (r *idRound) absence(a *pool.Answer, value idValue, inTime, durable bool) pool.Absence {
	why := r.counter.locker.engine.Pool.Absence(a)
	if a.Seal.Good && a.Seal.Quarantined && !durable {
		r.voids.quarantinedVolatile |= 1 << a.Lane
	}
	if !why.Unreadable() {
		return why
	}
	switch {
	case value.code == -1:
		return pool.AbsentFor(errNoCounter, 0)
	case value.code != 1:
		return why
	case !inTime:
		return pool.AbsentFor(errIDsLate, 0)
	case !durable:
		return pool.AbsentFor(errIDsVolatile, 0)
	}
	return pool.AbsentFor(errIDsForgot, 0)
}

// idValue is a script's answer about a counter on one master.
type idValue struct {
	code    int64 // 1 accepted, 0 refused, −1 not a counter, −2 no answer
	number  int64
	trusted bool
}

func readID(r pool.Reply) idValue {
	if r.Kind != pool.ReplyArray || len(r.Items) != 3 {
		return idValue{code: -2}
	}
	code, ok1 := r.Items[0].Number()
	number, err := strconv.ParseInt(r.Items[1].Str, 10, 64)
	trusted, ok2 := r.Items[2].Number()
	if !ok1 || !ok2 || err != nil || number < 0 {
		return idValue{code: -2}
	}
	return idValue{code, number, trusted == 1}
}

// succeed hands out the range in the order of arrival.
func (r *idRound) succeed() {
	c := r.counter
	c.mu.Lock()
	c.highest = max(c.highest, r.hi)
	if r.hi > c.confirmed {
		c.confirmed, c.since = r.hi, r.started
	}
	c.mu.Unlock()
	r.refuseTooLarge()
	first := r.lo
	for _, caller := range r.callers {
		c.locker.engine.Leave()
		caller.done(first, nil)
		first += caller.count
	}
	c.locker.engine.Counts.IDs.Add(first - r.lo)
	c.locker.engine.Counts.IDRounds.Add(1)
	c.finished(len(r.callers))
}

// fail retries above the highest value seen, or answers the callers with the reason why a
// retry cannot succeed.
func (r *idRound) fail(refusals int) {
	c := r.counter
	now := c.locker.engine.Clock.Now()
	r.freeze() // if no master received the proposal, the callers are still waiting
	c.locker.engine.Counts.IDRounds.Add(1)
	c.mu.Lock()
	c.highest = max(c.highest, r.high)
	if len(r.callers) > 0 {
		c.highest = max(c.highest, r.hi)
	}
	c.mu.Unlock()
	r.refuseTooLarge()
	switch {
	case len(r.callers) == 0:
		c.finished(0)
	case refusals > 0 && now-r.callers[0].arrived < idTimeout:
		r.retry()
	default:
		r.refuse(r.diagnosis(refusals))
	}
}

// retry puts the callers back in front of those that arrived meanwhile.
func (r *idRound) retry() {
	c := r.counter
	c.mu.Lock()
	c.waiting = append(r.callers, c.waiting...)
	c.mu.Unlock()
	next := c.newRound(r.tries + 1)
	if r.tries == 0 {
		c.locker.engine.Submit(nil, c.group, next) // most likely X was only out of date
		return
	}
	delay := time.Millisecond << min(r.tries, 5)
	c.locker.engine.Clock.AfterFunc(c.locker.engine.Pool.Jitter(delay), func() { c.locker.engine.Submit(nil, c.group, next) })
}

// refuseTooLarge answers the callers for which too few ids are left.
func (r *idRound) refuseTooLarge() {
	c := r.counter
	c.mu.Lock()
	highest := c.highest
	c.mu.Unlock()
	for _, caller := range r.tooLarge {
		c.locker.engine.Leave()
		caller.done(0, &Exhausted{Counter: c.id.name, Value: highest})
	}
	c.locker.ids.release(c, len(r.tooLarge))
}

func (r *idRound) refuse(err error) {
	for _, caller := range r.callers {
		r.counter.locker.engine.Leave()
		caller.done(0, err)
	}
	r.counter.finished(len(r.callers))
}

// finished starts the next round for the requests that arrived during this one.
func (c *idCounter) finished(answered int) {
	c.locker.ids.release(c, answered)
	c.mu.Lock()
	c.running = len(c.waiting) > 0
	again := c.running
	c.mu.Unlock()
	if again {
		c.locker.engine.Submit(nil, c.group, c.newRound(0))
	}
}

// diagnosis returns the error of a round that has no quorum.
func (r *idRound) diagnosis(refusals int) error {
	l, g := r.counter.locker, r.counter.group
	yes, n, quorum := r.tally.Yes, l.engine.Pool.N(), l.engine.Pool.Quorum()
	switch {
	case r.voids.wrongType > n-quorum:
		return ErrWrongType
	case refusals > 0:
		return l.engine.NoQuorum(&r.missing, "other daemons were faster in every round; try again, and spread the load over several counters")
	case yes+r.voids.volatile >= quorum:
		l.engine.Counts.NoQuorum.Add(1)
		return &NotDurable{Durable: yes, Needed: quorum, Total: n, Volatile: g.Volatile()}
	case r.voids.volatile+r.voids.untrusted > n-quorum: // even if the other masters return
		l.engine.Counts.NoQuorum.Add(1)
		return &LostState{Counter: r.counter.id.name, Trusted: yes, Needed: quorum, Highest: r.high}
	}
	note := "ids may have been skipped, none is given twice"
	if fading := r.voids.quarantinedVolatile; r.voids.volatile+bits.OnesCount16(fading) > n-quorum {
		note += "; when they vote, too few masters are durable for ids (NOTDURABLE): set appendonly yes and appendfsync always on " +
			strings.Join(engine.MasterNames(l.engine.Pool, fading), ", ")
	}
	return l.engine.NoQuorum(&r.missing, note)
}
