// Works implements attempt-counted fail-over: one of many workers does a piece of
// work. If it dies, another takes over; after MAX attempts all of them give up.
//
// An attempt is a lock with a number. It is granted when a quorum of masters wrote the
// same number for the same token, each of them above the number that it had. So no number
// is granted twice, and never more than MAX are. Every later attempt meets a DONE that a
// quorum acknowledged. Every record has an expiry.

package work

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// ErrBadToken: the token is not one that DWORK gives.
var ErrBadToken = errors.New("invalid token: it must be the one that DWORK answered with")

// Works are the attempts of a daemon.
type Works struct {
	engine *engine.Engine
	await  Await
	freed  func(b *engine.Batch, db int, record engine.Key) // a record may allow an attempt now
}

// New returns the attempts of a daemon.
func New(e *engine.Engine, await Await, freed func(b *engine.Batch, db int, record engine.Key)) *Works {
	return &Works{engine: e, await: await, freed: freed}
}

// Request requests an attempt at a piece of work.
type Request struct {
	DB      int
	Key     engine.Key
	Timeout time.Duration // lease of one attempt, 10 ms … MaxTTL
	Max     int64         // attempts, at least 1
	Keep    time.Duration // how long the end is remembered, ≤ MaxKeep; 0 = 2 × Timeout
	Wait    time.Duration // how long to wait while another attempt runs; 0 = not
	Meta    string
	Trace   *engine.Trace // receives the votes; may be nil
}

// State is what a request for work finds.
type State string

// The four answers.
const (
	Acquired  State = "acquired"  // the caller does the work
	Running   State = "running"   // another attempt runs
	Done      State = "done"      // the work is finished
	Exhausted State = "exhausted" // all attempts failed
)

// Work is the answer to a Request.
type Work struct {
	State   State
	Key     engine.Key
	Attempt int64
	Token   engine.Token  // acquired: proves this attempt
	Fence   engine.Fence  // acquired
	Last    bool          // acquired: there is no attempt after this one
	Retry   time.Duration // running: the attempt times out then
	Result  *string       // done: what its worker left; nil = nothing

	engine.Term // acquired: of the attempt's lease
	db          int
	undoUntil   time.Duration // see GiveBack
}

// Completion receives the answer; see LockDone.
type Completion func(Work, error)

// Work requests an attempt; done is called exactly once. leave ends the wait of a client
// that has left: an attempt that is granted after that is given back.
func (s *Works) Work(b *engine.Batch, r Request, done Completion) (leave func()) {
	if err := s.engine.Enter(); err != nil {
		done(Work{}, err)
		return func() {}
	}
	if r.Keep == 0 {
		r.Keep = min(2*r.Timeout, s.engine.Pool.Options().MaxKeep)
	}
	w := &workCall{works: s, group: s.engine.Pool.Group(r.DB), request: r, began: s.engine.Clock.Now()}
	w.answer = func(a Work, err error) { s.engine.Leave(); done(a, err) }
	w.decided = w.wait
	w.try(b, 1)
	return w.leave
}

// workCall is a request for work over all of its ballots.
type workCall struct {
	works   *Works
	group   *pool.Group
	request Request
	began   time.Duration
	round   time.Duration // start of the current series of ballots
	tries   int           // ballots in it
	answer  Completion

	decided    Completion // takes the outcome of a series of ballots
	last       Work       // the last outcome
	err        error
	granted    bool                   // a wait ended with an attempt
	left       atomic.Bool            // its client has left
	leaveQueue atomic.Pointer[func()] // of the wait, once there is one
}

// finish ends a series of ballots.
func (w *workCall) finish(a Work, err error) {
	w.tries, w.last, w.err = 0, a, err
	w.decided(a, err)
}

// try starts a ballot for attempt number n.
func (w *workCall) try(b *engine.Batch, n int64) {
	s, now := w.works, w.works.engine.Clock.Now()
	if w.tries == 0 {
		w.round = now
	}
	w.tries++
	ballot := &workBallot{
		call: w, key: s.workKey(w.request.Key), attempt: n, start: now,
		token: workToken{
			secret: engine.NewToken(), attempt: n, max: w.request.Max, keep: w.request.Keep,
			began: w.group.Time() / 1000,
		},
	}
	ballot.ballot.AskFenced(s.engine, b, w.group, w.request.Trace, &ballot.fencing, ballot)
}

func (s *Works) workKey(k engine.Key) string { return s.engine.MasterKey(record(k)) }

// foreign is the error if most masters have other data in the place of the record.
func (s *Works) foreign(k engine.Key) error {
	return &engine.ForeignData{Keys: []string{s.workKey(k)}}
}

// workToken proves an attempt. It carries what the end of the attempt needs, so that any
// daemon can end it: secret.attempt.max.keep.began.
type workToken struct {
	secret       engine.Token
	attempt, max int64
	keep         time.Duration
	// began is when the attempt was requested, ms of the group's clock. Numbers start
	// again when a work has been forgotten; time does not.
	began int64
}

func (t workToken) String() string {
	return fmt.Sprintf("%s.%d.%d.%d.%d", t.secret, t.attempt, t.max, t.keep.Milliseconds(), t.began)
}

// parseWorkToken rejects tokens that Work cannot have issued.
func (s *Works) parseWorkToken(t engine.Token) (workToken, error) {
	parts := strings.Split(string(t), ".")
	if len(parts) != 5 || len(parts[0]) != 27 {
		return workToken{}, ErrBadToken
	}
	attempt, err1 := strconv.ParseInt(parts[1], 10, 64)
	limit, err2 := strconv.ParseInt(parts[2], 10, 64)
	keep, err3 := strconv.ParseInt(parts[3], 10, 64)
	began, err4 := strconv.ParseInt(parts[4], 10, 64)
	if errors.Join(err1, err2, err3, err4) != nil || attempt < 1 || limit < attempt || began < 1 ||
		keep < 1 || keep > s.engine.Pool.Options().MaxKeep.Milliseconds() {
		return workToken{}, ErrBadToken
	}
	return workToken{engine.Token(parts[0]), attempt, limit, time.Duration(keep) * time.Millisecond, began}, nil
}
