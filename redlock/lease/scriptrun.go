// This file runs a library's scripts that release a lock, extend one, or need no token.

package lease

import (
	"reflect"
	"slices"
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
	run := func(b *engine.Batch) { l.runScript(b, r, nil, done) }
	switch r.Effect {
	case ScriptExtends, ScriptAdds:
		run = func(b *engine.Batch) { l.scriptExtend(b, r, done) }
	case ScriptForces:
		run = func(b *engine.Batch) { viewHolders(l, b, r, nil, done) }
	}
	if r.Token == "" || l.tokenQueue.idle() {
		run(b)
		return
	}
	l.tokenQueue.enter(engine.LeaseID{DB: r.DB, Key: r.Keys[0], Token: r.Token}, b, queuedOperation{run: run})
}

// vote reads one master's answer, and replaces it by the script's own part. The yes of a
// release needs no seal.
func (r *ScriptRequest) vote(answer *pool.Answer, e *engine.Engine) (vote engine.Reading, kept []keptExpiry) {
	kept = r.Script.unwrap(answer, e)
	if !answer.Sent || !engine.FromMaster(answer.Reply) {
		return engine.Uncounted, kept
	}
	vote = r.Script.Vote(answer.Reply)
	if vote == engine.Uncounted && isWrongType(answer.Reply) {
		vote = engine.No
	}
	if !engine.CountsAsVote(*answer) && (vote == engine.No || r.Effect != ScriptReleases) {
		vote = engine.Uncounted
	}
	return vote, kept
}

func (r *ScriptRequest) leases() (ids []engine.LeaseID) {
	for _, key := range r.Keys {
		ids = append(ids, engine.LeaseID{DB: r.DB, Key: key, Token: r.Token})
	}
	return ids
}

// scriptVotes are the answers to a script up to the decision. The ballot's lock guards them until
// then.
type scriptVotes struct {
	votes    [quorum.MaxMasters]engine.Reading
	replies  [quorum.MaxMasters]pool.Reply
	reported []keptExpiry
	unclear  bool // some master's answer counts neither as yes nor as no
}

func (s *scriptVotes) note(answer pool.Answer, vote engine.Reading, kept []keptExpiry) {
	s.votes[answer.Lane], s.replies[answer.Lane] = vote, answer.Reply
	s.reported = append(s.reported, kept...)
	if vote == engine.Uncounted {
		s.unclear = s.unclear || answer.Sent && answer.Reply.Err == nil && engine.CountsAsVote(answer)
	}
}

// voters are the lanes that have voted v.
func (s *scriptVotes) voters(v engine.Reading) (lanes []int) {
	for lane, vote := range s.votes {
		if vote == v {
			lanes = append(lanes, lane)
		}
	}
	return lanes
}

// outcome is what the client receives: the reply that most masters with this vote gave.
func (s *scriptVotes) outcome(v engine.Reading) ScriptOutcome {
	var replies []pool.Reply
	for _, lane := range s.voters(v) {
		replies = append(replies, s.replies[lane])
	}
	reply, n := quorum.MostAlike(replies, sameReply)
	return ScriptOutcome{Reply: reply, Replied: n > 0, Yes: v == engine.Yes}
}

func sameReply(a, b pool.Reply) bool { return reflect.DeepEqual(a, b) }

// scriptCall is one run of a script that releases a lock or needs no token.
type scriptCall struct {
	engine.Plain
	scriptVotes
	ballot  engine.Ballot
	leases  *Leases
	request ScriptRequest
	keys    []string // on the masters
	start   time.Duration
	done    ScriptDone
	holders []engine.Token // of ScriptForces: those of the request's keys before, see viewHolders

	valid bool         // of a release: this daemon's own records show that the leases still run
	fence engine.Fence // of the grant; 0 = not known
	yes   bool         // the outcome
}

var _ engine.Question = (*scriptCall)(nil)

// viewHolders reads the tokens that a script without a token is about to take the keys from, one key
// after another: its text does not report them. What is not known stays as it is.
func viewHolders(l *Leases, b *engine.Batch, r ScriptRequest, holders []engine.Token, done ScriptDone) {
	if len(holders) == len(r.Keys) {
		l.runScript(b, r, holders, done)
		return
	}
	l.View(b, r.DB, r.Keys[len(holders)], func(v View, _ error) {
		viewHolders(l, nil, r, append(holders, v.Value), done) // an empty Value is no lock
	})
}

func (l *Leases) runScript(b *engine.Batch, r ScriptRequest, holders []engine.Token, done ScriptDone) {
	s := &scriptCall{leases: l, request: r, holders: holders, start: l.engine.Recent(), done: done, valid: r.Effect == ScriptReleases}
	if b == nil {
		b = &engine.Batch{}
		defer b.Send()
	}
	for _, id := range r.leases() {
		s.keys = append(s.keys, l.engine.MasterKey(id.Key))
		if r.Effect == ScriptForces {
			l.changes.Forced(engine.LeaseID{DB: r.DB, Key: id.Key, Token: ""})
			continue
		}
		known, ok := l.records.release(id, s.start)
		l.changes.Released(id)
		l.notes.drop(b, id, known.note)
		s.valid, s.fence = s.valid && ok && known.until > s.start, known.fence
	}
	s.ballot.Ask(l.engine, b, l.engine.Pool.Group(r.DB), r.Trace, s)
	for _, key := range r.Keys {
		l.freed(b, r.DB, key)
	}
}

func (s *scriptCall) Props() pool.Props {
	return pool.Props{Key: s.keys[0], Rest: s.keys[1:], SharesKey: true, Sealed: true}
}

func (s *scriptCall) Command(m *pool.SendContext, c *pool.Command) bool {
	s.request.Script.write(s.leases.engine, m, c, s.request.TTL)
	return true
}

func (s *scriptCall) IsYes(r pool.Reply) bool { return s.request.Script.isYes(r) }

// Failed repeats a release on a master that did not answer. By then, a value that is easily
// chosen twice may be another client's.
func (s *scriptCall) Failed(answer pool.Answer) {
	r := &s.request
	if r.Effect != ScriptReleases || len(r.Token) < shortToken {
		return
	}
	if !engine.FromMaster(answer.Reply) {
		for _, key := range s.keys {
			s.ballot.Group.RetryRelease(answer.Lane, pendingRelease(s.leases.engine, key, r.Token, s.start))
		}
	}
}

func (s *scriptCall) Read(answer pool.Answer) engine.Reading {
	vote, kept := s.request.vote(&answer, s.leases.engine)
	s.note(answer, vote, kept)
	return vote
}

// Owned: what is written regardless of a token may be a lock. A release is one anywhere.
func (s *scriptCall) Owned(by func(engine.Key) bool) bool {
	return s.request.Effect == ScriptReleases || !slices.ContainsFunc(s.request.Keys, func(k engine.Key) bool { return !by(k) })
}

// DecidedLocked emits the events of a release with the lock held, as release does.
func (s *scriptCall) DecidedLocked(v quorum.Result) {
	s.yes = v == quorum.Granted || v != quorum.Refused && s.valid && s.ballot.Tally.Yes > 0
	if !s.yes {
		return
	}
	r := &s.request
	if r.Effect == ScriptReleases {
		for _, id := range r.leases() {
			s.leases.events.Emit(events.Released, id, s.fence, 0)
		}
	}
	for i, holder := range s.holders {
		switch id := (engine.LeaseID{DB: r.DB, Key: r.Keys[i], Token: holder}); holder {
		case "":
		case r.Token:
			retime(s.leases, id, s.start, r.TTL, true)
		default:
			takenAway(s.leases, id, s.start)
		}
	}
}

func (s *scriptCall) Decided(v quorum.Result) {
	e, releases := s.leases.engine, s.request.Effect == ScriptReleases
	e.Leave()
	switch {
	case s.yes:
		if releases {
			e.Counts.Released.Add(1)
		}
		s.done(s.outcome(engine.Yes), nil)
	case v == quorum.Refused:
		s.done(s.outcome(engine.No), nil)
	case releases:
		s.done(ScriptOutcome{}, s.ballot.NoQuorum(unknownRelease))
	default:
		s.done(ScriptOutcome{}, s.ballot.NoQuorum("some masters may have done it"))
	}
}
