// This file extends leases with a library's own script.

package lease

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// scriptExtension is extension for another text. It keeps the same records and repairs the
// copies of masters that lost theirs.
type scriptExtension struct {
	extension
	scriptVotes
	run    ScriptRequest
	left   remainingTimes
	answer ScriptOutcome
}

var _ engine.Question = (*scriptExtension)(nil)

func (l *Leases) scriptExtend(b *engine.Batch, r ScriptRequest, done ScriptDone) {
	prolongs := *r.Script
	prolongs.Prolongs = true
	r.Script = &prolongs
	s := &scriptExtension{run: r}
	s.done = func(g Grant, err error) {
		s.answer.Grant = g
		if err == engine.ErrNotHeld {
			err = nil
		}
		done(s.answer, err)
	}
	left, lapsed := s.enter(l, ExtendRequest{DB: r.DB, Key: r.Keys[0], More: r.Keys[1:], Token: r.Token, TTL: r.TTL})
	s.delay = 0 // the script sets when the copies end
	if lapsed {
		s.finish(Grant{}, engine.ErrNotHeld)
		return
	}
	if r.Effect == ScriptAdds {
		s.request.TTL += left
	}
	s.ballot.Ask(l.engine, b, s.group, r.Trace, s)
}

// Props: a text of its own shares no call.
func (s *scriptExtension) Props() pool.Props {
	p := s.extension.Props()
	p.Bulk = ""
	return p
}

func (s *scriptExtension) Command(m *pool.SendContext, c *pool.Command) bool {
	if m.Now >= quorum.Deadline(s.start, s.run.TTL) {
		return false
	}
	s.run.Script.write(s.leases.engine, m, c, s.run.TTL)
	return true
}

func (s *scriptExtension) IsYes(r pool.Reply) bool { return s.run.Script.isYes(r) }

func (s *scriptExtension) Read(answer pool.Answer) engine.Reading {
	if s.run.Effect == ScriptAdds && !s.run.Partly {
		_, more := s.run.Script.splitAnswer(answer.Reply)
		s.left.note(answer.Lane, more.left)
	}
	vote, kept := s.run.vote(&answer, s.leases.engine)
	s.note(answer, vote, kept)
	return vote
}

func (s *scriptExtension) Decide(t *quorum.Tally) quorum.Result { return t.Result() }

func (s *scriptExtension) Decided(v quorum.Result) {
	switch v {
	case quorum.Granted:
		s.answer, s.kept, s.exact = s.outcome(engine.Yes), s.reported, true
		// Copies outlast their lease by the time for late answers.
		late := s.leases.engine.Late
		if lease := s.left.longestIfUneven(s.voters(engine.Yes), late/2) - late; lease > 0 {
			s.equalize(lease)
			return
		}
		s.grant(s.lostCopies())
	case quorum.Refused:
		s.answer = s.outcome(engine.No)
		s.dropRemnants(s.voters(engine.Yes)...)
		s.finish(Grant{}, engine.ErrNotHeld)
	default:
		note := unchangedLease
		if s.unclear {
			note = "a master's answer is none that the script is known to give, and the lease may have changed there"
		}
		s.finish(Grant{}, s.ballot.NoQuorum(note))
	}
}

func (s *scriptExtension) Late(answer pool.Answer, v quorum.Result) {
	vote, _ := s.run.vote(&answer, s.leases.engine)
	switch {
	case v == quorum.Granted && vote == engine.No && !s.run.Partly:
		s.repair(answer.Lane)
	case v == quorum.Refused && vote == engine.Yes:
		s.dropRemnants(answer.Lane)
	}
}

// remainingTimes are what remains of the copies that a script has added to, on each
// master. Each master added to its own remaining time. If another daemon prolonged the
// lease with another quorum, some copies have less than was promised. The client adds to
// what it was promised, and the copy with the longest remaining time has at least that.
type remainingTimes struct {
	shortest, longest [quorum.MaxMasters]time.Duration // over all keys
}

func (s *remainingTimes) note(lane int, left []pool.Reply) {
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
func (s *scriptExtension) equalize(ttl time.Duration) {
	r := s.request
	r.TTL, r.Trace = ttl, s.run.Trace
	s.leases.engine.EnterAlways()
	s.leases.extend(nil, r, func(g Grant, err error) {
		if err != nil {
			s.answer = ScriptOutcome{}
		}
		s.finish(g, err)
	})
}

// lostCopies marks the masters that have no copy to prolong.
func (s *scriptExtension) lostCopies() (lost [quorum.MaxMasters]bool) {
	if s.run.Partly {
		return lost
	}
	for _, lane := range s.voters(engine.No) {
		lost[lane] = true
	}
	return lost
}

// dropRemnants takes back what was prolonged of a lease that a quorum has lost: it would
// only block the next lease.
func (s *scriptExtension) dropRemnants(lanes ...int) {
	if len(s.run.Token) < shortToken {
		return
	}
	for _, lane := range lanes {
		for _, key := range s.keys {
			engine.RetryUntilAnswered(s.group, lane, key, pendingRelease(s.leases.engine, key, s.run.Token, s.start))
		}
	}
}
