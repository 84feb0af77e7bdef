// This file implements attempt-counted fail-over: one of many workers does a piece of
// work. If it dies, another takes over; after MAX attempts all of them give up.
//
// An attempt is a lock with a number. It is granted when a quorum of masters wrote the
// same number for the same token, each of them above the number that it had. So no number
// is granted twice, and never more than MAX are. Every later attempt meets a DONE that a
// quorum acknowledged. Every record has an expiry.

package redlock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"redlockd/pool"
)

// WorkRequest requests an attempt at a piece of work.
type WorkRequest struct {
	DB      int
	Key     Key
	Timeout time.Duration // lease of one attempt, 10 ms … MaxTTL
	Max     int64         // attempts, at least 1
	Keep    time.Duration // how long the end is remembered, ≤ MaxKeep; 0 = 2 × Timeout
	Wait    time.Duration // how long to wait while another attempt runs; 0 = not
	Meta    string
	Trace   *Trace // receives the votes; may be nil
}

// WorkState is what a request for work finds.
type WorkState string

// The four answers.
const (
	WorkAcquired  WorkState = "acquired"  // the caller does the work
	WorkRunning   WorkState = "running"   // another attempt runs
	WorkDone      WorkState = "done"      // the work is finished
	WorkExhausted WorkState = "exhausted" // all attempts failed
)

// Work is the answer to a WorkRequest.
type Work struct {
	State   WorkState
	Key     Key
	Attempt int64
	Token   Token         // acquired: proves this attempt
	Fence   Fence         // acquired
	Last    bool          // acquired: there is no attempt after this one
	Retry   time.Duration // running: the attempt times out then

	grant Grant
}

// Validity is what is left of an acquired attempt's lease.
func (w *Work) Validity() time.Duration { return w.grant.Validity() }

// Spent is the error of an attempt whose validity ran out before it could be handed over.
func (w *Work) Spent() error { return w.grant.ExpiredError() }

// WorkCompletion receives the answer; see LockDone.
type WorkCompletion func(Work, error)

// workPollInterval is how often a waiting request polls before the running attempt can
// have timed out: the attempt may have ended earlier.
const workPollInterval = 100 * time.Millisecond

// Work requests an attempt; done is called exactly once. leave ends the wait of a client
// that has left: an attempt that is granted after that is given back.
func (l *Locker) Work(b *Batch, r WorkRequest, done WorkCompletion) (leave func()) {
	if err := l.engine.Enter(); err != nil {
		done(Work{}, err)
		return func() {}
	}
	if r.Keep == 0 {
		r.Keep = min(2*r.Timeout, l.engine.Pool.Options().MaxKeep)
	}
	w := &workCall{locker: l, group: l.engine.Pool.Group(r.DB), request: r, began: l.engine.Clock.Now()}
	w.done = func(a Work, err error) { l.engine.Leave(); done(a, err) }
	w.try(b, 1)
	return func() { w.left.Store(true) }
}

// workCall is a request for work over all of its ballots.
type workCall struct {
	locker  *Locker
	group   *pool.Group
	request WorkRequest
	began   time.Duration
	round   time.Duration // start of the current series of ballots
	tries   int           // ballots in it
	left    atomic.Bool   // its client has left: no further ballot
	wait    workWait
	done    WorkCompletion
}

// try starts a ballot for attempt number n.
func (w *workCall) try(b *Batch, n int64) {
	l, now := w.locker, w.locker.engine.Clock.Now()
	if w.tries == 0 {
		w.round = now
	}
	w.tries++
	ballot := &workBallot{
		call: w, key: l.workKey(w.request.Key), attempt: n, start: now,
		token: workToken{
			secret: NewToken(), attempt: n, max: w.request.Max, keep: w.request.Keep,
			began: w.group.Time() / 1000,
		},
	}
	ballot.ballot.AskFenced(l.engine, b, w.group, w.request.Trace, &ballot.fencing, ballot)
}

func (l *Locker) workKey(k Key) string { return l.engine.KeyOf("work:", k) }

// workToken proves an attempt. It carries what the end of the attempt needs, so that any
// daemon can end it: secret.attempt.max.keep.began.
type workToken struct {
	secret       Token
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
func (l *Locker) parseWorkToken(t Token) (workToken, error) {
	parts := strings.Split(string(t), ".")
	if len(parts) != 5 || len(parts[0]) != 27 {
		return workToken{}, ErrBadToken
	}
	attempt, err1 := strconv.ParseInt(parts[1], 10, 64)
	limit, err2 := strconv.ParseInt(parts[2], 10, 64)
	keep, err3 := strconv.ParseInt(parts[3], 10, 64)
	began, err4 := strconv.ParseInt(parts[4], 10, 64)
	if errors.Join(err1, err2, err3, err4) != nil || attempt < 1 || limit < attempt || began < 1 ||
		keep < 1 || keep > l.engine.Pool.Options().MaxKeep.Milliseconds() {
		return workToken{}, ErrBadToken
	}
	return workToken{Token(parts[0]), attempt, limit, time.Duration(keep) * time.Millisecond, began}, nil
}
