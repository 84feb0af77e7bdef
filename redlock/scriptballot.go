// This file puts one yes-or-no question to all masters and counts the answers.

package redlock

import (
	"reflect"
	"sync"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// scriptBallot sends every master one script and counts the answers. It serves operations
// that take nothing which would have to be taken back.
type scriptBallot struct {
	locker   *Locker
	group    *pool.Group
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
	// unwrap replaces an answer by the script's own part and returns the copies that keep
	// their expiry. nil: the answer has no other part.
	unwrap func(*pool.Answer) []keptExpiry
	script *Script // the library script of the answers; nil: 1 is yes

	mu      sync.Mutex
	tally   quorum.Tally
	missing engine.Missing
	votes   [quorum.MaxMasters]ScriptVote
	replies [quorum.MaxMasters]pool.Reply
	kept    []keptExpiry // reported before the decision
	unclear bool         // some master's answer counts neither as yes nor as no
	result  quorum.Result
}

var _ pool.Operation = (*scriptBallot)(nil)

func (l *Locker) newScriptBallot(g *pool.Group, plan pool.Props) *scriptBallot {
	return &scriptBallot{locker: l, group: g, plan: plan, tally: quorum.Tally{N: l.engine.Pool.N(), Quorum: l.engine.Pool.Quorum()}}
}

func (s *scriptBallot) Props() pool.Props { return s.plan }

// Propose does nothing: these operations have no fence.
func (s *scriptBallot) Propose(int64) {}

func (s *scriptBallot) Command(m *pool.SendContext, c *pool.Command) bool { return s.command(m, c) }

// Answer counts one master.
func (s *scriptBallot) Answer(answer pool.Answer) {
	var kept []keptExpiry
	if s.unwrap != nil {
		kept = s.unwrap(&answer)
	}
	vote := s.read(answer)
	s.mu.Lock()
	s.votes[answer.Lane], s.replies[answer.Lane] = vote, answer.Reply
	switch vote {
	case ScriptYes:
		s.tally.Yes++
	case ScriptNo:
		s.tally.No++
	default:
		s.tally.Uncounted++
		s.unclear = s.unclear || answer.Sent && answer.Reply.Err == nil && engine.CountsAsVote(answer)
	}
	over, v := s.result != quorum.Undecided, s.result
	switch {
	case over: // read without the lock
	case vote == ScriptUnclear:
		s.missing.MarkMissing(answer.Lane, s.locker.engine.Pool.Absence(&answer))
	default:
		s.missing.MarkCounted(answer.Lane)
	}
	if !over {
		s.kept = append(s.kept, kept...)
		v = s.tally.Result()
		s.result = v
		if v != quorum.Undecided && s.onDecidedLocked != nil {
			s.onDecidedLocked(v)
		}
	}
	s.mu.Unlock()
	switch {
	case over && s.onLateVote != nil:
		s.onLateVote(answer.Lane, vote, v)
	case !over && v != quorum.Undecided:
		s.onResult(v)
	}
}

// voters are the lanes that have voted v so far.
func (s *scriptBallot) voters(v ScriptVote) (lanes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane := range s.tally.N {
		if s.votes[lane] == v {
			lanes = append(lanes, lane)
		}
	}
	return lanes
}

// replyOf is the reply that most masters with this vote gave.
func (s *scriptBallot) replyOf(v ScriptVote) (reply pool.Reply, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0
	for i := range s.tally.N {
		if s.votes[i] != v {
			continue
		}
		alike := 0
		for j := range s.tally.N {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unclear
}
