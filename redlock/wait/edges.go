// This file finds cycles of waits over several daemons.
//
// A waiter whose connection holds locks keeps an edge on the masters for each of them: the holder of
// this token waits for that key. Nothing is written for a waiter that holds nothing, nor for one that waits
// for less than edgeInterval. The waiter's daemon searches along the edges: which waiting clients hold
// the awaited key, which hold the keys that these wait for, and so on, until one of them is this
// waiter. An edge counts if a quorum of masters shows it together with a copy of that lock.
//
// DEADLOCK is never false: when the search began, each client of the cycle held the key that the one
// before it waited for, and none of these waits had been answered. A waiter with edges is
// answered only after a quorum of masters has deleted them, or after they have expired; of a wait
// that was answered before the search, no quorum has an edge. And a search counts only if it takes
// less than edgeInterval: a wait whose edge it found, and before it the locks of its client, had
// begun before. No edge outlasts its lease. (A client that has left receives no answer. Its edges
// count until they are gone.)
//
// Of the waiters in a cycle the one that came last gets DEADLOCK, whichever daemon finds it.
// Not found: cycles over permits, over several databases, of waiters for several keys or for another
// level of a reentrant lock, and of waiters that only wait behind others.

package wait

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/quorum"
)

const (
	// edgeInterval is how long a wait lasts before its edges are written, and then until they are
	// written again. A cycle is found when its last waiter writes its edges twice at the latest.
	edgeInterval = 250 * time.Millisecond
	// edgeLife is how long edges last that are not deleted: some lost messages longer.
	edgeLife = time.Second
	// maxSearch leaves room for clocks that run unevenly.
	maxSearch = edgeInterval * 3 / 4
	// maxEdges are the edges of one waiter, maxRounds the rounds of a search.
	maxEdges, maxRounds = 16, 32
)

// waiterEdges are the edges of one waiter; the mutex of Queues guards it.
type waiterEdges struct {
	w     *waiter
	id    string // no two waiters have the same; a later one has a larger one
	held  []engine.LeaseID
	timer pool.Timer
	until time.Duration // they have expired by then; 0 = they were never written
}

// startEdgesLocked writes the waiter's edges from edgeInterval on.
func (s *Queues) startEdgesLocked(w *waiter) {
	if s.engine.InProcess || w.request.Owner == nil || len(w.queue.keys) > 1 || w.peekOnly {
		return
	}
	e := &waiterEdges{w: w}
	if e.held = e.holdsLocked(); len(e.held) == 0 {
		return
	}
	e.id = fmt.Sprintf("%016d/%s", w.queue.group.Time(), engine.NewToken())
	if s.edges == nil {
		s.edges = map[*waiter]*waiterEdges{}
	}
	s.edges[w], e.timer = e, s.engine.Clock.AfterFunc(edgeInterval, e.search)
}

// holdsLocked is what the waiter's connection holds on these masters. It may hold more on those of
// another group.
func (e *waiterEdges) holdsLocked() (held []engine.LeaseID) {
	s, r := e.w.waits, &e.w.request
	for _, one := range r.Owner.Holds(s.leases.Runs) {
		if one.DB == r.DB && s.leases.Runs(one) && len(held) < maxEdges {
			held = append(held, one)
		}
	}
	return held
}

// keysOf are the edges of leases, on the masters.
func (s *Queues) keysOf(held []engine.LeaseID) (keys []string) {
	for _, one := range held {
		keys = append(keys, s.engine.KeyOf(edgeKind, engine.Key(one.Token)))
	}
	return keys
}

const edgeKind = "w:"

// search writes the edges, searches for a cycle, and repeats. A connection that waits takes no
// locks, but it may lose some, or turn out to be a pool's.
func (e *waiterEdges) search() {
	s, r := e.w.waits, &e.w.request
	own := edge{id: e.id, key: s.engine.MasterKey(r.Key), writes: r.Mode != lease.Shared}
	c := &cycleSearch{edges: e, began: s.engine.Clock.Now(), found: []edge{own}}
	s.mu.Lock()
	over := e.w.over
	if !over {
		e.timer.Reset(edgeInterval)
		c.held = slices.DeleteFunc(e.holdsLocked(), func(one engine.LeaseID) bool { return !slices.Contains(e.held, one) })
	}
	s.mu.Unlock()
	if len(c.held) > 0 {
		c.query(0)
	}
}

// cycleSearch is one search. Its rounds, one after another, look for the holders of the keys of found.
type cycleSearch struct {
	edges *waiterEdges
	held  []engine.LeaseID // whose edges it writes
	began time.Duration
	found []edge // those of the waiter itself first
}

// edge is what one waiting client waits for.
type edge struct {
	id, key string // the key on the masters
	writes  bool
	from    int // index of the client whose awaited key this one holds
}

// String is the edge as the masters have it.
func (e *edge) String() string { return e.id + " " + engine.Flag(e.writes) + " " + e.key }

func parseEdge(text string, from int) (e edge, ok bool) {
	words := strings.SplitN(text, " ", 3)
	if len(words) != 3 {
		return e, false
	}
	return edge{id: words[0], writes: words[1] == "1", key: words[2], from: from}, true
}

// searchRound queries all masters for the holders of one key.
type searchRound struct {
	engine.Plain
	ballot  engine.Ballot
	search  *cycleSearch
	at      int            // index of the client that waits for the key
	awaited edge           // what it waits for
	votes   map[string]int // by edge
}

var _ engine.Question = (*searchRound)(nil)

func (c *cycleSearch) query(at int) {
	r := &searchRound{search: c, at: at, awaited: c.found[at], votes: map[string]int{}}
	w := c.edges.w
	r.ballot.Ask(w.waits.engine, nil, w.queue.group, nil, r)
}

func (r *searchRound) Props() pool.Props {
	return pool.Props{Key: r.awaited.key, SharesKey: true, Sealed: true}
}

// Command also writes the edges, in the first round, unless the wait is over: on each lane their
// deletion comes last. No edge outlasts its lease.
func (r *searchRound) Command(m *pool.SendContext, c *pool.Command) bool {
	e, held := r.search.edges, r.search.held
	s := e.w.waits
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.w.over:
		return false
	case r.at > 0:
		held = nil
	default:
		e.until = max(e.until, m.Now+edgeLife)
	}
	c.Set("EVALSHA", s.engine.Scripts.Edges, strconv.Itoa(1+len(held)), r.awaited.key)
	c.Args = append(append(c.Args, s.keysOf(held)...), engine.Flag(r.awaited.writes), s.engine.KeyOf(edgeKind, ""), r.awaited.String())
	for _, one := range held {
		left := min(edgeLife, s.leases.Known(one).Until-m.Now)
		c.Args = append(c.Args, strconv.FormatInt(m.Time/1000+left.Milliseconds(), 10))
	}
	return true
}

func (r *searchRound) Read(a pool.Answer) engine.Reading {
	if a.Reply.Kind != pool.ReplyArray || !engine.CountsAsVote(a) {
		return engine.Uncounted
	}
	once := map[string]bool{} // of readers, one client may hold several
	for _, item := range a.Reply.Items {
		if !once[item.Str] {
			r.votes[item.Str]++
		}
		once[item.Str] = true
	}
	return engine.Neither
}

// Decide waits until the votes for every edge are decided.
func (r *searchRound) Decide(t *quorum.Tally) quorum.Result {
	pending := t.Pending()
	if pending >= t.Quorum {
		return quorum.Undecided
	}
	for _, n := range r.votes {
		if n < t.Quorum && n+pending >= t.Quorum {
			return quorum.Undecided
		}
	}
	return quorum.Granted
}

func (r *searchRound) Decided(quorum.Result) {
	c := r.search
	var texts []string
	for text, n := range r.votes {
		if n >= r.ballot.Tally.Quorum {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts) // a replay has the same order
	for _, text := range texts {
		e, ok := parseEdge(text, r.at)
		switch {
		case !ok:
		case e.id == c.edges.id && r.at > 0: // what its own token holds does not block it
			c.closed(r.at)
			return
		case !slices.ContainsFunc(c.found, func(f edge) bool { return f.id == e.id }):
			c.found = append(c.found, e)
		}
	}
	if r.at+1 < min(len(c.found), maxRounds) {
		c.query(r.at + 1)
	}
}

// closed: the client at this index waits for what the waiter holds. The waiter is answered if it is
// the last one of the cycle. If its request for the lock is under way, the next search decides.
func (c *cycleSearch) closed(at int) {
	w := c.edges.w
	s, deadlock := w.waits, &Deadlock{}
	for i := at; ; i = c.found[i].from {
		if c.found[i].id > c.edges.id {
			return
		}
		deadlock.Keys = append(deadlock.Keys, engine.Key(strings.TrimPrefix(c.found[i].key, s.engine.KeyPrefix)))
		if i == 0 {
			break
		}
	}
	slices.Reverse(deadlock.Keys)
	s.mu.Lock()
	if w.over || w.queue.contender == w || s.engine.Clock.Now()-c.began > maxSearch {
		s.mu.Unlock()
		return
	}
	w.endLocked(deadlock)
}

// answer answers a waiter that was in a queue, once its edges are gone.
func (w *waiter) answer(g lease.Grant, err error) {
	s := w.waits
	s.mu.Lock()
	w.pending = s.edges[w] != nil
	pending := w.pending
	s.mu.Unlock()
	if !pending {
		w.done(g, err)
		return
	}
	w.deleteEdges(func() {
		s.mu.Lock()
		left := !w.pending
		w.pending = false
		s.mu.Unlock()
		switch {
		case !left:
			w.done(g, err)
		case err == nil:
			s.leases.Undelivered(g)
		}
	})
}

// deleteEdges deletes the edges of a wait that is over. It calls done when no quorum has them.
func (w *waiter) deleteEdges(done func()) {
	s := w.waits
	s.mu.Lock()
	e := s.edges[w]
	delete(s.edges, w)
	s.mu.Unlock()
	if e == nil || e.until == 0 { // they were never written
		done()
		return
	}
	d := &edgeDeletion{keys: s.keysOf(e.held), until: e.until, done: done}
	d.ballot.Ask(s.engine, nil, s.engine.Pool.Group(w.request.DB), nil, d)
}

// edgeDeletion deletes the edges of a wait that is over.
type edgeDeletion struct {
	engine.Plain
	ballot engine.Ballot
	keys   []string
	until  time.Duration
	done   func()
}

var _ engine.Question = (*edgeDeletion)(nil)

func (d *edgeDeletion) Props() pool.Props {
	return pool.Props{Key: d.keys[0], Rest: d.keys[1:]}
}

func (d *edgeDeletion) Command(_ *pool.SendContext, c *pool.Command) bool {
	c.Set(append([]string{"DEL"}, d.keys...)...)
	return true
}

func (d *edgeDeletion) Read(a pool.Answer) engine.Reading {
	if a.Reply.Err != nil {
		return engine.Uncounted
	}
	return engine.Yes
}

// Decided: without a quorum the answer waits until the edges have expired everywhere.
func (d *edgeDeletion) Decided(r quorum.Result) {
	e := d.ballot.Engine
	if left := d.until + e.MasterTimeout + e.Late - e.Clock.Now(); r != quorum.Granted && left > 0 {
		e.Clock.AfterFunc(left, d.done)
		return
	}
	d.done()
}
