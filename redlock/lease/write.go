// This file changes a lock for a client that treats the quorum as one Redis: DEL, EXPIRE,
// SET XX, SET IFEQ. Except for the last, these commands compare no token, so they may
// take the lock from its holder.

package lease

import (
	"maps"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// WriteEffect is the change that a write makes to the copies.
type WriteEffect uint8

const (
	WriteDeletes  WriteEffect = iota
	WriteExpires              // a new expiry, longer or shorter
	WriteReplaces             // another value, with a new expiry
)

var writeWords = []string{"delete", "expire", "set"}

// WriteCondition restricts WriteExpires by the expiry that a copy has. A copy without an expiry ends
// later than any other.
type WriteCondition string

const (
	WriteLater   WriteCondition = ">" // only to a later one
	WriteEarlier WriteCondition = "<" // only to an earlier one
)

// WriteRequest changes the exclusive lock at a key.
type WriteRequest struct {
	DB     int
	Key    engine.Key
	Effect WriteEffect
	Value  engine.Token  // of WriteReplaces
	Equal  engine.Token  // only while the copy has this value; "" = any value
	TTL    time.Duration // not for WriteDeletes; Endless = no expiry
	Only   WriteCondition
	// Longest is for package maxhold, as of ExtendRequest.
	Longest time.Duration
	// EndlessToo: a copy without an expiry is a lock, not foreign data.
	EndlessToo bool
	Trace      *engine.Trace // receives the votes; may be nil
}

// WriteDone is called exactly once, from any goroutine. done is false if there is no such
// lock. err is *NoQuorum, ErrNoValue, *Busy or ErrShutdown.
type WriteDone func(done bool, err error)

// Write changes a lock on a quorum of masters.
func (l *Leases) Write(b *engine.Batch, r WriteRequest, done WriteDone) {
	if r.Effect == WriteDeletes && r.Equal == "" {
		l.deleteSeen(b, r, done)
		return
	}
	l.write(b, r, done)
}

// write sends the change to every master, whatever the others have.
func (l *Leases) write(b *engine.Batch, r WriteRequest, done WriteDone) {
	if err := l.engine.Enter(); err != nil {
		done(false, err)
		return
	}
	w := &writeCall{leases: l, request: r, key: l.engine.MasterKey(r.Key), start: l.engine.Recent(), done: done}
	if w.takesAway() {
		id := engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Equal}
		known, _ := l.records.release(id, w.start) // as a release does: a copy that stays proves nothing, and none is repaired
		w.fence = known.fence
		l.changes.Forced(id)
	}
	if b == nil {
		b = &engine.Batch{}
		defer b.Send()
	}
	w.ballot.Ask(l.engine, b, l.engine.Pool.Group(r.DB), r.Trace, w)
	if r.Effect != WriteReplaces {
		l.freed(b, r.DB, r.Key)
	}
}

type writeCall struct {
	engine.Plain
	ballot  engine.Ballot
	leases  *Leases
	request WriteRequest
	key     string
	start   time.Duration
	done    WriteDone
	ends    [quorum.MaxMasters]int64 // written for each master, ms of its clock
	fence   engine.Fence             // of the grant to Equal; 0 = not known
	yes     [quorum.MaxMasters]bool  // the lanes that have voted yes before the decision
	found   map[engine.Token]int     // values that were there, by how many masters counted for them; nil = Equal was
}

// takesAway reports whether the lock is another one afterwards, or none.
func (w *writeCall) takesAway() bool {
	r := &w.request
	return r.Effect == WriteDeletes || r.Effect == WriteReplaces && r.Value != r.Equal
}

var _ engine.Question = (*writeCall)(nil)

func (w *writeCall) Props() pool.Props { return pool.Props{Key: w.key, SharesKey: true, Sealed: true} }

func (w *writeCall) Command(m *pool.SendContext, c *pool.Command) bool {
	r := &w.request
	end := ""
	if r.Effect != WriteDeletes && r.TTL < Endless {
		// Only its own undo matches the expiry.
		w.ends[m.Lane] = quorum.Expiry(m.Time, r.TTL, w.leases.engine.Late) + quorum.ReplacedOffset
		end = m.Decimal(w.ends[m.Lane])
	}
	c.Set("EVALSHA", w.leases.engine.Scripts.Write, "1", w.key,
		writeWords[r.Effect], end, string(r.Value), string(r.Equal), engine.Flag(r.EndlessToo), string(r.Only))
	return true
}

// unwrap separates the answer from the value that was there.
func (w *writeCall) unwrap(answer *pool.Answer) (found engine.Token) {
	at := answer.Reply.Items
	if len(at) > 0 {
		answer.Reply = at[0]
	}
	if len(at) == 2 {
		found = engine.Token(at[1].Str)
	}
	return found
}

func (w *writeCall) IsYes(r pool.Reply) bool {
	answer := pool.Answer{Reply: r}
	w.unwrap(&answer)
	return engine.IsOne(answer.Reply)
}

func (w *writeCall) Read(answer pool.Answer) engine.Reading {
	found := w.unwrap(&answer)
	vote := w.vote(answer)
	w.yes[answer.Lane] = vote == engine.Yes
	if vote == engine.Yes && found != "" {
		if w.found == nil {
			w.found = map[engine.Token]int{}
		}
		w.found[found]++
	}
	return vote
}

// vote: a change was made even if a quarantined master made it, but it adds nothing to a
// quorum that holds.
func (w *writeCall) vote(answer pool.Answer) engine.Reading {
	n := answer.Reply.Int
	switch {
	case answer.Reply.Err != nil, answer.Reply.Kind != pool.ReplyInt:
		return engine.Uncounted
	case n == 1 && (engine.CountsAsVote(answer) || w.request.Effect == WriteDeletes):
		return engine.Yes
	case n == -1 && answer.Seal.Good:
		return engine.WrongType
	case n != 1 && engine.CountsAsVote(answer):
		return engine.No
	}
	return engine.Uncounted
}

func (w *writeCall) Owned(by func(engine.Key) bool) bool {
	return w.request.Effect == WriteDeletes || by(w.request.Key)
}

// DecidedLocked notes and reports the change, with the lock held: so it comes before that of a
// command which the masters execute later. A lease ends with the change though fewer than a quorum
// had its value: those were part of its quorum.
func (w *writeCall) DecidedLocked(v quorum.Result) {
	l, r := w.leases, &w.request
	switch {
	case v != quorum.Granted:
	case r.Effect == WriteDeletes:
		l.report(released, engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Equal}, w.fence, 0)
	case r.Equal != "" && w.takesAway():
		l.report(forced, engine.LeaseID{DB: r.DB, Key: r.Key, Token: r.Equal}, w.fence, 0)
	}
	for _, token := range slices.Sorted(maps.Keys(w.found)) { // a replay has the same order
		id := engine.LeaseID{DB: r.DB, Key: r.Key, Token: token}
		switch {
		case v != quorum.Granted:
		case r.Effect == WriteExpires, token == r.Value:
			retime(l, id, w.start, r.TTL, w.found[token] >= l.engine.Pool.Quorum())
		default:
			takenAway(l, id, w.start)
		}
	}
}

func (w *writeCall) Decided(v quorum.Result) {
	l := w.leases
	l.engine.Leave()
	switch {
	case v == quorum.Granted:
		if r := &w.request; r.Effect == WriteExpires {
			l.changes.Shortened(engine.LeaseID{DB: r.DB, Key: r.Key, Token: ""}, quorum.Deadline(w.start, r.TTL))
		}
		w.done(true, nil)
	case v == quorum.Refused && w.ballot.MostlyWrongType():
		w.done(false, engine.ErrNoValue)
	case v == quorum.Refused:
		w.takeBackAll()
		w.done(false, nil)
	default:
		w.takeBackAll()
		w.done(false, w.ballot.NoQuorum("some masters may have done it"))
	}
}

// Late: after a refusal, a minority may still have made the change.
func (w *writeCall) Late(answer pool.Answer, v quorum.Result) {
	w.unwrap(&answer)
	if v == quorum.Refused && w.vote(answer) == engine.Yes {
		w.takeBack(answer.Lane)
	}
}

func (w *writeCall) takeBackAll() {
	for lane, yes := range w.yes {
		if yes {
			w.takeBack(lane)
		}
	}
}

// takeBack deletes a value that only a minority received. It makes no holder, unless it
// was there before.
func (w *writeCall) takeBack(lane int) {
	l, r := w.leases, &w.request
	if r.Effect != WriteReplaces || r.TTL >= Endless || r.Value == r.Equal {
		return
	}
	l.engine.Counts.Undone.Add(1)
	end := w.ends[lane]
	engine.RetryUntilAnswered(w.ballot.Group, lane, w.key, pool.PendingRelease{
		Args:  releaseWords(l.engine, w.key, r.Value, expiryRange{end - 1, end}),
		Until: w.start + r.TTL + 4*l.engine.MasterTimeout,
		Once:  true, // the value is the caller's, see sendUndo
	})
}

// deleteSeen deletes the lock that a quorum shows, and nothing else. A master without the
// holder's copy may have a copy of a ballot that is still running. If that copy were
// deleted, too, its yes vote would still count when the holder's masters become free a
// moment later. The lock would then be granted with one copy less than a quorum.
func (l *Leases) deleteSeen(b *engine.Batch, r WriteRequest, done WriteDone) {
	l.View(b, r.DB, r.Key, func(v View, err error) {
		switch {
		case err != nil:
			done(false, err)
		case v.Kind == "none":
			done(false, nil)
		case v.Kind != "string", v.Left >= Endless && !r.EndlessToo:
			done(false, engine.ErrNoValue)
		default:
			r.Equal = v.Value // an empty value matches any value
			l.write(nil, r, done)
		}
	})
}

// retime notes that a command which compares no token gave a lock this ttl at start, longer or
// shorter. whole: a quorum has it. Otherwise it may only end the lease earlier.
func retime(l *Leases, id engine.LeaseID, start, ttl time.Duration, whole bool) {
	if ttl >= Endless {
		return
	}
	until, now := quorum.Deadline(start, ttl), l.engine.Recent()
	gone := l.goneAt(start, now, ttl)
	known, _ := l.records.update(id, func(known *leaseRecord) {
		if whole {
			known.until, known.gone = until, max(known.gone, gone)
		} else {
			known.until = min(known.until, until)
		}
	})
	if whole {
		l.report(extended, id, known.fence, gone-now)
	}
	l.report(shortened, id, known.fence, gone-now)
}

// takenAway notes that a command which compares no token ended a lease.
func takenAway(l *Leases, id engine.LeaseID, now time.Duration) {
	known, _ := l.records.release(id, now)
	l.report(forced, id, known.fence, 0)
}
