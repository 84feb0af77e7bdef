// Mode: a way to hold keys. It comes with the request.

package lease

import (
	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
	"redlockd/redlock/scripts"
)

// Mode makes the part of a request's ballots that differs between the ways to hold a key, and has what
// the core must know beside it. A Mode is constant; what one ballot learns is in its ballotMode.
type Mode interface {
	// Kind is what the masters hold.
	Kind() Kind
	// ballot makes the mode's part of the next ballot.
	ballot(a *lockBallot) ballotMode
	// token is that of the next ballot, unless the caller chose one. No master can know fresh.
	token(fresh engine.Token) engine.Token
	// tokenOf is the token of the i-th key. own is the one that the keys share, if they share one.
	tokenOf(i int, own engine.Token) engine.Token
	// bounded reports whether few tries of such requests are sent at once, see hotkey.go.
	bounded(r *LockRequest) bool
	// waits reports whether the request is one of a wait, which repeats it.
	waits() bool
	// announced reports whether a grant is a client's lock, and not a part of one.
	announced() bool
}

// oneToken is what most modes are: all keys share the token, and a grant is the client's lock.
type oneToken struct{}

func (oneToken) token(fresh engine.Token) engine.Token        { return fresh }
func (oneToken) tokenOf(_ int, own engine.Token) engine.Token { return own }
func (oneToken) bounded(*LockRequest) bool                    { return false }
func (oneToken) waits() bool                                  { return false }
func (oneToken) announced() bool                              { return true }

// ballotMode is a mode's part of one ballot. command and read are called for each master from its
// lane, the other methods after the ballot is decided.
type ballotMode interface {
	// command requests a copy from one master that lasts until end, ms of the master's clock.
	command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64)
	// read turns one master's answer into a vote. It is called with the ballot's lock held, in
	// the order of the answers.
	read(a *lockBallot, answer pool.Answer) vote
	// takeBack returns what this ballot made, or may have made, on one master.
	takeBack(a *lockBallot, lane int, c copyState)
	// after decides what follows a ballot that was refused or split: the error for the caller,
	// or another ballot, at once or after a pause. A nil ballotMode is that of the request again.
	after(a *lockBallot, v quorum.Result) (ballotMode, error)
	// refused is the error for ErrHeld, undecided that for a ballot that the masters could not decide.
	refused(a *lockBallot, v quorum.Result) error
	undecided(a *lockBallot, note string) error
	// bulkToken is the token whose releases stay behind the acquire in a flush; "" for all.
	bulkToken(a *lockBallot) string
	// repeats reports whether a ballot that the masters were too slow for may be repeated.
	repeats(a *lockBallot) bool
}

// splitMode is a ballotMode whose ballot may end as split before all masters that could decide it
// have answered.
type splitMode interface{ splits(a *lockBallot) bool }

// grantedMode is a ballotMode that has more to do once its ballot was granted.
type grantedMode interface{ granted(a *lockBallot) }

// fencingMode is a ballotMode of locks that are held together, and chooses their fences.
type fencingMode interface {
	chooseFenceLocked(a *lockBallot) quorum.Result
	// raiseRegisters runs without the lock, after an answer that decides nothing.
	raiseRegisters(a *lockBallot)
}

// bulkMode is a ballotMode of which several acquires in a flush can be one call of a script.
type bulkMode interface {
	bulkScript(a *lockBallot, s *scripts.Set) string // its SHA1; "" = not this one
	addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64)
}

// sameAgain is a part of modes that send the same request again after a split, and whose outcomes
// are what they seem.
type sameAgain struct{}

func (sameAgain) after(a *lockBallot, v quorum.Result) (ballotMode, error) {
	switch {
	case v == quorum.Split:
		return nil, nil
	case a.ballot.MostlyWrongType():
		return nil, engine.ErrWrongType
	}
	return nil, engine.ErrHeld
}

func (sameAgain) refused(*lockBallot, quorum.Result) error   { return engine.ErrHeld }
func (sameAgain) undecided(a *lockBallot, note string) error { return a.ballot.NoQuorum(note) }
func (sameAgain) bulkToken(a *lockBallot) string             { return string(a.token) }
func (sameAgain) repeats(*lockBallot) bool                   { return true }
