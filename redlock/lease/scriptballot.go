// This file puts one yes-or-no question to all masters and counts the answers.

package lease

import (
	"reflect"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// scriptBallot sends every master one script and counts the answers. It serves operations
// that take nothing which would have to be taken back.
type scriptBallot struct {
	engine.Plain
	ballot   engine.Ballot
	plan     pool.Props
	command  func(*pool.SendContext, *pool.Command) bool
	read     func(pool.Answer) ScriptVote
	onResult func(quorum.Result) // called once, with the ballot decided
	// onDecidedLocked runs before onResult, with the lock held: the next holder of the
	// key needs answers that come after this one. nil: there is nothing to report.
	onDecidedLocked func(quorum.Result)
	// onLateVote receives answers that come after the decision, which was v. nil: there
	// is nothing to do.
	onLateVote func(lane int, vote ScriptVote, v quorum.Result)
	onFailed   func(pool.Answer) // receives answers with an error; nil: there is nothing to do
	// unwrap replaces an answer by the script's own part and returns the copies that keep
	// their expiry. nil: the answer has no other part.
	unwrap func(*pool.Answer) []keptExpiry
	script *Script // the library script of the answers; nil: 1 is yes

	votes   [quorum.MaxMasters]ScriptVote
	replies [quorum.MaxMasters]pool.Reply
	kept    []keptExpiry // reported before the decision
	unclear bool         // some master's answer counts neither as yes nor as no
}

var _ engine.Question = (*scriptBallot)(nil)

func newScriptBallot(g *pool.Group, plan pool.Props) *scriptBallot {
	return &scriptBallot{ballot: engine.Ballot{Group: g}, plan: plan}
}

// ask queues the script on every master.
func (s *scriptBallot) ask(l *Leases, b *engine.Batch, t *engine.Trace) {
	s.ballot.Ask(l.engine, b, s.ballot.Group, t, s)
}

func (s *scriptBallot) Props() pool.Props { return s.plan }

func (s *scriptBallot) Command(m *pool.SendContext, c *pool.Command) bool { return s.command(m, c) }

func (s *scriptBallot) Failed(answer pool.Answer) {
	if s.onFailed != nil {
		s.onFailed(answer)
	}
}

// note notes one master's answer, with the ballot's lock held.
func (s *scriptBallot) note(answer pool.Answer) (vote ScriptVote, kept []keptExpiry) {
	if s.unwrap != nil {
		kept = s.unwrap(&answer)
	}
	vote = s.read(answer)
	s.votes[answer.Lane], s.replies[answer.Lane] = vote, answer.Reply
	if vote == ScriptUnclear {
		s.unclear = s.unclear || answer.Sent && answer.Reply.Err == nil && engine.CountsAsVote(answer)
	}
	return vote, kept
}

func (s *scriptBallot) Read(answer pool.Answer) engine.Reading {
	vote, kept := s.note(answer)
	s.kept = append(s.kept, kept...)
	switch vote {
	case ScriptYes:
		return engine.Yes
	case ScriptNo:
		return engine.No
	}
	return engine.Uncounted
}

func (s *scriptBallot) DecidedLocked(v quorum.Result) {
	if s.onDecidedLocked != nil {
		s.onDecidedLocked(v)
	}
}

func (s *scriptBallot) Decided(v quorum.Result) { s.onResult(v) }

func (s *scriptBallot) Late(answer pool.Answer, v quorum.Result) {
	s.ballot.Lock()
	vote, _ := s.note(answer)
	s.ballot.Unlock()
	if s.onLateVote != nil {
		s.onLateVote(answer.Lane, vote, v)
	}
}

func (s *scriptBallot) IsYes(r pool.Reply) bool {
	if s.script == nil {
		return engine.IsOne(r)
	}
	own, _ := s.script.splitAnswer(r)
	return s.script.Vote(own) == ScriptYes
}

// voters are the lanes that have voted v so far.
func (s *scriptBallot) voters(v ScriptVote) (lanes []int) {
	s.ballot.Lock()
	defer s.ballot.Unlock()
	for lane := range s.ballot.Tally.N {
		if s.votes[lane] == v {
			lanes = append(lanes, lane)
		}
	}
	return lanes
}

// replyOf is the reply that most masters with this vote gave.
func (s *scriptBallot) replyOf(v ScriptVote) (reply pool.Reply, ok bool) {
	s.ballot.Lock()
	defer s.ballot.Unlock()
	most := 0
	for i := range s.ballot.Tally.N {
		if s.votes[i] != v {
			continue
		}
		alike := 0
		for j := range s.ballot.Tally.N {
			if s.votes[j] == v && reflect.DeepEqual(s.replies[i], s.replies[j]) {
				alike++
			}
		}
		if alike > most {
			most, reply = alike, s.replies[i]
		}
	}
	return reply, most > 0
}

// isUnclear reports whether a master answered in a way that does not count.
func (s *scriptBallot) isUnclear() bool {
	s.ballot.Lock()
	defer s.ballot.Unlock()
	return s.unclear
}
