// This file ends an attempt at work: done, failed, extended, or never delivered.

package work

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

// EndRequest identifies an attempt by its token.
type EndRequest struct {
	DB      int
	Key     engine.Key
	Token   engine.Token
	Timeout time.Duration // WorkExtend: the new lease
	Result  *string       // WorkDone: shown with the work that is done; nil = nothing
	Trace   *engine.Trace // receives the votes; may be nil
}

// EndDone receives the result: true = the end is recorded, false = the attempt was
// taken over or is over.
type EndDone func(bool, error)

// ExtendDone receives the Work, whose Validity is what is left; see LockDone.
type ExtendDone func(Work, error)

// WorkDone marks the work done; no attempt starts while that is remembered.
func (ws *Works) WorkDone(b *engine.Batch, r EndRequest, done EndDone) {
	ws.finishWork(b, r, "D", done)
}

// WorkFail ends the attempt without success, so that the next may start at once.
func (ws *Works) WorkFail(b *engine.Batch, r EndRequest, done EndDone) {
	ws.finishWork(b, r, "F", done)
}

func (ws *Works) finishWork(b *engine.Batch, r EndRequest, how string, done EndDone) {
	w := &workFinish{how: how, result: r.Result, done: done}
	if err := w.begin(ws, r); err != nil {
		done(false, err)
		return
	}
	if b == nil { // the end and the next waiter's ballot leave together
		b = &engine.Batch{}
		defer b.Send()
	}
	w.ballot.Ask(ws.engine, b, ws.engine.Pool.Group(r.DB), r.Trace, w)
	ws.freed(b, r.DB, record(r.Key))
}

// workCommand has what the two ways to change an attempt have in common.
type workCommand struct {
	engine.Plain
	ballot engine.Ballot
	works  *Works
	name   engine.Key
	key    string
	token  workToken
	start  time.Duration
}

func (w *workCommand) begin(s *Works, r EndRequest) (err error) {
	w.works, w.name, w.key, w.start = s, r.Key, s.workKey(r.Key), s.engine.Clock.Now()
	if w.token, err = s.parseWorkToken(r.Token); err != nil {
		return err
	}
	return s.engine.Enter()
}

// Owned: an end that the next group of the work does not receive was not recorded.
func (w *workCommand) Owned(by func(engine.Key) bool) bool { return by(w.name) }

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
	if a.Seal.Good && (code == 0 || code == 2 && w.works.outlivesWork(a.Seal)) {
		return engine.No
	}
	w.ballot.Missing.MarkMissing(a.Lane, w.works.absence(&a, code == 2 || code == 3, errUnknownWork))
	return engine.Uncounted
}

// workFinish records the end of an attempt.
type workFinish struct {
	workCommand
	how    string  // "D" or "F"
	result *string // of "D"; nil = none
	done   EndDone

	newer uint16 // bits: masters that recorded the end, but may have forgotten a later attempt
}

var (
	errForgotTaker = errors.New("has a memory of only")
	errUnknownWork = errors.New("may have forgotten what became of the work: it is believed in")
)

var _ engine.Question = (*workFinish)(nil)

// Command records the end for as long as it is to be remembered.
func (w *workFinish) Command(m *pool.SendContext, c *pool.Command) bool {
	c.Set(w.words(m.Time)...)
	return true
}

func (w *workFinish) words(now int64) []string {
	t := w.token
	words := []string{"EVALSHA", w.works.engine.Scripts.WorkEnd, "1", w.key, t.String(),
		strconv.FormatInt(t.attempt, 10), w.how,
		strconv.FormatInt(quorum.Expiry(now, t.keep, w.works.engine.Late), 10),
		strconv.FormatInt(t.max, 10), strconv.FormatInt(t.keep.Milliseconds(), 10)}
	if w.result != nil {
		words = append(words, *w.result)
	}
	return words
}

// Failed repeats the end on a master that did not answer.
func (w *workFinish) Failed(a pool.Answer) {
	w.ballot.Group.RetryRelease(a.Lane, pool.PendingRelease{ArgsAt: w.words, Since: w.start, Until: w.start + w.token.keep})
}

func (w *workFinish) Read(a pool.Answer) engine.Reading {
	switch code := workCode(a); {
	case code == 1 && a.Seal.Good && !w.remembers(a.Seal):
		w.newer |= 1 << a.Lane
		w.ballot.Lacks(a.Lane, errForgotTaker, a.Seal.WorkAge)
		return engine.Neither
	case code == 1 && a.Seal.Good:
		return engine.Yes
	}
	return w.readNo(a)
}

func (w *workFinish) Decided(v quorum.Result) {
	e := w.works.engine
	e.Leave()
	switch v {
	case quorum.Granted:
		if w.how == "D" {
			e.Counts.WorkDone.Add(1)
		}
		w.done(true, nil)
	case quorum.Refused:
		w.done(false, nil)
	default:
		note := "the end is repeated until every master has it; repeat it to be sure"
		if newer := w.ballot.Missing.PhrasesOf(e.Pool, w.newer); len(newer) > 0 {
			note += fmt.Sprintf("; %d of those that answered may have forgotten since the attempt began that it was taken over: %s",
				len(newer), strings.Join(newer, ", "))
		}
		w.done(false, w.ballot.NoQuorum(note))
	}
}

// remembers reports whether a memory is unbroken since before the attempt began. If it is
// not, the master may have forgotten which attempt took this one over. All masters that
// granted the attempt were old enough to vote by then. The required age is therefore the
// margin for the clocks of masters that differ.
func (w *workFinish) remembers(s pool.Seal) bool {
	began := time.Duration(w.ballot.Group.Time()/1000-w.token.began) * time.Millisecond
	return w.works.workAge() == 0 || s.WorkAge >= began+w.works.engine.MaxTTL
}

// WorkExtend makes an attempt's lease last at least r.Timeout from now.
func (ws *Works) WorkExtend(b *engine.Batch, r EndRequest, done ExtendDone) {
	w := &workExtension{request: r, done: done}
	if err := w.begin(ws, r); err != nil {
		done(Work{}, err)
		return
	}
	w.ballot.Ask(ws.engine, b, ws.engine.Pool.Group(r.DB), r.Trace, w)
}

// workExtension extends the lease of an attempt.
type workExtension struct {
	workCommand
	request EndRequest
	done    ExtendDone
}

var _ engine.Question = (*workExtension)(nil)

func (w *workExtension) Command(m *pool.SendContext, c *pool.Command) bool {
	if m.Now >= quorum.Deadline(w.start, w.request.Timeout) {
		return false
	}
	c.Set("EVALSHA", w.works.engine.Scripts.WorkExtend, "1", w.key, w.token.String(),
		strconv.FormatInt(w.token.attempt, 10),
		strconv.FormatInt(quorum.Expiry(m.Time, w.request.Timeout, w.works.engine.Late), 10),
		strconv.FormatInt(w.token.keep.Milliseconds(), 10), m.Incarnation.ID)
	return true
}

// Read: the script answers 1 only if the attempt runs there now. 3 is the answer from a record
// of another incarnation: the master may have forgotten which attempt took this one over, until
// its memory is older than any record.
func (w *workExtension) Read(a pool.Answer) engine.Reading {
	switch code := workCode(a); {
	case code == 1 && engine.CountsAsVote(a), code == 3 && a.Seal.Good && w.works.outlivesWork(a.Seal):
		return engine.Yes
	}
	return w.readNo(a)
}

func (w *workExtension) Decided(v quorum.Result) {
	w.works.engine.Leave()
	switch v {
	case quorum.Granted:
		w.grant()
	case quorum.Refused:
		w.done(Work{}, engine.ErrNotHeld)
	default:
		w.done(Work{}, w.ballot.NoQuorum("the lease is unchanged, its old validity stands"))
	}
}

func (w *workExtension) grant() {
	e, r := w.works.engine, &w.request
	a := Work{
		State: Acquired, Key: r.Key, Attempt: w.token.attempt, Token: r.Token,
		Term: e.NewTerm(w.start, r.Timeout),
	}
	if a.Validity() <= 0 {
		e.Counts.Expired.Add(1)
		expired := a.ExpiredError()
		expired.Extension = true
		w.done(Work{}, expired)
		return
	}
	w.done(a, nil)
}

// WorkGiveBack undoes an attempt that never reached its worker; it does not count as a
// run.
func (ws *Works) WorkGiveBack(w Work) {
	ws.engine.Counts.GivenBack.Add(1)
	g, key := ws.engine.Pool.Group(w.db), ws.workKey(w.Key)
	for lane := range ws.engine.Pool.N() {
		ws.undoWork(g, lane, key, string(w.Token), w.undoUntil)
	}
	ws.freed(nil, w.db, record(w.Key))
}
