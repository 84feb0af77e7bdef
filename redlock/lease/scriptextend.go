// This file extends leases with a library's own script.

package lease

import (
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// scriptExtend is extend for another text. It keeps the same records and repairs the
// copies of masters that lost theirs.
func (l *Leases) scriptExtend(b *engine.Batch, r ScriptRequest, done ScriptDone) {
	now := l.engine.Clock.Now()
	prolongs := *r.Script
	prolongs.Prolongs = true
	r.Script = &prolongs
	s := l.libraryBallot(&r, true)
	var outcome ScriptOutcome
	e, lapsed := l.extensionOf(&r, s, now)
	e.done = func(g Grant, err error) {
		outcome.Grant = g
		if err == engine.ErrNotHeld {
			err = nil
		}
		done(outcome, err)
	}
	if lapsed {
		e.finish(Grant{}, engine.ErrNotHeld)
		return
	}
	var sums remainingTimes
	if r.Effect == ScriptAdds && !r.Partly {
		open := s.unwrap
		s.unwrap = func(answer *pool.Answer) []keptExpiry {
			_, more := r.Script.splitAnswer(answer.Reply)
			sums.note(answer.Lane, more.left)
			return open(answer)
		}
	}
	s.command = func(m *pool.SendContext, c *pool.Command) bool {
		if m.Now >= quorum.Deadline(now, r.TTL) {
			return false
		}
		r.Script.write(l.engine, m, c, r.TTL)
		return true
	}
	s.onResult = func(v quorum.Result) {
		switch v {
		case quorum.Granted:
			outcome, e.kept, e.exact = s.outcome(ScriptYes), s.kept, true
			// Copies outlast their lease by the time for late answers.
			if lease := sums.longestIfUneven(s.voters(ScriptYes), l.engine.Late/2) - l.engine.Late; lease > 0 {
				l.equalize(e, r.Trace, lease, &outcome)
				return
			}
			e.grant(s.lostCopies(&r))
		case quorum.Refused:
			outcome = s.outcome(ScriptNo)
			l.dropRemnants(s, &r, now, s.voters(ScriptYes)...)
			e.finish(Grant{}, engine.ErrNotHeld)
		default:
			note := "the lease is unchanged, its old validity stands"
			if s.isUnclear() {
				note = "a master's answer is none that the script is known to give, and the lease may have changed there"
			}
			e.finish(Grant{}, s.ballot.NoQuorum(note))
		}
	}
	s.onLateVote = func(lane int, vote ScriptVote, v quorum.Result) {
		switch {
		case v == quorum.Granted && vote == ScriptNo && !r.Partly:
			e.repair(lane)
		case v == quorum.Refused && vote == ScriptYes:
			l.dropRemnants(s, &r, now, lane)
		}
	}
	s.ask(l, b, r.Trace)
}

// remainingTimes are what remains of the copies that a script has added to, on each
// master. Each master added to its own remaining time. If another daemon prolonged the
// lease with another quorum, some copies have less than was promised. The client adds to
// what it was promised, and the copy with the longest remaining time has at least that.
type remainingTimes struct {
	mu                sync.Mutex
	shortest, longest [quorum.MaxMasters]time.Duration // over all keys
}

func (s *remainingTimes) note(lane int, left []pool.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range left {
		ms := time.Duration(left[i].Int) * time.Millisecond
		if s.longest[lane] == 0 || ms < s.shortest[lane] {
			s.shortest[lane] = ms
		}
		s.longest[lane] = max(s.longest[lane], ms)
	}
}

// longestIfUneven is the longest of these masters' copies if another one is shorter by
// more than the margin; 0 if none is.
func (s *remainingTimes) longestIfUneven(lanes []int, margin time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var most, least time.Duration
	for i, lane := range lanes {
		most = max(most, s.longest[lane])
		if i == 0 || s.shortest[lane] < least {
			least = s.shortest[lane]
		}
	}
	if least+margin >= most {
		return 0
	}
	return most
}

// equalize makes a quorum of copies last as long as the longest of them, before the
// client receives that time.
func (l *Leases) equalize(e *extension, trace *engine.Trace, ttl time.Duration, outcome *ScriptOutcome) {
	r := e.request
	r.TTL, r.Trace = ttl, trace
	l.engine.EnterAlways()
	l.extend(nil, r, func(g Grant, err error) {
		if err != nil {
			*outcome = ScriptOutcome{}
		}
		e.finish(g, err)
	})
}

// extensionOf keeps the records of the extension that the script makes. lapsed is true if
// this daemon's records show that the lease is over.
func (l *Leases) extensionOf(r *ScriptRequest, s *scriptBallot, now time.Duration) (e *extension, lapsed bool) {
	e = &extension{
		leases: l, group: s.ballot.Group, start: now,
		request: ExtendRequest{DB: r.DB, Key: r.Keys[0], More: r.Keys[1:], Token: r.Token, TTL: r.TTL},
	}
	l.engine.EnterAlways() // the extension leaves once more than it has entered
	for _, key := range r.Keys {
		id := engine.LeaseID{DB: r.DB, Key: key, Token: r.Token}
		known := l.records.findOrAdd(id, now)
		e.ids, e.records, e.keys = append(e.ids, id), append(e.records, known.number), append(e.keys, l.engine.MasterKey(key))
		switch left := known.until - now; {
		case r.Effect == ScriptAdds && left > 0:
			e.request.TTL = max(e.request.TTL, left+r.TTL)
		case r.Effect == ScriptExtends && left <= 0 && now < known.gone:
			lapsed = true
		}
	}
	return e, lapsed
}

// lostCopies marks the masters that have no copy to prolong.
func (s *scriptBallot) lostCopies(r *ScriptRequest) (lost [quorum.MaxMasters]bool) {
	if r.Partly {
		return lost
	}
	for _, lane := range s.voters(ScriptNo) {
		lost[lane] = true
	}
	return lost
}

// dropRemnants takes back what was prolonged of a lease that a quorum has lost: it would
// only block the next lease.
func (l *Leases) dropRemnants(s *scriptBallot, r *ScriptRequest, start time.Duration, lanes ...int) {
	if len(r.Token) < shortToken {
		return
	}
	for _, lane := range lanes {
		for _, key := range r.Keys {
			pending := l.pendingRelease(l.engine.MasterKey(key), r.Token, start)
			engine.RetryUntilAnswered(s.ballot.Group, lane, l.engine.MasterKey(key), pending)
		}
	}
}
