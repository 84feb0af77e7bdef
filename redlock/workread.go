package redlock

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// WorkView is a piece of work as a quorum of masters shows it.
type WorkView struct {
	State   WorkState // "" = there is no record; "failed" attempts show as WorkExhausted or WorkRunning with no time left
	Attempt int64
	Max     int64
	Holder  Token         // token of the last attempt
	Left    time.Duration // until the attempt's lease ends; 0 = it has
	Keep    time.Duration
	Forgot  time.Duration // until the record is gone
	Meta    string
	Votes   int // masters that agree
}

// ReadWork reads the work from every master; the answer is what a quorum agrees on. A
// master that may have forgotten proves nothing by a missing record: see
// workBallot.count.
func (l *Locker) ReadWork(db int, key Key, done func(WorkView, error)) {
	if err := l.engine.Enter(); err != nil {
		done(WorkView{}, err)
		return
	}
	g := l.engine.Pool.Group(db)
	l.engine.Collect(g, func(m *pool.SendContext, c *pool.Command) {
		c.Set("EVALSHA", l.engine.Scripts.WorkRead, "1", l.workKey(key), m.Incarnation.ID)
	}, func(answers []pool.Answer) {
		l.engine.Leave()
		done(l.viewOf(answers))
	})
}

// viewOf finds the (attempt, owner, state) that a quorum shows. Times are those of the
// master whose record expires first.
func (l *Locker) viewOf(answers []pool.Answer) (WorkView, error) {
	type record struct {
		attempt int64
		holder  Token
		state   string
	}
	views, wrongType := map[record]WorkView{}, 0
	var m engine.Missing
	for lane := range answers {
		a := &answers[lane]
		if a.Reply.Kind != pool.ReplyArray || !a.Seal.Good {
			m.MarkMissing(lane, l.engine.Pool.Absence(a))
			continue
		}
		if len(a.Reply.Items) == 1 {
			m.MarkCounted(lane)
			wrongType++
			continue
		}
		view, state, known := l.workViewOf(a.Reply.Items)
		if !known && !l.outlivesWork(a.Seal) {
			m.MarkMissing(lane, pool.AbsentFor(errUnknownWork, l.workAge()-a.Seal.Age))
			continue
		}
		m.MarkCounted(lane)
		at := record{view.Attempt, view.Holder, state}
		if before, ok := views[at]; ok {
			view.Left, view.Forgot = min(view.Left, before.Left), min(view.Forgot, before.Forgot)
			view.Votes = before.Votes
		}
		view.Votes++
		views[at] = view
	}
	for _, view := range views {
		if view.Votes >= l.engine.Pool.Quorum() {
			return view, nil
		}
	}
	if wrongType >= l.engine.Pool.Quorum() {
		return WorkView{}, ErrWrongType
	}
	note := "how the work stands is unknown at the moment"
	if m.Answered() >= l.engine.Pool.Quorum() { // and no quorum of them agrees
		note = "the masters disagree about this work at the moment"
	}
	return WorkView{}, l.engine.NoQuorum(&m, note)
}

// workViewOf reads one master's answer. Its times include the time by which
// every copy outlives its lease; the view's times do not. known: nothing that this master
// acknowledged can be missing. For a work that is done, missing records change nothing.
func (l *Locker) workViewOf(items []pool.Reply) (view WorkView, state string, known bool) {
	if len(items) != 9 {
		return WorkView{}, "", false
	}
	number := func(i int) int64 { n, _ := items[i].Number(); return n }
	ms := func(i int) time.Duration { return time.Duration(number(i)) * time.Millisecond }
	left := ms(3)
	view = WorkView{
		Attempt: number(1), Holder: Token(items[2].Str), Left: max(0, left-l.engine.Late), Max: number(4),
		Keep: ms(5), Meta: items[6].Str, Forgot: max(time.Millisecond, ms(7)-l.engine.Late),
	}
	switch {
	case items[0].Str == "D":
		view.State = WorkDone
	case left == 0 && view.Attempt >= view.Max:
		view.State = WorkExhausted
	default:
		view.State = WorkRunning
	}
	return view, string(view.State), view.State == WorkDone || number(8) == 1
}
