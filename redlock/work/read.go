package work

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// View is a piece of work as a quorum of masters shows it.
type View struct {
	State   State // "" = there is no record; "failed" attempts show as Exhausted or Running with no time left
	Attempt int64
	Max     int64
	Holder  engine.Token  // token of the last attempt
	Left    time.Duration // until the attempt's lease ends; 0 = it has
	Keep    time.Duration
	Forgot  time.Duration // until the record is gone
	Meta    string
	Result  *string // done: what its worker left; nil = nothing
	Votes   int     // masters that agree
}

// ReadWork reads the work from every master; the answer is what a quorum agrees on. A
// master that may have forgotten proves nothing by a missing record: see
// workBallot.count.
func (ws *Works) ReadWork(db int, key engine.Key, done func(View, error)) {
	if err := ws.engine.Enter(); err != nil {
		done(View{}, err)
		return
	}
	g := ws.engine.Pool.Group(db)
	ws.engine.Collect(nil, g, pool.Props{Sealed: true}, func(m *pool.SendContext, c *pool.Command) {
		c.Set("EVALSHA", ws.engine.Scripts.WorkRead, "1", ws.workKey(key), m.Incarnation.ID)
	}, func(answers []pool.Answer) {
		ws.engine.Leave()
		done(ws.viewOf(key, answers))
	})
}

// viewOf finds the (attempt, owner, state) that a quorum shows. Times are those of the
// master whose record expires first.
func (ws *Works) viewOf(key engine.Key, answers []pool.Answer) (View, error) {
	type record struct {
		attempt int64
		holder  engine.Token
		state   string
	}
	views, wrongType := map[record]View{}, 0
	var m engine.Missing
	for lane := range answers {
		a := &answers[lane]
		if a.Reply.Kind != pool.ReplyArray || !a.Seal.Good {
			m.MarkMissing(lane, ws.engine.Pool.Absence(a))
			continue
		}
		if len(a.Reply.Items) == 1 {
			m.MarkCounted(lane)
			wrongType++
			continue
		}
		view, state, known := ws.workViewOf(a.Reply.Items)
		if !known && !ws.outlivesWork(a.Seal) {
			m.MarkMissing(lane, pool.AbsentFor(errUnknownWork, ws.workAge()-a.Seal.WorkAge))
			continue
		}
		m.MarkCounted(lane)
		at := record{view.Attempt, view.Holder, state}
		if before, ok := views[at]; ok {
			view.Left, view.Forgot = min(view.Left, before.Left), min(view.Forgot, before.Forgot)
			view.Votes, view.Result = before.Votes, before.Result
		}
		view.Votes++
		views[at] = view
	}
	for _, view := range views {
		if view.Votes >= ws.engine.Pool.Quorum() {
			return view, nil
		}
	}
	if wrongType >= ws.engine.Pool.Quorum() {
		return View{}, ws.foreign(key)
	}
	note := "how the work stands is unknown at the moment"
	if m.Answered() >= ws.engine.Pool.Quorum() { // and no quorum of them agrees
		note = "the masters disagree about this work at the moment"
	}
	return View{}, ws.engine.NoQuorum(&m, note)
}

// workViewOf reads one master's answer. Its times include the time by which
// every copy outlives its lease; the view's times do not. known: nothing that this master
// acknowledged can be missing. For a work that is done, missing records change nothing.
func (ws *Works) workViewOf(items []pool.Reply) (view View, state string, known bool) {
	if len(items) < 9 {
		return View{}, "", false
	}
	number := func(i int) int64 { n, _ := items[i].Number(); return n }
	ms := func(i int) time.Duration { return time.Duration(number(i)) * time.Millisecond }
	left := ms(3)
	view = View{
		Attempt: number(1), Holder: engine.Token(items[2].Str), Left: max(0, left-ws.engine.Late), Max: number(4),
		Keep: ms(5), Meta: items[6].Str, Forgot: max(time.Millisecond, ms(7)-ws.engine.Late),
	}
	if len(items) > 9 {
		result := items[9].Str
		view.Result = &result
	}
	switch {
	case items[0].Str == "D":
		view.State = Done
	case left == 0 && view.Attempt >= view.Max:
		view.State = Exhausted
	default:
		view.State = Running
	}
	return view, string(view.State), view.State == Done || number(8) == 1
}
