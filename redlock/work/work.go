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
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/stored"
)

// ErrBadToken: the token is not one that DWORK gives.
var ErrBadToken = errors.New("invalid token: it must be the one that DWORK answered with")

// Works are the attempts of a daemon.
type Works struct {
	engine *engine.Engine
	await  Await
	freed  func(b *engine.Batch, db int, record engine.Key) // a record may allow an attempt now
}

// Await puts a request into the queue of a work's record, for wait at most. The attempt before it
// will last for runs. The queue calls contend whenever the record may have changed, for one
// request at a time, and done at the end: with contend's error, with ErrHeld when the wait is
// over, or with *Busy or ErrShutdown. leave ends the wait.
type Await func(db int, record engine.Key, wait, runs time.Duration, contend Contend, done func(error)) (leave func())

// Contend requests the work. Its answer is ErrHeld while another attempt runs, nil for a new
// attempt, each with the time for which that attempt will last, and another error if the work is
// over or undecided.
type Contend func(b *engine.Batch, done func(runs time.Duration, err error))

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

// State names what a request for work finds.
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

// record is the key of a work's record, as a lock's key would be.
func record(k engine.Key) engine.Key { return stored.Works + k }

// NameOf is the name of the work that a record is of.
func NameOf(record engine.Key) engine.Key { return record[len(stored.Works):] }

func (ws *Works) workKey(k engine.Key) string { return ws.engine.MasterKey(record(k)) }

// foreign is the error if most masters have other data in the place of the record.
func (ws *Works) foreign(k engine.Key) error {
	return &engine.ForeignData{Keys: []string{ws.workKey(k)}}
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

// KeepOf returns the time for which the end of a token's attempt is remembered; 0 if it is no token of an attempt.
func KeepOf(t engine.Token) time.Duration {
	parts := strings.Split(string(t), ".")
	if len(parts) != 5 {
		return 0
	}
	keep, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil || keep < 1 || keep > maxKeepOf {
		return 0
	}
	return time.Duration(keep) * time.Millisecond
}

// maxKeepOf bounds what KeepOf takes for a time, in ms: a client may send any token.
const maxKeepOf = int64(365 * 24 * time.Hour / time.Millisecond)

// parseWorkToken rejects tokens that Work cannot have issued.
func (ws *Works) parseWorkToken(t engine.Token) (workToken, error) {
	parts := strings.Split(string(t), ".")
	if len(parts) != 5 || len(parts[0]) != 27 {
		return workToken{}, ErrBadToken
	}
	attempt, err1 := strconv.ParseInt(parts[1], 10, 64)
	limit, err2 := strconv.ParseInt(parts[2], 10, 64)
	keep, err3 := strconv.ParseInt(parts[3], 10, 64)
	began, err4 := strconv.ParseInt(parts[4], 10, 64)
	if errors.Join(err1, err2, err3, err4) != nil || attempt < 1 || limit < attempt || began < 1 ||
		keep < 1 || keep > ws.engine.Pool.Options().MaxKeep.Milliseconds() {
		return workToken{}, ErrBadToken
	}
	return workToken{engine.Token(parts[0]), attempt, limit, time.Duration(keep) * time.Millisecond, began}, nil
}

var errForgotWork = errors.New("may have forgotten ends of work: votes on new work in")

// absence returns the reason for which a master's answer does not count: for the reason given, if the answer is one of
// which the master may have forgotten more. A memory that is too new for locks is also too new for
// work that it does not have, and for longer.
func (ws *Works) absence(a *pool.Answer, unsure bool, reason error) pool.Absence {
	if age := ws.workAge(); unsure && a.Seal.Good && a.Seal.WorkAge < age {
		return pool.AbsentFor(reason, age-a.Seal.WorkAge)
	}
	return ws.engine.Pool.Absence(a)
}

func (ws *Works) workAge() time.Duration {
	o := ws.engine.Pool.Options()
	return o.WorkAge()
}

func (ws *Works) outlivesWork(seal pool.Seal) bool { return seal.WorkAge >= ws.workAge() }

func (ws *Works) undoWork(g *pool.Group, lane int, key, token string, until time.Duration) {
	engine.RetryUntilAnswered(g, lane, key, pool.PendingRelease{
		Args: []string{"EVALSHA", ws.engine.Scripts.WorkUndo, "1", key, token}, Until: until,
	})
}
