// This file ends an attempt at work: done, failed, extended, or never delivered.

package redlock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// WorkEndRequest identifies an attempt by its token.
type WorkEndRequest struct {
	DB      int
	Key     Key
	Token   Token
	Timeout time.Duration // WorkExtend: the new lease
	Trace   *Trace        // receives the votes; may be nil
}

// WorkEndDone receives the result: true = the end is recorded, false = the attempt was
// taken over or is over.
type WorkEndDone func(bool, error)

// WorkExtendDone receives the Work, whose Validity is what is left; see LockDone.
type WorkExtendDone func(Work, error)

// WorkDone marks the work done; no attempt starts while that is remembered.
func (l *Locker) WorkDone(b *Batch, r WorkEndRequest, done WorkEndDone) {
	l.finishWork(b, r, "D", done)
}

// WorkFail ends the attempt without success, so that the next may start at once.
func (l *Locker) WorkFail(b *Batch, r WorkEndRequest, done WorkEndDone) {
	l.finishWork(b, r, "F", done)
}

func (l *Locker) finishWork(b *Batch, r WorkEndRequest, how string, done WorkEndDone) {
	w := &workFinish{how: how, done: done}
	if err := w.begin(l, r); err != nil {
		done(false, err)
		return
	}
	w.ballot.Ask(l.engine, b, l.engine.Pool.Group(r.DB), r.Trace, w)
}

// workCommand is what the two ways to change an attempt have in common.
type workCommand struct {
	engine.Plain
	ballot engine.Ballot
	locker *Locker
	key    string
	token  workToken
	start  time.Duration
}

// begin counts the operation on the attempt of a token.
func (w *workCommand) begin(l *Locker, r WorkEndRequest) (err error) {
	w.locker, w.key, w.start = l, l.workKey(r.Key), l.engine.Clock.Now()
	if w.token, err = l.parseWorkToken(r.Token); err != nil {
		return err
	}
	return l.engine.Enter()
}

// Props: what a quorum acknowledged must be met by every later attempt, so it counts only under
// a good seal.
func (w *workCommand) Props() pool.Props { return pool.Props{Key: w.key, Sealed: true} }

func (w *workCommand) IsYes(r pool.Reply) bool { return engine.IsOne(r) }

// workCode is the script's answer; −1 without one.
func workCode(a pool.Answer) int64 {
	if a.Reply.Kind != pool.ReplyInt {
		return -1
	}
	return a.Reply.Int
}

// readNo reads an answer that is no yes. The script answers 0 only if the master has another
// attempt or an end, which it cannot have forgotten.
func (w *workCommand) readNo(a pool.Answer) engine.Reading {
	code := workCode(a)
	if a.Seal.Good && (code == 0 || code == 2 && w.locker.outlivesWork(a.Seal)) {
		return engine.No
	}
	w.ballot.Missing.MarkMissing(a.Lane, w.locker.workAbsence(&a, code))
	return engine.Uncounted
}

// workFinish records the end of an attempt.
type workFinish struct {
	workCommand
	how  string // "D" or "F"
	done WorkEndDone

	newer uint16 // bits: masters that recorded the end, but may have forgotten a later attempt
}

var errForgotTaker = errors.New("has a memory of only")

var _ engine.Question = (*workFinish)(nil)

// Command records the end for as long as it is to be remembered.
func (w *workFinish) Command(m *pool.SendContext, c *pool.Command) bool {
	c.Set(w.words(m.Time)...)
	return true
}

func (w *workFinish) words(now int64) []string {
	t := w.token
	return []string{"EVALSHA", w.locker.engine.Scripts.WorkEnd, "1", w.key, t.String(),
		strconv.FormatInt(t.attempt, 10), w.how,
		strconv.FormatInt(quorum.Expiry(now, t.keep, w.locker.engine.Late), 10),
		strconv.FormatInt(t.max, 10), strconv.FormatInt(t.keep.Milliseconds(), 10)}
}

// Failed repeats the end on a master that did not answer.
func (w *workFinish) Failed(a pool.Answer) {
	w.ballot.Group.RetryRelease(a.Lane, pool.PendingRelease{ArgsAt: w.words, Since: w.start, Until: w.start + w.token.keep})
}

func (w *workFinish) Read(a pool.Answer) engine.Reading {
	switch code := workCode(a); {
	case code == 1 && a.Seal.Good && !w.remembers(a.Seal):
		w.newer |= 1 << a.Lane
		w.ballot.Lacks(a.Lane, errForgotTaker, a.Seal.Age)
		return engine.Neither
	case code == 1 && a.Seal.Good:
		return engine.Yes
	}
	return w.readNo(a)
}

func (w *workFinish) Decided(v quorum.Result) {
	l := w.locker
	l.engine.Leave()
	switch v {
	case quorum.Granted:
		if w.how == "D" {
			l.engine.Counts.WorkDone.Add(1)
		}
		w.done(true, nil)
	case quorum.Refused:
		w.done(false, nil)
	default:
		note := "the end is repeated until every master has it; say it again to be sure"
		if newer := w.ballot.Missing.PhrasesOf(l.engine.Pool, w.newer); len(newer) > 0 {
			note += fmt.Sprintf("; %d of those that answered may have forgotten since the attempt began that it was taken over: %s",
				len(newer), strings.Join(newer, ", "))
		}
		w.done(false, w.ballot.NoQuorum(note))
	}
}

var errUnknownWork = errors.New("may have forgotten what became of the work: it is believed in")

// workAbsence is why a master's answer about an attempt does not count.
func (l *Locker) workAbsence(a *pool.Answer, code int64) pool.Absence {
	if age := l.workAge(); (code == 2 || code == 3) && a.Seal.Good && a.Seal.Age < age {
		return pool.AbsentFor(errUnknownWork, age-a.Seal.Age)
	}
	return l.engine.Pool.Absence(a)
}

// remembers reports whether a memory is unbroken since before the attempt began. If it is
// not, the master may have forgotten which attempt took this one over. All masters that
// granted the attempt were old enough to vote by then. The required age is therefore the
// margin for the clocks of masters that differ.
func (w *workFinish) remembers(s pool.Seal) bool {
	began := time.Duration(w.ballot.Group.Time()/1000-w.token.began) * time.Millisecond
	return w.locker.workAge() == 0 || s.Age >= began+w.locker.engine.MaxTTL
}

// WorkExtend makes an attempt's lease last at least r.Timeout from now.
func (l *Locker) WorkExtend(b *Batch, r WorkEndRequest, done WorkExtendDone) {
	w := &workExtension{request: r, done: done}
	if err := w.begin(l, r); err != nil {
		done(Work{}, err)
		return
	}
	w.ballot.Ask(l.engine, b, l.engine.Pool.Group(r.DB), r.Trace, w)
}

// workExtension extends the lease of an attempt.
type workExtension struct {
	workCommand
	request WorkEndRequest
	done    WorkExtendDone
}

var _ engine.Question = (*workExtension)(nil)

// Command moves the lease's end.
func (w *workExtension) Command(m *pool.SendContext, c *pool.Command) bool {
	if m.Now >= quorum.Deadline(w.start, w.request.Timeout) {
		return false
	}
	c.Set("EVALSHA", w.locker.engine.Scripts.WorkExtend, "1", w.key, w.token.String(),
		strconv.FormatInt(w.token.attempt, 10),
		strconv.FormatInt(quorum.Expiry(m.Time, w.request.Timeout, w.locker.engine.Late), 10),
		strconv.FormatInt(w.token.keep.Milliseconds(), 10), m.Incarnation.ID)
	return true
}

// Read: the script answers 1 only if the attempt runs there now. 3 is the answer from a record
// of another incarnation: the master may have forgotten which attempt took this one over, until
// its memory is older than any record.
func (w *workExtension) Read(a pool.Answer) engine.Reading {
	switch code := workCode(a); {
	case code == 1 && engine.CountsAsVote(a), code == 3 && a.Seal.Good && w.locker.outlivesWork(a.Seal):
		return engine.Yes
	}
	return w.readNo(a)
}

func (w *workExtension) Decided(v quorum.Result) {
	w.locker.engine.Leave()
	switch v {
	case quorum.Granted:
		w.grant()
	case quorum.Refused:
		w.done(Work{}, ErrNotHeld)
	default:
		w.done(Work{}, w.ballot.NoQuorum("the lease is unchanged, its old validity stands"))
	}
}

func (w *workExtension) grant() {
	l, r := w.locker, &w.request
	a := Work{
		State: WorkAcquired, Key: r.Key, Attempt: w.token.attempt, Token: r.Token,
		grant: Grant{Key: r.Key, db: r.DB, until: quorum.Deadline(w.start, r.Timeout), ttl: r.Timeout, start: w.start, clock: l.engine.Clock},
	}
	if a.Validity() <= 0 {
		l.engine.Counts.Expired.Add(1)
		w.done(Work{}, &Expired{Elapsed: l.engine.Clock.Now() - w.start, TTL: r.Timeout, Extension: true})
		return
	}
	w.done(a, nil)
}

// WorkGiveBack undoes an attempt that never reached its worker; it does not count as a
// run.
func (l *Locker) WorkGiveBack(w Work) {
	l.engine.Counts.GivenBack.Add(1)
	g, key := l.engine.Pool.Group(w.grant.db), l.workKey(w.Key)
	for lane := range l.engine.Pool.N() {
		l.undoWork(g, lane, key, string(w.Token), w.grant.start+w.grant.ttl+l.engine.Pool.Options().MaxKeep)
	}
}
