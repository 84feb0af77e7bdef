// One extension: it counts masters that hold the token now, never shortens,
// and revives nothing.
package redlock

import (
	"sync"
	"time"

	"redlockd/pool"
)

// extension is answered by every lane exactly once.
type extension struct {
	locker *Locker
	group  *pool.Group
	id     lockID
	key    string
	ttl    time.Duration
	start  time.Duration
	life   uint64 // of the record that it prolongs
	done   ExtendDone

	mu    sync.Mutex
	tally tally
	lost  [maxMasters]bool // masters that have no copy (any more)
	over  bool
	won   bool
}

var _ pool.Operation = (*extension)(nil)

func (l *Locker) extend(b *Batch, id lockID, ttl time.Duration, done ExtendDone) {
	now := l.clock.Now()
	// A lease this daemon knows to have lapsed is over, even if a straggler's
	// copy could still be prolonged. Once no copy of that lease can be left,
	// what the masters hold is another daemon's extension, and they are asked.
	known := l.leases.consider(id, now)
	if known.until <= now && now < known.gone {
		l.leave()
		done(Grant{}, ErrNotHeld)
		return
	}
	g := l.pool.Group(id.db)
	l.submit(b, g, &extension{
		locker: l, group: g, id: id, key: l.masterKey(id.key), ttl: ttl, start: now, life: known.life, done: done,
		tally: tally{n: l.pool.N(), quorum: l.pool.Quorum()},
	})
}

// Plan: an extension prolongs what excludes others, so it is sealed like an acquire.
func (e *extension) Plan() pool.Plan { return pool.Plan{Key: e.key, Sealed: true} }

// Propose: an extension keeps the fence of its grant.
func (e *extension) Propose(int64) {}

// Command moves the copy's end to at least ttl from now.
func (e *extension) Command(m *pool.Moment, c *pool.Command) bool {
	if m.Now >= deadline(e.start, e.ttl) {
		return false
	}
	c.Set("EVALSHA", e.locker.script.extend, "1", e.key, string(e.id.token),
		m.Decimal(expiry(m.Time, e.ttl, e.locker.late)))
	return true
}

// Answer counts one master; one that has lost its copy gets it back once a
// quorum has proved that the lease lives.
func (e *extension) Answer(answer pool.Answer) {
	holds := answer.Reply.Kind == pool.ReplyInt && answer.Reply.Int == 1
	lacks := answer.Reply.Kind == pool.ReplyInt && answer.Reply.Int == 0
	counts := answer.Seal.Good && !answer.Seal.Young
	e.mu.Lock()
	switch {
	case holds && counts, lacks && counts && pool.Broken(pool.RuleHeal):
		e.tally.yes++
	case lacks && counts:
		e.tally.no++
	default:
		e.tally.silent++
	}
	e.lost[answer.Lane] = lacks
	if e.over {
		heal := e.won && lacks
		e.mu.Unlock()
		if heal {
			e.heal(answer.Lane)
		}
		return
	}
	v := e.tally.verdict()
	e.over, e.won = v != undecided, v == granted
	lost, answered := e.lost, e.tally.answered()
	e.mu.Unlock()
	switch v {
	case undecided:
	case granted:
		e.grant(lost)
	case refused:
		e.finish(Grant{}, ErrNotHeld)
	default:
		e.finish(Grant{}, e.locker.noQuorum(e.group, answered, "the lease is unchanged, its old validity stands"))
	}
}

func (e *extension) finish(g Grant, err error) {
	if err != nil {
		e.locker.leases.unconsider(e.id)
	}
	e.locker.leave()
	e.done(g, err)
}

func (e *extension) grant(lost [maxMasters]bool) {
	l, now := e.locker, e.locker.clock.Now()
	until := deadline(e.start, e.ttl)
	if until <= now {
		l.counts.expired.Add(1)
		e.mu.Lock()
		e.won = false
		e.mu.Unlock()
		e.finish(Grant{}, &Expired{Elapsed: now - e.start, TTL: e.ttl, Extension: true})
		return
	}
	l.leases.prolong(e.id, lease{until: until, gone: e.start + e.ttl + 2*l.late, copies: everywhere}, e.life, now)
	l.counts.extended.Add(1)
	e.finish(Grant{Key: e.id.key, Token: e.id.token, db: e.id.db, until: until, ttl: e.ttl, start: e.start, clock: l.clock}, nil)
	for lane := range e.tally.n {
		if lost[lane] {
			e.heal(lane)
		}
	}
}

func (e *extension) heal(lane int) {
	e.locker.counts.healed.Add(1)
	e.group.Push(lane, &healing{extension: e, until: deadline(e.start, e.ttl)})
}

// healing re-creates a copy on a master that lost it. It never counts as a
// vote: the lease was proved by the others.
type healing struct {
	extension *extension
	until     time.Duration
	end       int64
}

var _ pool.Operation = (*healing)(nil)

// Plan: it takes the key, so nothing else on the key shares its flush.
func (h *healing) Plan() pool.Plan { return pool.Plan{Key: h.extension.key, Takes: true, Sealed: true} }

// Propose: a copy has no fence.
func (h *healing) Propose(int64) {}

// Command asks for the copy unless the lease has been released meanwhile. A
// release forgets the lease before it is queued, so it is either seen here or
// follows on this lane.
func (h *healing) Command(m *pool.Moment, c *pool.Command) bool {
	e := h.extension
	known, ok := e.locker.leases.find(e.id)
	if !ok || m.Now >= known.until {
		return false
	}
	h.end = healed(m.Time, known.until-m.Now, e.locker.late)
	c.Set("SET", e.key, string(e.id.token), "NX", "PXAT", m.Decimal(h.end))
	return true
}

// Answer: a copy that may or may not have been made is covered by the lease's
// own release, which goes to every master.
func (h *healing) Answer(pool.Answer) {}
