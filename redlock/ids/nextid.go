// idRound issues ids. One optimistic round per counter serves all requests that are there when it starts. The
// round proposes the range [X+1, X+n] to every master. A master accepts it if its value
// is below the range, and a quorum of acceptances assigns the range to the round. Two
// successful rounds share a master, and the one that this master accepted later lies
// wholly above the other. X is only a hint. Requests that arrive later join the next
// round: serving them from a range that is already under way would break the order. A
// failed round uses up its range, so gaps are possible.

package ids

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

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
func (is *IDs) NextID(b *engine.Batch, r Request, done Done) {
	if err := is.engine.Enter(); err != nil {
		done(0, err)
		return
	}
	c := is.get(counterID{r.DB, r.Name})
	c.mu.Lock()
	c.waiting = append(c.waiting, idCaller{r.Count, is.engine.Clock.Now(), done, r.Trace, 0})
	start := !c.running
	c.running = true
	c.mu.Unlock()
	if start {
		c.round(b, 0)
	}
}

// idRound is one proposal to all masters.
type idRound struct {
	engine.Plain
	ballot  engine.Ballot
	counter *idCounter
	tries   int

	// Guarded by the ballot's lock.
	frozen   bool
	callers  []idCaller
	tooLarge []idCaller // requests for more ids than are left
	lo, hi   int64
	started  time.Duration
	high     int64 // highest value that a master reported
	voids    idVoids
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

var _ engine.Question = (*idRound)(nil)

func (c *idCounter) round(b *engine.Batch, tries int) {
	r := &idRound{counter: c, tries: tries}
	r.ballot.Ask(c.ids.engine, b, c.group, nil, r)
}

// Props: the order of rounds matters, and an acceptance counts as a vote only with a
// seal.
func (r *idRound) Props() pool.Props {
	return pool.Props{Key: r.counter.key, StartsNew: true, Sealed: true}
}

// freeze closes the round for further requests. It runs when the command for the first
// master is written, not when the round is queued: until then nothing has been proposed,
// and arriving requests may join.
func (r *idRound) freeze() {
	r.ballot.Lock()
	defer r.ballot.Unlock()
	if r.frozen {
		return
	}
	r.frozen = true
	c := r.counter
	r.started = c.ids.engine.Clock.Now()
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

func (r *idRound) Command(m *pool.SendContext, c *pool.Command) bool {
	r.freeze()
	r.ballot.Lock()
	lo, hi, empty := r.lo, r.hi, len(r.callers) == 0
	if r.trace != nil {
		r.trace.sent[m.Lane] = m.Now
	}
	r.ballot.Unlock()
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
	c.Set("EVALSHA", counter.ids.engine.Scripts.NextID, "1", counter.key,
		strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10), m.Incarnation.ID,
		strconv.FormatInt(confirmed, 10), blankIsZero(m.Incarnation))
	return true
}

// blankIsZero reports whether a missing counter counts as zero. That holds in an incarnation
// that the operator declared to be the first, where no counter can have been forgotten, and
// in one that was given all counters when it joined.
func blankIsZero(life *pool.Incarnation) string {
	return engine.Flag(life.Counters)
}

func (r *idRound) Read(a pool.Answer) engine.Reading {
	value := readID(a.Reply)
	r.reportLocked(a)
	r.high = max(r.high, value.number)
	ids := r.counter.ids
	durable := a.Seal.Durable || ids.Volatile
	inTime := ids.engine.Clock.Now()-r.started <= idRoundTime
	good := engine.CountsAsVote(a) && inTime
	switch {
	case value.code == 1 && good && durable && value.trusted:
		return engine.Yes
	case value.code == 0 && a.Seal.Good:
		return engine.No
	}
	r.reject(&a, value, good, inTime, durable)
	return engine.Uncounted
}

// reject notes why an acceptance does not count.
func (r *idRound) reject(a *pool.Answer, value idValue, good, inTime, durable bool) {
	var reason error
	switch {
	case value.code == -1:
		r.voids.wrongType++
		reason = r.counter.ids.foreign(r.counter.id.name)
	case value.code != 1:
	case !inTime:
		reason = errIDsLate
	case !durable:
		if good {
			r.voids.volatile++
		}
		reason = errIDsVolatile
	default:
		if good {
			r.voids.untrusted++
		}
		reason = errIDsForgot
	}
	if a.Seal.Good && a.Seal.Quarantined && !durable {
		r.voids.quarantinedVolatile |= 1 << a.Lane
	}
	why := r.counter.ids.engine.Pool.Absence(a)
	if why.Unreadable() && reason != nil {
		why = pool.AbsentFor(reason, 0)
	}
	r.ballot.Missing.MarkMissing(a.Lane, why)
}

func (r *idRound) Owned(by func(engine.Key) bool) bool { return by(r.counter.id.name) }

func (r *idRound) Decided(v quorum.Result) {
	if v == quorum.Granted {
		r.succeed()
		return
	}
	r.fail(r.ballot.Tally.No)
}

func (r *idRound) Late(a pool.Answer, _ quorum.Result) {
	r.ballot.Lock()
	defer r.ballot.Unlock()
	r.reportLocked(a)
}

// idValue is a script's answer about a counter on one master.
type idValue struct {
	code    int64 // 1 accepted, 0 refused, −1 not a counter, −2 no answer
	number  int64
	trusted bool
}

func readID(r pool.Reply) idValue {
	if r.Kind != pool.ReplyArray || len(r.Items) < 3 {
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
		c.ids.engine.Leave()
		caller.done(first, nil)
		first += caller.count
	}
	c.ids.engine.Counts.IDs.Add(first - r.lo)
	c.ids.engine.Counts.IDRounds.Add(1)
	c.finished(len(r.callers))
}

// fail retries above the highest value seen, or answers the callers with the reason why a
// retry cannot succeed.
func (r *idRound) fail(refusals int) {
	c := r.counter
	now := c.ids.engine.Clock.Now()
	r.freeze() // if no master received the proposal, the callers are still waiting
	c.ids.engine.Counts.IDRounds.Add(1)
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
	case r.ballot.Moved():
		r.refuse(r.ballot.NoQuorum(""))
	case r.ballot.Repeat(&r.callers[0].unanswered, r.retry):
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
	if r.tries == 0 {
		c.round(nil, 1) // most likely X was only out of date
		return
	}
	e := c.ids.engine
	e.Clock.AfterFunc(e.SplitPause(min(r.tries, 5)-1), func() { c.round(nil, r.tries+1) })
}

// refuseTooLarge answers the callers for which too few ids are left.
func (r *idRound) refuseTooLarge() {
	c := r.counter
	c.mu.Lock()
	highest := c.highest
	c.mu.Unlock()
	for _, caller := range r.tooLarge {
		c.ids.engine.Leave()
		caller.done(0, &Exhausted{Counter: c.id.name, Value: highest})
	}
	c.ids.release(c, len(r.tooLarge))
}

func (r *idRound) refuse(err error) {
	for _, caller := range r.callers {
		r.counter.ids.engine.Leave()
		caller.done(0, err)
	}
	r.counter.finished(len(r.callers))
}

// finished starts the next round for the requests that arrived during this one.
func (c *idCounter) finished(answered int) {
	c.ids.release(c, answered)
	c.mu.Lock()
	c.running = len(c.waiting) > 0
	again := c.running
	c.mu.Unlock()
	if again {
		c.round(nil, 0)
	}
}

// diagnosis returns the error of a round that has no quorum.
func (r *idRound) diagnosis(refusals int) error {
	e, t := r.counter.ids.engine, &r.ballot.Tally
	switch {
	case r.voids.wrongType > t.N-t.Quorum:
		return &engine.ForeignData{Keys: []string{r.counter.ids.key(r.counter.id.name)}}
	case refusals > 0:
		return r.ballot.NoQuorum("other daemons were faster in every round; try again, and spread the load over several counters")
	case t.Yes+r.voids.volatile >= t.Quorum:
		e.Counts.NoQuorum.Add(1)
		return &NotDurable{Durable: t.Yes, Needed: t.Quorum, Total: t.N, Volatile: r.counter.group.Volatile()}
	case r.voids.volatile+r.voids.untrusted > t.N-t.Quorum: // even if the other masters return
		e.Counts.NoQuorum.Add(1)
		return &LostState{Counter: r.counter.id.name, Trusted: t.Yes, Needed: t.Quorum, Highest: r.high}
	}
	note := "ids may have been skipped, none is given twice"
	if fading := r.voids.quarantinedVolatile; r.voids.volatile+bits.OnesCount16(fading) > t.N-t.Quorum {
		note += "; when they vote, too few masters are durable for ids (NOTDURABLE): set appendonly yes and appendfsync always on " +
			strings.Join(engine.MasterNames(e.Pool, fading), ", ")
	}
	return r.ballot.NoQuorum(note)
}

// roundTrace traces a round of ids that serves requests with a Trace. Its votes are those
// of all of them.
type roundTrace struct {
	traces []*engine.Trace
	sent   [quorum.MaxMasters]time.Duration
}

// announceLocked is called when the round's requests are known. Masters that have
// answered before did not receive the round's command.
func (r *idRound) announceLocked() {
	for i := range r.callers {
		t := r.callers[i].trace
		if t == nil {
			continue
		}
		if r.trace == nil {
			r.trace = &roundTrace{}
		}
		r.trace.traces = append(r.trace.traces, t)
		t.OnBallot(r.ballot.Tally.N)
	}
	for lane := range r.ballot.Tally.N {
		if r.early&(1<<lane) != 0 {
			r.reportLocked(pool.Answer{Lane: lane})
		}
	}
}

func (r *idRound) reportLocked(a pool.Answer) {
	switch {
	case !r.frozen:
		r.early |= 1 << a.Lane
	case r.trace != nil:
		v := engine.VoteOf(r.counter.ids.engine.Pool, a, engine.IsYes, r.trace.sent[a.Lane])
		for _, t := range r.trace.traces {
			t.OnVote(v)
		}
	}
}
