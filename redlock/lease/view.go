// This file reads what a quorum of masters has at a key.

package lease

import (
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// ViewDone is called exactly once, from any goroutine; err is *NoQuorum, *Busy
// or ErrShutdown.
type ViewDone func(View, error)

// View reads a key.
func (l *Leases) View(b *engine.Batch, db int, key engine.Key, done ViewDone) {
	if err := l.engine.Enter(); err != nil {
		done(View{}, err)
		return
	}
	w := &viewCall{leases: l, key: l.engine.MasterKey(key), done: done}
	w.ballot.Ask(l.engine, b, l.engine.Pool.Group(db), nil, w)
}

type viewCall struct {
	engine.Plain
	ballot engine.Ballot
	leases *Leases
	key    string
	done   ViewDone

	views  []View // of masters whose answer counts
	lanes  []int  // of these masters
	ends   [quorum.MaxMasters]int64
	agreed View
}

var _ engine.Question = (*viewCall)(nil)

func (w *viewCall) Props() pool.Props { return pool.Props{Key: w.key, SharesKey: true, Sealed: true} }

func (w *viewCall) Command(_ *pool.SendContext, c *pool.Command) bool {
	c.Set("EVALSHA", w.leases.engine.Scripts.View, "1", w.key)
	return true
}

// Read: a quarantined master may have forgotten what it does not show. A token that has a
// copy there instead holds nothing by it: no grant has counted that yes vote.
func (w *viewCall) Read(answer pool.Answer) engine.Reading {
	if one, ok := readView(answer.Reply, w.leases.engine.Late); ok && engine.CountsAsVote(answer) {
		w.views, w.lanes = append(w.views, one), append(w.lanes, answer.Lane)
		if len(answer.Reply.Items) == 4 {
			w.ends[answer.Lane] = answer.Reply.Items[3].Int
		}
		return engine.Neither
	}
	return engine.Uncounted
}

func (w *viewCall) Decide(t *quorum.Tally) quorum.Result {
	view, decided := agreement(w.views, t.N, t.Quorum)
	switch {
	case decided:
		w.agreed = view
		w.agreed.ends = w.endsOf(view)
		return quorum.Granted
	case t.Pending() == 0:
		return quorum.Unknown
	}
	return quorum.Undecided
}

// endsOf are the expiries of the copies that show this.
func (w *viewCall) endsOf(v View) *[quorum.MaxMasters]int64 {
	if v.Kind != "string" {
		return nil
	}
	ends := w.ends
	for i, one := range w.views {
		if one.Kind != v.Kind || one.Value != v.Value {
			ends[w.lanes[i]] = 0
		}
	}
	return &ends
}

func (w *viewCall) Decided(r quorum.Result) {
	w.leases.engine.Leave()
	if r == quorum.Granted {
		w.done(w.agreed, nil)
		return
	}
	w.done(View{}, w.ballot.NoQuorum("what stands at the key is unknown"))
}

// readView reads one master's answer; late is how much longer copies last than their leases.
func readView(r pool.Reply, late time.Duration) (View, bool) {
	switch {
	case r.Err != nil || r.Kind != pool.ReplyArray:
		return View{}, false
	case len(r.Items) == 0:
		return View{Kind: "none"}, true
	case len(r.Items) != 4:
		return View{}, false
	}
	v := View{Kind: r.Items[0].Str, Value: engine.Token(r.Items[1].Str), Left: Endless}
	if left := r.Items[2].Int; left >= 0 {
		v.Left = max(time.Duration(min(left, Endless.Milliseconds()))*time.Millisecond-late-(quorum.ExpiryGrain+quorum.ProlongedOffset)*time.Millisecond, time.Millisecond)
	}
	return v, true
}

// agreement is what a quorum shows alike, with the least of their times. The result is
// "none" as soon as no quorum can agree on anything else. decided is false while the
// masters that have not answered could change it.
func agreement(seen []View, n, quorum int) (View, bool) {
	most := 0
	for _, one := range seen {
		alike, left, longest := 0, one.Left, one.Left
		for _, other := range seen {
			if other.Kind == one.Kind && other.Value == one.Value {
				alike, left, longest = alike+1, min(left, other.Left), max(longest, other.Left)
			}
		}
		if alike >= quorum {
			one.Left, one.Longest, one.Free = left, longest, one.Kind == "none"
			return one, true
		}
		if one.Kind != "none" {
			most = max(most, alike)
		}
	}
	return View{Kind: "none"}, most+n-len(seen) < quorum
}
