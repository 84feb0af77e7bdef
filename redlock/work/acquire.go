package work

import (
	"cmp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
	"redlockd/redlock/stored"
)

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

// workBallot proposes one attempt to all masters.
type workBallot struct {
	engine.Plain
	ballot  engine.Ballot
	fencing quorum.Fencing
	call    *workCall
	key     string
	attempt int64
	token   workToken
	start   time.Duration

	// Guarded by the ballot's lock.
	made     [quorum.MaxMasters]bool // masters that made a record of this attempt, or may have
	running  []workReply             // attempts of other requests, one a master
	finished int                     // masters on which the work is done
	done     workReply               // the newest of their records
	spent    int                     // masters on which no attempt is left
	highest  int64                   // highest attempt number seen
	taken    int64                   // highest attempt number that is over
	won      bool
}

var _ engine.Question = (*workBallot)(nil)

// Props: as for a lock.
func (w *workBallot) Props() pool.Props { return pool.Props{Key: w.key, Exclusive: true, Sealed: true} }

func (w *workBallot) Command(m *pool.SendContext, c *pool.Command) bool {
	r := &w.call.request
	if m.Now >= quorum.Deadline(w.start, r.Timeout) {
		return false
	}
	end := quorum.Expiry(m.Time, r.Timeout, w.call.works.engine.Late)
	c.Set("EVALSHA", w.call.works.engine.Scripts.WorkTry, "1", w.key, w.token.String(),
		strconv.FormatInt(w.attempt, 10), strconv.FormatInt(r.Max, 10),
		strconv.FormatInt(end, 10), strconv.FormatInt(end+r.Keep.Milliseconds(), 10),
		strconv.FormatInt(r.Keep.Milliseconds(), 10), r.Meta, m.Incarnation.ID)
	return true
}

// workReply is one master's answer.
type workReply struct {
	code    int64 // see worktry.lua; 0 = no answer
	attempt int64 // for code 1: 1 if the master may not know what was before
	left    time.Duration
	owner   string  // of another request's attempt, or of the one that is done
	result  *string // of done work; nil = its worker left none
}

// stored is the attempt of a work that is done.
func (r workReply) stored() stored.Attempt { return stored.Attempt{Number: r.attempt, Owner: r.owner} }

func readWork(r pool.Reply) workReply {
	if r.Kind != pool.ReplyArray || len(r.Items) == 0 {
		return workReply{}
	}
	code, _ := r.Items[0].Number()
	answer := workReply{code: code}
	if len(r.Items) > 1 {
		answer.attempt, _ = r.Items[1].Number()
	}
	if len(r.Items) > 2 {
		ms, _ := r.Items[2].Number()
		answer.left = time.Duration(min(ms, 1<<40)) * time.Millisecond
	}
	if len(r.Items) > 3 {
		answer.owner = r.Items[3].Str
	}
	if len(r.Items) > 4 {
		result := r.Items[4].Str
		answer.result = &result
	}
	return answer
}

func (w *workBallot) Read(a pool.Answer) engine.Reading {
	answer := readWork(a.Reply)
	w.made[a.Lane] = mayBeMade(a, answer)
	return w.count(a, answer)
}

// Late: a record that comes after a grant is part of the attempt.
func (w *workBallot) Late(a pool.Answer, _ quorum.Result) {
	made := mayBeMade(a, readWork(a.Reply))
	w.ballot.Lock()
	won := w.won
	if won {
		w.made[a.Lane] = made
	}
	w.ballot.Unlock()
	if !won && made {
		w.undo(a.Lane)
	}
}

func mayBeMade(a pool.Answer, answer workReply) bool {
	return a.Reply.Err != nil && a.Sent || answer.code == 1
}

// count: a master votes if its record of the work is reliable. The record is reliable if
// it was written in the incarnation that votes, and a granted attempt has proved it. A
// master without such a record votes only if it cannot have forgotten more, that is, if
// its memory is older than any record can be. A record of an earlier incarnation may have
// come back with an older file. It may then lack the end or the attempt that this master
// acknowledged later.
func (w *workBallot) count(a pool.Answer, answer workReply) engine.Reading {
	seal := a.Seal
	oldEnough := !seal.Quarantined && (answer.attempt == 0 || w.call.works.outlivesWork(seal))
	switch {
	case answer.code == 1 && seal.Good && oldEnough:
		return engine.Yes
	case (answer.code <= 1 && answer.code != -1) || !seal.Good:
		w.ballot.Missing.MarkMissing(a.Lane, w.call.works.absence(&a, answer.code == 1 && answer.attempt != 0, errForgotWork))
		return engine.Uncounted
	case answer.code == -1:
		return engine.WrongType
	case answer.code == 2:
		w.running = append(w.running, answer)
	case answer.code == 3:
		w.finished++
		if w.done.code == 0 || answer.stored().IsNewer(w.done.stored()) {
			w.done = answer
		}
	case answer.code == 4:
		w.spent++
		w.taken = max(w.taken, answer.attempt)
	case answer.code == 5:
		w.taken = max(w.taken, answer.attempt)
	}
	w.highest = max(w.highest, answer.attempt)
	return engine.No
}

func (w *workBallot) Decide(t *quorum.Tally) quorum.Result {
	v := t.Result()
	if v == quorum.Undecided || v == quorum.Granted {
		return v
	}
	// There is no grant, but the blocking attempt may show itself only on the masters
	// still to come: two daemons reach them in different order.
	if t.Pending() > 0 && w.finished < t.Quorum && w.spent < t.Quorum {
		return quorum.Undecided
	}
	return v
}

func (w *workBallot) Owned(by func(engine.Key) bool) bool { return by(w.call.request.Key) }

func (w *workBallot) DecidedLocked(v quorum.Result) { w.won = v == quorum.Granted }

func (w *workBallot) Decided(v quorum.Result) {
	if v == quorum.Granted {
		w.grant(w.ballot.Fence)
		return
	}
	w.fail(v)
}

func (w *workBallot) grant(fence int64) {
	e, r := w.call.works.engine, &w.call.request
	a := Work{
		State: Acquired, Key: r.Key, Attempt: w.attempt, Token: engine.Token(w.token.String()),
		Fence: engine.Fence(fence), Last: w.attempt == r.Max,
		Term: e.NewTerm(w.start, r.Timeout), undoUntil: w.undoUntil(), db: r.DB,
	}
	if a.Validity() <= 0 {
		w.takeBack()
		e.Counts.Expired.Add(1)
		w.call.finish(Work{}, a.ExpiredError())
		return
	}
	e.Counts.WorkStarted.Add(1)
	w.call.finish(a, nil)
}

// fail takes the attempt back and reports what blocks it.
func (w *workBallot) fail(v quorum.Result) {
	w.takeBack()
	key, needed := w.call.request.Key, w.ballot.Tally.Quorum
	same := w.mostRunning()
	switch {
	case w.finished >= needed:
		w.call.finish(Work{State: Done, Key: key, Attempt: w.done.attempt, Result: w.done.result}, nil)
	case w.spent >= needed:
		w.call.finish(Work{State: Exhausted, Key: key, Attempt: w.highest}, nil)
	case len(same) >= needed:
		w.call.finish(Work{State: Running, Key: key, Attempt: same[0].attempt, Retry: w.retry(same)}, nil)
	case w.ballot.MostlyWrongType():
		w.call.finish(Work{}, w.call.works.foreign(key))
	case v == quorum.Unknown:
		w.call.finish(Work{}, w.ballot.NoQuorum(""))
	default:
		w.again()
	}
}

// mostRunning are the masters on which the same attempt runs, for the attempt that runs
// on most masters. Attempts that split the masters between them run nowhere.
func (w *workBallot) mostRunning() []workReply {
	most, _ := quorum.MostAlike(w.running, func(a, b workReply) bool { return a.owner == b.owner })
	return slices.DeleteFunc(slices.Clone(w.running), func(one workReply) bool { return one.owner != most.owner })
}

// retry returns the time from which a quorum of masters will be free of the running attempt: the
// masters that do not run it are free now.
func (w *workBallot) retry(same []workReply) time.Duration {
	slices.SortFunc(same, func(a, b workReply) int { return cmp.Compare(a.left, b.left) })
	free := w.ballot.Tally.N - len(same)
	return same[max(0, w.ballot.Tally.Quorum-free-1)].left + time.Millisecond
}

// again tries the next number at once if this one has been used up. Otherwise it tries
// the same number later, at a random time, because competing requests split the masters.
// What they take back is not used up.
func (w *workBallot) again() {
	c := w.call
	number := min(max(w.attempt, w.taken+1), c.request.Max)
	delay := time.Duration(0)
	if c.tries > 1 || w.taken < w.attempt {
		delay = c.works.engine.SplitPause(c.tries)
	}
	switch now := c.works.engine.Clock.Now(); {
	case now+delay <= c.round+2*c.works.engine.MasterTimeout:
		if delay == 0 {
			c.try(nil, number)
			return
		}
		c.works.engine.Clock.AfterFunc(delay, func() { c.try(nil, number) })
	case len(w.running) > 0: // it may run, or be about to be taken back: poll again soon
		same := w.mostRunning()
		retry := min(w.retry(same), 2*c.works.engine.MasterTimeout)
		c.finish(Work{State: Running, Key: c.request.Key, Attempt: same[0].attempt, Retry: retry}, nil)
	default:
		c.finish(Work{}, w.ballot.NoQuorum("the masters disagree about this work; try again"))
	}
}

func (w *workBallot) takeBack() {
	w.ballot.Lock()
	w.won = false
	all := w.made
	w.ballot.Unlock()
	for lane, made := range all {
		if made {
			w.undo(lane)
		}
	}
}

// undo restores what a master had before this attempt. The attempt's token is its own, so
// nothing else can match.
func (w *workBallot) undo(lane int) {
	works := w.call.works
	works.engine.Counts.Undone.Add(1)
	works.undoWork(w.call.group, lane, w.key, w.token.String(), w.undoUntil())
}

// undoUntil returns the time at which every record of the attempt has expired.
func (w *workBallot) undoUntil() time.Duration {
	return w.start + w.call.request.Timeout + w.call.request.Keep
}
