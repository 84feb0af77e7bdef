// extension is one extension of a lease: it counts masters that hold the token now, never
// shortens, and revives nothing.

package lease

import (
	"slices"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

type extension struct {
	engine.Plain
	ballot  engine.Ballot
	leases  *Leases
	group   *pool.Group
	request ExtendRequest
	ids     []engine.LeaseID // one for each key
	records []uint64         // numbers of the lease records that it prolongs
	keys    []string         // on the masters
	start   time.Duration
	linger  time.Duration // the copies outlast the validity by it
	beyond  time.Duration // only copies that last longer count, see enter; 0 = all
	done    ExtendDone

	copies   [quorum.MaxMasters]heldCopy // of masters whose yes counts
	lost     [quorum.MaxMasters]bool     // masters that have no copy (any more)
	kept     []keptExpiry                // copies that are to end earlier
	longer   int                         // masters whose copies all are to end earlier; guarded by the ballot's lock
	exact    bool                        // the lease ends with the extension, even if it was longer
	shortens bool                        // it was longer on a quorum
	won      bool                        // guarded by the ballot's lock
	agreed   heldCopy                    // the copy that a quorum agrees on, once won
}

var _ engine.Question = (*extension)(nil)

// Unchanged is what became of a lease that no quorum has extended.
const Unchanged = "the lease is unchanged, its old validity stands"

func (l *Leases) extend(b *engine.Batch, r ExtendRequest, done ExtendDone) {
	e := &extension{done: done}
	e.enter(l, r)
	var q engine.Question = e
	if e.exact = r.Exact; e.exact {
		e.linger = 0 // the client sets when the copies end
		q = &retiming{e}
	}
	e.ballot.Ask(l.engine, b, e.group, r.Trace, q)
}

// enter notes what this daemon knows of the leases: whether one of them has lapsed. A lease that is known to have lapsed is over, even if a straggler's copy could
// still be prolonged. So only copies count then that last longer than any of that lease: they are of
// a later grant or extension, by another daemon.
func (e *extension) enter(l *Leases, r ExtendRequest) {
	now := l.engine.Clock.Now()
	r.TTL = endingBy(r.EndsBy, now, r.TTL)
	e.leases, e.group, e.request, e.start, e.linger = l, l.engine.Pool.Group(r.DB), r, now, r.Linger
	for _, key := range append([]engine.Key{r.Key}, r.More...) {
		id := engine.LeaseID{DB: r.DB, Key: key, Token: r.Token}
		known := l.records.findOrAdd(id, now)
		e.ids, e.records, e.keys = append(e.ids, id), append(e.records, known.number), append(e.keys, l.engine.MasterKey(key))
		e.linger = max(e.linger, known.linger)
		if known.until <= now && now < known.gone {
			e.beyond = max(e.beyond, known.gone)
		}
	}
	e.linger = max(min(e.linger, l.engine.MaxTTL-r.TTL), 0)
}

// lasts is for how long the copies are written.
func (e *extension) lasts() time.Duration { return e.request.TTL + e.linger }

// Props: an extension prolongs what excludes others, so it is sealed like an acquire.
func (e *extension) Props() pool.Props {
	p := pool.Props{Key: e.keys[0], Rest: e.keys[1:], SharesKey: true, Sealed: true}
	if len(e.keys) == 1 && e.beyond == 0 {
		p.Bulk = e.leases.engine.Scripts.Extend
	}
	return p
}

// least is e.beyond, ms of a master's clock.
func (e *extension) least(m *pool.SendContext) string {
	if e.beyond == 0 {
		return "0"
	}
	return strconv.FormatInt(m.Time/1000+(e.beyond-m.Now).Milliseconds(), 10)
}

// Command moves the copies' end to at least ttl from now.
func (e *extension) Command(m *pool.SendContext, c *pool.Command) bool {
	end, usable := e.expiry(m)
	if usable {
		s, token := e.leases.engine.Scripts, string(e.request.Token)
		if len(e.keys) == 1 {
			c.Set("EVALSHA", s.Extend, "1", e.keys[0], token, end, e.least(m))
			return true
		}
		c.Set("EVALSHA", s.MultiExtend, strconv.Itoa(len(e.keys)))
		c.Args = append(append(c.Args, e.keys...), token, end, e.least(m))
	}
	return usable
}

// AddToBulk is Command for a bulk.
func (e *extension) AddToBulk(m *pool.SendContext, c *pool.BulkCall) bool {
	end, usable := e.expiry(m)
	if usable {
		c.Keys, c.Args = append(c.Keys, e.keys[0]), append(c.Args, string(e.request.Token), end)
	}
	return usable
}

// expiry chooses when the copies on one master end, unless the extension could not be used any
// more.
func (e *extension) expiry(m *pool.SendContext) (end string, usable bool) {
	if m.Now >= quorum.Deadline(e.start, e.request.TTL) {
		return "", false
	}
	return m.Decimal(quorum.Expiry(m.Time, e.lasts(), e.leases.engine.Late)), true
}

// Read: a master that holds the key in another way than most has answered and proves nothing,
// see Decide.
func (e *extension) Read(answer pool.Answer) engine.Reading {
	how, lacks, counts := e.leases.kinds.readCopy(answer.Reply), lacksCopy(answer.Reply), engine.CountsAsVote(answer)
	e.lost[answer.Lane] = lacks
	switch {
	case how.held && counts:
		e.copies[answer.Lane] = how
		return engine.Neither
	case lacks && counts:
		return engine.No
	}
	return engine.Uncounted
}

// Decide counts the masters that agree with most others.
func (e *extension) Decide(votes *quorum.Tally) quorum.Result {
	var most int
	e.agreed, most = quorum.MostAlike(e.copies[:], func(a, b heldCopy) bool { return a.held && a == b })
	t := *votes
	t.Yes, t.Uncounted = most, t.Uncounted-most
	return t.Result()
}

// Owned: no lease is extended in a group that its keys have left.
func (e *extension) Owned(by func(engine.Key) bool) bool {
	return by(e.request.Key) && !slices.ContainsFunc(e.request.More, func(k engine.Key) bool { return !by(k) })
}

func (e *extension) DecidedLocked(v quorum.Result) { e.won = v == quorum.Granted }

func (e *extension) Decided(v quorum.Result) {
	switch v {
	case quorum.Granted:
		e.grant(e.lost)
	case quorum.Refused:
		e.finish(Grant{}, engine.ErrNotHeld)
	default:
		if r := &e.request; !r.repeats || !e.ballot.Repeat(&r.unanswered, func() { e.leases.extendInTurn(nil, *r, e.done) }) {
			e.finish(Grant{}, e.ballot.NoQuorum(Unchanged))
		}
	}
}

// Late: a master that has lost its copy gets it back once a quorum has proved that the lease is
// held.
func (e *extension) Late(answer pool.Answer, _ quorum.Result) {
	e.ballot.Lock()
	won := e.won
	e.ballot.Unlock()
	if won && lacksCopy(answer.Reply) && e.request.Seen == nil {
		e.repair(answer.Lane)
	}
}

func lacksCopy(r pool.Reply) bool { return r.Kind == pool.ReplyInt && r.Int == 0 }

func (e *extension) finish(g Grant, err error) {
	if err != nil {
		for _, id := range e.ids {
			e.leases.records.dropIfEmpty(id)
		}
	}
	e.leases.engine.Leave()
	e.done(g, err)
}

func (e *extension) grant(lost [quorum.MaxMasters]bool) {
	l, r, now := e.leases, &e.request, e.leases.engine.Clock.Now()
	until := quorum.Deadline(e.start, r.TTL)
	if e.timeIsOver(until, now) {
		l.engine.Counts.Expired.Add(1)
		e.ballot.Lock()
		e.won = false
		e.ballot.Unlock()
		e.finish(Grant{}, &engine.Expired{Elapsed: now - e.start, TTL: r.TTL, Extension: true})
		return
	}
	longer := leaseRecord{until: until, gone: l.goneAt(e.start, now, e.lasts()), copies: allLanes, kind: e.agreed.kind, linger: e.linger}
	for i, id := range e.ids {
		before := l.records.prolong(id, longer, e.records[i], now)
		before.linger = e.linger
		l.changed(extended, id, before, until, longer.gone-now, nil)
	}
	if e.exact {
		l.shorten(e.group, e.kept, until, e.ids...)
	}
	l.changes.Extended(e.ids, until)
	l.engine.Counts.Extended.Add(1)
	e.finish(Grant{
		Key: r.Key, More: r.More, Token: r.Token, Term: l.engine.NewTerm(e.start, r.TTL), db: r.DB, kind: e.agreed.kind, linger: e.linger,
	}, nil)
	for lane, isLost := range lost {
		if isLost {
			e.repair(lane)
		}
	}
}

// heldUntil is how long the lease runs whose copy is to be re-created. ok is false if it has
// been released, or any of several keys.
func (e *extension) heldUntil() (until time.Duration, ok bool) {
	until = quorum.Deadline(e.start, e.request.TTL)
	for _, id := range e.ids {
		known, ok := e.leases.records.find(id)
		if !ok {
			return 0, false
		}
		until = min(until, known.until)
	}
	return until, true
}

// repair re-creates a copy on a master that lost it, of the kind that a quorum holds. It never
// counts as a vote: the other masters have proved the lease. It takes the keys, so nothing else
// on them shares its flush.
func (e *extension) repair(lane int) {
	e.leases.engine.Counts.Repaired.Add(1)
	e.group.Push(lane, &engine.Message{
		Plan:     pool.Props{Key: e.keys[0], Rest: e.keys[1:], Exclusive: true, Sealed: true},
		Write:    e.writeCopy,
		OnAnswer: e.onRepaired,
	})
}

// writeCopy requests the copy unless the lease has been released meanwhile. A release forgets
// the lease before it is queued, so it is either visible here or follows on this lane.
func (e *extension) writeCopy(m *pool.SendContext, c *pool.Command) bool {
	until, ok := e.heldUntil()
	if !ok || m.Now >= until {
		return false
	}
	end := m.Decimal(quorum.RepairedExpiry(m.Time, until+e.linger-m.Now, e.leases.engine.Late))
	if !e.leases.kinds.writeCopy(e.agreed, c, e.keys, string(e.request.Token), end) {
		c.Set("SET", e.keys[0], string(e.request.Token), "NX", "PXAT", end)
	}
	return true
}

// onRepaired: the lease's own release goes to every master, so it covers a copy that may or may
// not have been made.
func (e *extension) onRepaired(a pool.Answer) {
	if a.Sent && a.Reply.Err == nil {
		e.leases.changes.Copied(e.ids, engine.IsYes(a.Reply))
	}
}
