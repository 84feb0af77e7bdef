// This file releases a lock: how the masters' answers are counted, what the caller
// receives, and how the release goes on after the answer until every copy is gone.
//
// A release with Linger lets the copies end later instead of deleting them. It may shorten them
// at once on each master, without the two rounds of shorten.go: its holder relies on the
// lease no longer, whether or not a quorum agrees.

package lease

import (
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

type release struct {
	engine.Plain
	ballot engine.Ballot
	leases *Leases
	id     engine.LeaseID
	key    string
	copies uint16        // bits: masters that may hold a copy
	valid  bool          // this daemon's own record shows that the lease still runs
	fence  engine.Fence  // of its grant; 0 = not known
	event  change        // that is reported, 0 = none
	linger time.Duration // the copies end so much later, or when they were to; 0 = now
	start  time.Duration
	done   UnlockDone
}

var _ engine.Question = (*release)(nil)

const unknownRelease = "whether the token held the lock is unknown; the release is repeated until every master has let go"

// releaseFor releases what a client releases.
func (l *Leases) releaseFor(b *engine.Batch, u UnlockRequest, done UnlockDone) {
	l.startRelease(b, &release{id: engine.LeaseID{DB: u.DB, Key: u.Key, Token: u.Token}, event: released, linger: u.Linger, done: done}, u.Trace)
}

func (l *Leases) startRelease(b *engine.Batch, r *release, t *engine.Trace) {
	id, now := r.id, l.engine.Recent()
	// The lease is forgotten before the release is queued: from here on no repair may
	// re-create a copy.
	known, ok := l.records.release(id, now)
	l.changes.Released(id)
	if !ok {
		known.copies = allLanes
	}
	if b == nil { // the release and the next waiter's ballot leave together
		b = &engine.Batch{}
		defer b.Send()
	}
	if r.linger > 0 {
		r.event = shortened
	} else {
		l.ends(b, id, known)
	}
	r.leases, r.key, r.copies, r.start = l, l.engine.MasterKey(id.Key), known.copies, now
	r.valid, r.fence = ok && known.until > now, known.fence
	r.ballot.Ask(l.engine, b, l.engine.Pool.Group(id.DB), t, r)
	l.freed(b, id.DB, id.Key)
}

// Props: "deleted" needs no seal, "not held" counts only under a good one.
func (r *release) Props() pool.Props {
	plan := pool.Props{Key: r.key, SharesKey: true, SealZero: true}
	if r.linger == 0 {
		plan.Bulk = r.leases.engine.Scripts.Releases
	}
	return plan
}

// BulkToken is the token that is released.
func (r *release) BulkToken() string { return string(r.id.Token) }

// AddToBulk adds the release to the others of a flush.
func (r *release) AddToBulk(_ *pool.SendContext, c *pool.BulkCall) bool {
	c.Keys, c.Args = append(c.Keys, r.key), append(c.Args, string(r.id.Token))
	return true
}

// Command deletes whatever the token holds, usually without a guard: the command is sent
// once and nothing overtakes it.
func (r *release) Command(m *pool.SendContext, c *pool.Command) bool {
	if r.linger > 0 {
		c.Set(append(releaseWords(r.leases.engine, r.key, r.id.Token, anyExpiry), "", m.Decimal(r.lingerExpiry(m.Time)))...)
		return true
	}
	c.Set("EVALSHA", r.leases.engine.Scripts.Release, "1", r.key, string(r.id.Token), "", "")
	return true
}

// Failed repeats the release on a master that did not answer. The guard spares copies that end
// later than any copy that can exist now: if the token is used again, they belong to that later
// lease.
func (r *release) Failed(answer pool.Answer) {
	if r.copies&(1<<answer.Lane) != 0 && len(r.id.Token) >= shortToken {
		r.ballot.Group.RetryRelease(answer.Lane, r.pendingRelease())
	}
}

// Read: yes means that the copy is gone now, no that the master certainly held none before.
func (r *release) Read(answer pool.Answer) engine.Reading {
	switch {
	case answer.Reply.Err != nil:
		return engine.Uncounted
	case engine.IsOne(answer.Reply):
		return engine.Yes
	case engine.CountsAsVote(answer):
		return engine.No
	}
	return engine.Uncounted
}

func (r *release) Decide(t *quorum.Tally) quorum.Result {
	v := t.Result()
	switch {
	case v == quorum.Granted, v == quorum.Refused:
		return v
	case t.Pending() > 0:
		return quorum.Undecided
	case r.valid && t.Yes > 0:
		// The lease was valid, so a quorum held it. The masters without an answer receive
		// the release again until they have deleted their copy.
		return quorum.Granted
	}
	return quorum.Unknown
}

// DecidedLocked emits the event with the lock held: the next holder of the key needs answers
// that come after this one, so its grant cannot be reported first.
func (r *release) DecidedLocked(v quorum.Result) {
	if v == quorum.Granted && r.event != 0 {
		r.leases.report(r.event, r.id, r.fence, r.lasts())
	}
}

// lasts is how long copies that are kept can last from now on.
func (r *release) lasts() time.Duration {
	if r.linger == 0 {
		return 0
	}
	now := r.leases.engine.Clock.Now()
	return r.leases.goneAt(r.start, now, r.linger) - now
}

// lingerExpiry is where copies that stay end on a master whose clock shows now µs: a value that no
// undo matches.
func (r *release) lingerExpiry(now int64) int64 {
	return quorum.RepairedExpiry(now, r.linger, r.leases.engine.Late)
}

func (r *release) Decided(v quorum.Result) {
	var err error
	switch v {
	case quorum.Granted:
		r.leases.engine.Counts.Released.Add(1)
	case quorum.Unknown:
		err = r.ballot.NoQuorum(unknownRelease)
	}
	r.leases.engine.Leave()
	r.done(v == quorum.Granted, err)
}

// pendingRelease releases whatever the token may have held when the release was requested, on a
// master that did not answer.
func (r *release) pendingRelease() pool.PendingRelease {
	e := r.leases.engine
	latest := (e.MaxTTL + e.MasterTimeout + time.Second).Milliseconds()
	return pool.PendingRelease{
		ArgsAt: func(then int64) []string {
			words := releaseWords(e, r.key, r.id.Token, expiryRange{0, then/1000 + latest})
			if r.linger > 0 {
				words = append(words, "", strconv.FormatInt(r.lingerExpiry(then), 10))
			}
			return words
		},
		Since: r.start,
		Until: r.start + e.MaxTTL + 4*e.MasterTimeout,
	}
}
