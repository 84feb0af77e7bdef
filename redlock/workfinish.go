// This file ends an attempt at work: done, failed, extended, or never delivered.

package redlock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
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
	token, err := l.parseWorkToken(r.Token)
	if err == nil {
		err = l.engine.Enter()
	}
	if err != nil {
		done(false, err)
		return
	}
	g := l.engine.Pool.Group(r.DB)
	l.engine.Submit(b, g, l.traced(r.Trace, &workFinish{
		locker: l, group: g, key: l.workKey(r.Key), token: token, how: how, start: l.engine.Clock.Now(),
		tally: quorum.Tally{N: l.engine.Pool.N(), Quorum: l.engine.Pool.Quorum()},
		done:  func(ok bool, err error) { l.engine.Leave(); done(ok, err) },
	}))
}

// workFinish is answered by every lane exactly once.
type workFinish struct {
	locker *Locker
	group  *pool.Group
	key    string
	token  workToken
	how    string // "D" or "F"
	start  time.Duration
	done   WorkEndDone

	mu      sync.Mutex
	tally   quorum.Tally
	missing engine.Missing
	newer   uint16 // bits: masters that recorded the end, but may have forgotten a later attempt
	over    bool
}

var errForgotTaker = errors.New("has a memory of only")

var _ pool.Operation = (*workFinish)(nil)

// Props: an end that a quorum acknowledged must be met by every later attempt, so it
// counts only under a good seal.
func (w *workFinish) Props() pool.Props { return pool.Props{Key: w.key, Sealed: true} }

// Propose does nothing: an end has no fence.
func (w *workFinish) Propose(int64) {}

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

// Answer counts one master. The end is repeated on a master that did not answer.
func (w *workFinish) Answer(a pool.Answer) {
	if a.Reply.Err != nil {
		w.group.RetryRelease(a.Lane, pool.PendingRelease{ArgsAt: w.words, Since: w.start, Until: w.start + w.token.keep})
	}
	code := int64(-1)
	if a.Reply.Kind == pool.ReplyInt {
		code = a.Reply.Int
	}
	w.mu.Lock()
	if w.over { // read without the lock
		w.mu.Unlock()
		return
	}
	switch {
	case code == 1 && a.Seal.Good && !w.remembers(a.Seal):
		w.newer |= 1 << a.Lane
		w.tally.Uncounted++
		w.missing.MarkCounted(a.Lane)
		w.missing.MarkMissing(a.Lane, pool.AbsentFor(errForgotTaker, a.Seal.Age))
	case code == 1 && a.Seal.Good:
		w.tally.Yes++
		w.missing.MarkCounted(a.Lane)
	case code == 0 && a.Seal.Good, code == 2 && a.Seal.Good && w.locker.outlivesWork(a.Seal):
		w.tally.No++
		w.missing.MarkCounted(a.Lane)
	default:
		w.tally.Uncounted++
		w.missing.MarkMissing(a.Lane, w.locker.workAbsence(&a, code))
	}
	v := w.tally.Result()
	if v == quorum.Undecided {
		w.mu.Unlock()
		return
	}
	w.over = true
	w.mu.Unlock()
	switch v {
	case quorum.Granted:
		if w.how == "D" {
			w.locker.engine.Counts.WorkDone.Add(1)
		}
		w.done(true, nil)
	case quorum.Refused:
		w.done(false, nil)
	default:
		note := "the end is repeated until every master has it; say it again to be sure"
		if newer := w.missing.PhrasesOf(w.locker.engine.Pool, w.newer); len(newer) > 0 {
			note += fmt.Sprintf("; %d of those that answered may have forgotten since the attempt began that it was taken over: %s",
				len(newer), strings.Join(newer, ", "))
		}
		w.done(false, w.locker.engine.NoQuorum(&w.missing, note))
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
	began := time.Duration(w.group.Time()/1000-w.token.began) * time.Millisecond
	return w.locker.workAge() == 0 || s.Age >= began+w.locker.engine.MaxTTL
}

// WorkExtend makes an attempt's lease last at least r.Timeout from now.
func (l *Locker) WorkExtend(b *Batch, r WorkEndRequest, done WorkExtendDone) {
	token, err := l.parseWorkToken(r.Token)
	if err == nil {
		err = l.engine.Enter()
	}
	if err != nil {
		done(Work{}, err)
		return
	}
	g := l.engine.Pool.Group(r.DB)
	l.engine.Submit(b, g, l.traced(r.Trace, &workExtension{
		locker: l, group: g, request: r, key: l.workKey(r.Key), token: token, start: l.engine.Clock.Now(),
		tally: quorum.Tally{N: l.engine.Pool.N(), Quorum: l.engine.Pool.Quorum()},
		done:  func(w Work, err error) { l.engine.Leave(); done(w, err) },
	}))
}

// workExtension is answered by every lane exactly once.
type workExtension struct {
	locker  *Locker
	group   *pool.Group
	request WorkEndRequest
	key     string
	token   workToken
	start   time.Duration
	done    WorkExtendDone

	mu      sync.Mutex
	tally   quorum.Tally
	missing engine.Missing
	over    bool
}

var _ pool.Operation = (*workExtension)(nil)

// Props: as for a lock's extension.
func (w *workExtension) Props() pool.Props { return pool.Props{Key: w.key, Sealed: true} }

// Propose does nothing: an extension keeps the fence of its attempt.
func (w *workExtension) Propose(int64) {}

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

// Answer counts one master. The script answers 1 only if the attempt runs there now. It
// answers 0 only if the master has another attempt or an end, which it cannot have
// forgotten. 3 is the answer from a record of another incarnation: the master may have
// forgotten which attempt took this one over, until its memory is older than any record.
func (w *workExtension) Answer(a pool.Answer) {
	code := int64(-1)
	if a.Reply.Kind == pool.ReplyInt {
		code = a.Reply.Int
	}
	w.mu.Lock()
	if w.over { // read without the lock
		w.mu.Unlock()
		return
	}
	switch {
	case code == 1 && a.Seal.Good && !a.Seal.Quarantined, code == 3 && a.Seal.Good && w.locker.outlivesWork(a.Seal):
		w.tally.Yes++
		w.missing.MarkCounted(a.Lane)
	case code == 0 && a.Seal.Good,
		code == 2 && a.Seal.Good && w.locker.outlivesWork(a.Seal):
		w.tally.No++
		w.missing.MarkCounted(a.Lane)
	default:
		w.tally.Uncounted++
		w.missing.MarkMissing(a.Lane, w.locker.workAbsence(&a, code))
	}
	v := w.tally.Result()
	if v == quorum.Undecided {
		w.mu.Unlock()
		return
	}
	w.over = true
	w.mu.Unlock()
	switch v {
	case quorum.Granted:
		w.grant()
	case quorum.Refused:
		w.done(Work{}, ErrNotHeld)
	default:
		w.done(Work{}, w.locker.engine.NoQuorum(&w.missing, "the lease is unchanged, its old validity stands"))
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
