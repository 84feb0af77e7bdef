// This file reads what a quorum of masters has at a key.

package redlock

import (
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// View is what a quorum agrees on.
type View struct {
	Kind  string // "none", "string" for an exclusive lock, "zset" readers, "hash" permits
	Free  bool   // a quorum has nothing; without it "none" may be copies of several tokens, none of which has a quorum
	Value Token  // of a string
	// Left is how long at least a quorum will hold it, above 0; Endless without an
	// expiry. It excludes the time by which copies may outlast their lease, so it is
	// never more than was requested.
	Left time.Duration
}

// ViewDone is called exactly once, from any goroutine; err is *NoQuorum, *Busy
// or ErrShutdown.
type ViewDone func(View, error)

// View reads a key.
func (l *Locker) View(b *Batch, db int, key Key, done ViewDone) {
	if err := l.engine.Enter(); err != nil {
		done(View{}, err)
		return
	}
	g := l.engine.Pool.Group(db)
	l.engine.Submit(b, g, &viewCall{locker: l, group: g, key: l.engine.MasterKey(key), done: done})
}

// viewCall is one View.
type viewCall struct {
	locker *Locker
	group  *pool.Group
	key    string
	done   ViewDone

	mu       sync.Mutex
	missing  engine.Missing
	views    []View // of masters whose answer counts
	answered int
	over     bool
}

var _ pool.Operation = (*viewCall)(nil)

func (w *viewCall) Props() pool.Props { return pool.Props{Key: w.key, SharesKey: true, Sealed: true} }
func (w *viewCall) Propose(int64)     {}

func (w *viewCall) Command(_ *pool.SendContext, c *pool.Command) bool {
	c.Set("EVALSHA", w.locker.engine.Scripts.View, "1", w.key)
	return true
}

func (w *viewCall) Answer(answer pool.Answer) {
	w.mu.Lock()
	if w.over { // read without the lock
		w.mu.Unlock()
		return
	}
	w.answered++
	// A quarantined master may have forgotten what it does not show. A token that has a
	// copy there instead holds nothing by it: no grant has counted that yes vote.
	if one, ok := w.locker.readView(answer.Reply); ok && engine.CountsAsVote(answer) {
		w.views = append(w.views, one)
		w.missing.MarkCounted(answer.Lane)
	} else {
		w.missing.MarkMissing(answer.Lane, w.locker.engine.Pool.Absence(&answer))
	}
	seen, decided := agreement(w.views, w.locker.engine.Pool.N(), w.locker.engine.Pool.Quorum())
	w.over = decided || w.answered == w.locker.engine.Pool.N()
	over := w.over
	w.mu.Unlock()
	switch {
	case decided:
		w.locker.engine.Leave()
		w.done(seen, nil)
	case over:
		w.locker.engine.Leave()
		w.done(View{}, w.locker.engine.NoQuorum(&w.missing, "what stands at the key is unknown"))
	}
}

func (l *Locker) readView(r pool.Reply) (View, bool) {
	switch {
	case r.Err != nil || r.Kind != pool.ReplyArray:
		return View{}, false
	case len(r.Items) == 0:
		return View{Kind: "none"}, true
	case len(r.Items) != 3:
		return View{}, false
	}
	v := View{Kind: r.Items[0].Str, Value: Token(r.Items[1].Str), Left: Endless}
	if left := r.Items[2].Int; left >= 0 {
		v.Left = max(time.Duration(min(left, Endless.Milliseconds()))*time.Millisecond-l.engine.Late-(quorum.ExpiryGrain+quorum.ProlongedOffset)*time.Millisecond, time.Millisecond)
	}
	return v, true
}

// agreement is what a quorum shows alike, with the least of their times. The result is
// "none" as soon as no quorum can agree on anything else. decided is false while the
// masters that have not answered could change it.
func agreement(seen []View, n, quorum int) (View, bool) {
	most := 0
	for _, one := range seen {
		alike, left := 0, one.Left
		for _, other := range seen {
			if other.Kind == one.Kind && other.Value == one.Value {
				alike, left = alike+1, min(left, other.Left)
			}
		}
		if alike >= quorum {
			one.Left, one.Free = left, one.Kind == "none"
			return one, true
		}
		if one.Kind != "none" {
			most = max(most, alike)
		}
	}
	return View{Kind: "none"}, most+n-len(seen) < quorum
}
