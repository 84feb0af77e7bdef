// This file runs a library's scripts that release a lock, extend one, or need no token.

package lease

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/quorum"
)

// ScriptEffect is the effect of a script that RunScript runs.
type ScriptEffect uint8

const (
	ScriptReleases ScriptEffect = iota // deletes the token's copy
	ScriptExtends                      // gives the copy a new expiry
	ScriptAdds                         // adds to the remaining time
	ScriptForces                       // writes or deletes the key, whichever token holds it
)

// ScriptRequest is a script that does not take a lock.
type ScriptRequest struct {
	DB     int
	Script *Script
	Effect ScriptEffect
	Keys   []engine.Key  // the locks among the script's keys, at least one
	Token  engine.Token  // "" only with ScriptForces
	TTL    time.Duration // of ScriptExtends and ScriptForces; what ScriptAdds adds
	// Partly: the script compares a part of the token only. A copy's value is then not
	// known, and none is re-created on masters that lost it.
	Partly bool
	Trace  *engine.Trace // receives the votes; may be nil
}

// ScriptOutcome is the answer of a quorum's masters, with its meaning.
type ScriptOutcome struct {
	Reply   pool.Reply
	Replied bool // false: it was decided without a query
	Yes     bool
	Grant   Grant // of an extension that succeeded
}

// ScriptDone is called exactly once, from any goroutine; err is *NoQuorum,
// *Expired, *Busy or ErrShutdown.
type ScriptDone func(ScriptOutcome, error)

// RunScript runs a release or an extension that is written as a script.
func (l *Leases) RunScript(b *engine.Batch, r ScriptRequest, done ScriptDone) {
	if err := l.engine.Enter(); err != nil {
		done(ScriptOutcome{}, err)
		return
	}
	leave := func(o ScriptOutcome, err error) { l.engine.Leave(); done(o, err) }
	run := func(b *engine.Batch) { l.runScript(b, r, leave) }
	if r.Token == "" || l.tokenQueue.idle() {
		run(b)
		return
	}
	l.tokenQueue.enter(engine.LeaseID{DB: r.DB, Key: r.Keys[0], Token: r.Token}, b, queuedOperation{run: run})
}

func (l *Leases) runScript(b *engine.Batch, r ScriptRequest, done ScriptDone) {
	switch r.Effect {
	case ScriptReleases:
		l.scriptRelease(b, r, done)
	case ScriptForces:
		l.scriptForce(b, r, done)
	default:
		l.scriptExtend(b, r, done)
	}
}

// libraryBallot runs the script on every master. If its effects are sealed, a yes counts
// under a good seal only; a no always needs one.
func (l *Leases) libraryBallot(r *ScriptRequest, sealed bool) *scriptBallot {
	plan := pool.Props{Key: l.engine.MasterKey(r.Keys[0]), SharesKey: true, Sealed: true}
	for _, key := range r.Keys[1:] {
		plan.Rest = append(plan.Rest, l.engine.MasterKey(key))
	}
	s := newScriptBallot(l.engine.Pool.Group(r.DB), plan)
	s.script = r.Script
	s.unwrap = func(answer *pool.Answer) []keptExpiry { return r.Script.unwrap(answer, l.engine) }
	s.read = func(answer pool.Answer) ScriptVote {
		if !answer.Sent || !engine.FromMaster(answer.Reply) {
			return ScriptUnclear
		}
		vote := r.Script.Vote(answer.Reply)
		if vote == ScriptUnclear && isWrongType(answer.Reply) {
			vote = ScriptNo
		}
		if !engine.CountsAsVote(answer) && (vote == ScriptNo || sealed) {
			return ScriptUnclear
		}
		return vote
	}
	return s
}

// outcome is what the client receives.
func (s *scriptBallot) outcome(v ScriptVote) ScriptOutcome {
	reply, ok := s.replyOf(v)
	return ScriptOutcome{Reply: reply, Replied: ok, Yes: v == ScriptYes}
}

// scriptRelease is release with another text.
func (l *Leases) scriptRelease(b *engine.Batch, r ScriptRequest, done ScriptDone) {
	now := l.engine.Recent()
	if b == nil {
		b = &engine.Batch{}
		defer b.Send()
	}
	valid, fence := true, engine.Fence(0)
	for _, key := range r.Keys {
		id := engine.LeaseID{DB: r.DB, Key: key, Token: r.Token}
		known, ok := l.records.release(id, now)
		l.changes.Released(id)
		l.notes.drop(b, id)
		valid, fence = valid && ok && known.until > now, known.fence
	}
	s := l.libraryBallot(&r, false)
	s.command = func(m *pool.SendContext, c *pool.Command) bool { r.Script.write(l.engine, m, c, r.TTL); return true }
	s.onFailed = func(answer pool.Answer) {
		if !engine.FromMaster(answer.Reply) {
			l.retryRelease(s.ballot.Group, &r, answer.Lane, now)
		}
	}
	released := false
	s.onDecidedLocked = func(v quorum.Result) {
		released = v == quorum.Granted || v != quorum.Refused && valid && s.ballot.Tally.Yes > 0
		for _, key := range r.Keys {
			if released {
				l.events.Emit(events.Released, engine.LeaseID{DB: r.DB, Key: key, Token: r.Token}, fence, 0)
			}
		}
	}
	s.onResult = func(v quorum.Result) {
		switch {
		case released:
			l.engine.Counts.Released.Add(1)
			done(s.outcome(ScriptYes), nil)
		case v == quorum.Refused:
			done(s.outcome(ScriptNo), nil)
		default:
			done(ScriptOutcome{}, s.ballot.NoQuorum(
				"whether the token held the lock is unknown; the release is repeated until every master has let go"))
		}
	}
	s.ask(l, b, r.Trace)
	for _, key := range r.Keys {
		l.freed(b, r.DB, key)
	}
}

// retryRelease repeats the release on a master that did not answer. By then, a value that
// is easily chosen twice may be another client's.
func (l *Leases) retryRelease(g *pool.Group, r *ScriptRequest, lane int, start time.Duration) {
	if len(r.Token) < shortToken {
		return
	}
	for _, key := range r.Keys {
		g.RetryRelease(lane, l.pendingRelease(l.engine.MasterKey(key), r.Token, start))
	}
}

// scriptForce runs a script that needs no token.
func (l *Leases) scriptForce(b *engine.Batch, r ScriptRequest, done ScriptDone) {
	if b == nil {
		b = &engine.Batch{}
		defer b.Send()
	}
	for _, key := range r.Keys {
		l.changes.Forced(engine.LeaseID{DB: r.DB, Key: key, Token: ""})
	}
	s := l.libraryBallot(&r, true)
	s.command = func(m *pool.SendContext, c *pool.Command) bool { r.Script.write(l.engine, m, c, r.TTL); return true }
	s.onResult = func(v quorum.Result) {
		switch v {
		case quorum.Granted:
			done(s.outcome(ScriptYes), nil)
		case quorum.Refused:
			done(s.outcome(ScriptNo), nil)
		default:
			done(ScriptOutcome{}, s.ballot.NoQuorum("some masters may have done it"))
		}
	}
	s.ask(l, b, r.Trace)
	for _, key := range r.Keys {
		l.freed(b, r.DB, key)
	}
}
