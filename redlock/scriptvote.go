// What does a quorum say to a question with yes and no?
package redlock

import (
	"reflect"
	"sync"

	"redlockd/pool"
)

// survey asks every master one thing and counts the answers. It is for
// operations that take nothing which would have to be taken back.
type survey struct {
	locker  *Locker
	group   *pool.Group
	plan    pool.Plan
	command func(*pool.Moment, *pool.Command) bool
	read    func(pool.Answer) ScriptVote
	end     func(verdict) // once, with the survey decided
	// told is called before end with the lock held: whoever takes the key next
	// needs answers that come behind this one. nil: there is nothing to tell.
	told func(verdict)
	// late is for answers behind the end, which was v; nil: there is nothing to do.
	late func(lane int, vote ScriptVote, v verdict)
	// open replaces an answer by what it says of the question, and tells which
	// copies keep their end; nil: there is nothing else in it.
	open   func(*pool.Answer) []keptEnd
	script *Script // whose answers they are; nil: 1 is yes

	mu      sync.Mutex
	tally   tally
	missing missing
	votes   [maxMasters]ScriptVote
	replies [maxMasters]pool.Reply
	kept    []keptEnd // told before the decision
	unclear bool      // some master answered what counts neither as yes nor as no
	final   verdict
}

var _ pool.Operation = (*survey)(nil)

func (l *Locker) survey(g *pool.Group, plan pool.Plan) *survey {
	return &survey{locker: l, group: g, plan: plan, tally: tally{n: l.pool.N(), quorum: l.pool.Quorum()}}
}

func (s *survey) Plan() pool.Plan { return s.plan }

// Propose: nothing here has a fence.
func (s *survey) Propose(int64) {}

func (s *survey) Command(m *pool.Moment, c *pool.Command) bool { return s.command(m, c) }

// Answer counts one master.
func (s *survey) Answer(answer pool.Answer) {
	var kept []keptEnd
	if s.open != nil {
		kept = s.open(&answer)
	}
	vote := s.read(answer)
	s.mu.Lock()
	s.votes[answer.Lane], s.replies[answer.Lane] = vote, answer.Reply
	switch vote {
	case ScriptYes:
		s.tally.yes++
	case ScriptNo:
		s.tally.no++
	default:
		s.tally.silent++
		s.unclear = s.unclear || answer.Asked && answer.Reply.Err == nil && counts(answer)
	}
	over, v := s.final != undecided, s.final
	switch {
	case over: // read without the lock
	case vote == ScriptUnclear:
		s.missing.lacks(answer.Lane, s.locker.pool.Absence(&answer))
	default:
		s.missing.counts(answer.Lane)
	}
	if !over {
		s.kept = append(s.kept, kept...)
		v = s.tally.verdict()
		s.final = v
		if v != undecided && s.told != nil {
			s.told(v)
		}
	}
	s.mu.Unlock()
	switch {
	case over && s.late != nil:
		s.late(answer.Lane, vote, v)
	case !over && v != undecided:
		s.end(v)
	}
}

// voters are the lanes that have voted so until now.
func (s *survey) voters(v ScriptVote) (lanes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane := range s.tally.n {
		if s.votes[lane] == v {
			lanes = append(lanes, lane)
		}
	}
	return lanes
}

// said is the answer that most masters gave which voted so.
func (s *survey) said(v ScriptVote) (reply pool.Reply, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0
	for i := range s.tally.n {
		if s.votes[i] != v {
			continue
		}
		alike := 0
		for j := range s.tally.n {
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

// isUnclear tells whether a master answered the question, and not in a way that counts.
func (s *survey) isUnclear() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unclear
}

// counts tells whether an answer counts as a vote: what a young master holds it
// cannot have forgotten, what it lacks it may have.
func counts(answer pool.Answer) bool { return answer.Seal.Good && !answer.Seal.Young }
