// This file acquires a lock with a library's own script.

package lease

import (
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// scriptMode acquires a lock with a library's script. The script's own answers are kept
// for the client: the last yes and the last no before the outcome.
type scriptMode struct {
	sameAgain
	script   *Script
	before   [quorum.MaxMasters]string      // which keys existed, see Script.splitAnswer
	expiries [quorum.MaxMasters]expiryRange // when a copy of this ballot ends
}

var _ lockMode = (*scriptMode)(nil)

func (f *scriptMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	ttl, late := a.call.request.TTL, a.call.leases.engine.Late
	f.script.write(a.call.leases.engine, m, c, ttl)
	tight := len(a.token) < shortToken
	for _, token := range f.script.Tokens {
		tight = tight || len(token) < shortToken
	}
	f.expiries[m.Lane] = f.script.Time.expiryRange(m, ttl, late, tight)
}

// expiryRange is when a copy can end. If a lease counts from now, a master adds it to its
// clock when the command arrives, and the seal allows a clock that is 250 ms behind.
// Other clients may use a short token, too, so tight covers only a copy that was written
// at once: a client that takes the key after such a copy has ended gets a later expiry.
func (t ScriptTime) expiryRange(m *pool.SendContext, ttl, late time.Duration, tight bool) expiryRange {
	written := t.of(m, ttl, late)
	switch {
	case t.Arg == 0:
		written = ttl.Milliseconds()
	case t.Unit == ScriptUnixMilliseconds:
		return expiryRange{written - 1, written + 1}
	case t.Unit == ScriptUnixSeconds:
		return expiryRange{1000*written - 1, 1000*written + 1}
	case t.Unit == ScriptSeconds:
		written *= 1000
	}
	end := m.Time/1000 + written
	if tight {
		return expiryRange{end - 5, end + 15}
	}
	return expiryRange{end - 300, end + (4 * late).Milliseconds() + 1300}
}

func (f *scriptMode) read(a *lockBallot, answer pool.Answer) vote {
	switch {
	case !answer.Sent:
		return vote{}
	case !engine.FromMaster(answer.Reply):
		return vote{copy: copyMaybe}
	}
	own, more := f.script.splitAnswer(answer.Reply)
	before := more.before
	f.before[answer.Lane] = before
	if !a.ballot.Over() {
		a.kept = append(a.kept, f.script.keptExpiries(more.kept, answer.Lane, a.call.leases.engine)...)
	}
	scriptVote := f.script.Vote(own)
	if answers := f.script.Answers; !a.ballot.Over() && answers != nil {
		answers.note(scriptVote, own)
	}
	switch {
	case scriptVote == engine.Yes && before != "" && !strings.Contains(before, "0"):
		return vote{yes: true, copy: copyEarlier}
	case scriptVote == engine.Yes:
		return vote{yes: true, hadCopy: strings.Contains(before, "1"), copy: copyMade}
	case scriptVote == engine.No:
		return vote{no: true}
	case isWrongType(own):
		return vote{no: true, wrongType: true}
	}
	return vote{copy: copyMaybe}
}

// takeBack spares what was there before. If a master did not answer, its earlier state is
// unknown. If the token may have been the holder all along, its copy is left to expire.
func (f *scriptMode) takeBack(a *lockBallot, lane int, c copyState) {
	if c != copyMade && c != copyMaybe || c == copyMaybe && f.script.Prolongs {
		return
	}
	for _, id := range a.ids() {
		key := a.call.leases.engine.MasterKey(id.Key)
		switch {
		case c == copyMaybe && len(id.Token) < shortToken:
		case f.script.existed(f.before[lane], id.Key):
		case a.call.request.TTL >= Endless:
			a.undoWithin(lane, c, key, id.Token, anyExpiry)
		default:
			a.undoWithin(lane, c, key, id.Token, f.expiries[lane])
		}
	}
}
