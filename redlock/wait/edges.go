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
	"sync"
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

// waiterEdges are the edges of one waiter.
type waiterEdges struct {
	engine   *engine.Engine
	leases   *lease.Leases
	group    *pool.Group
	request  *Request
	id       string                                       // no two waiters have the same; a later one has a larger one
	deadlock func(keys []engine.Key, began time.Duration) // ends the wait, unless the search that began then took too long

	held []engine.LeaseID

	mu    sync.Mutex
	timer pool.Timer
	until time.Duration // they have expired by then; 0 = they were never written
	over  bool          // the wait is over
}

// start writes the edges from edgeInterval on. It reports whether there are any.
func (e *waiterEdges) start() bool {
	if e.held = e.holds(); len(e.held) == 0 {
		return false
	}
	e.id = fmt.Sprintf("%016d/%s", e.group.Time(), engine.NewToken())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.timer = e.engine.Clock.AfterFunc(edgeInterval, e.search)
	return true
}

// holds returns the leases of the waiter's connection on these masters. It may hold more on those of
// another group.
func (e *waiterEdges) holds() (held []engine.LeaseID) {
	for _, one := range e.request.Owner.Holds(e.leases.Runs) {
		if one.DB == e.request.DB && e.leases.Runs(one) && len(held) < maxEdges {
			held = append(held, one)
		}
	}
	return held
}

// keysOf are the edges of leases, on the masters.
func (e *waiterEdges) keysOf(held []engine.LeaseID) (keys []string) {
	for _, one := range held {
		keys = append(keys, e.engine.KeyOf(edgeKind, engine.Key(one.Token)))
	}
	return keys
}

const edgeKind = "w:"

// search writes the edges, searches for a cycle, and repeats. A connection that waits takes no
// locks, but it may lose some, or turn out to be a pool's.
func (e *waiterEdges) search() {
	r := e.request
	own := edge{id: e.id, key: e.engine.MasterKey(r.Key), writes: r.Kind() != lease.Shared}
	c := &cycleSearch{edges: e, began: e.engine.Clock.Now(), found: []edge{own}}
	holds := e.holds()
	e.mu.Lock()
	if !e.over {
		e.timer.Reset(edgeInterval)
		c.held = slices.DeleteFunc(holds, func(one engine.LeaseID) bool { return !slices.Contains(e.held, one) })
	}
	e.mu.Unlock()
	if len(c.held) > 0 {
		c.query(0)
	}
}

// stop ends the searches: the wait is over.
func (e *waiterEdges) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	e.timer.Stop()
}

// delete deletes the edges of a wait that is over. It calls done when no quorum has them.
func (e *waiterEdges) delete(done func()) {
	e.mu.Lock()
	until := e.until
	e.mu.Unlock()
	if until == 0 { // they were never written
		done()
		return
	}
	d := &edgeDeletion{keys: e.keysOf(e.held), until: until, done: done}
	d.ballot.Ask(e.engine, nil, e.group, nil, d)
}

// cycleSearch is one search. Its rounds, one after another, look for the holders of the keys of found.
type cycleSearch struct {
	edges *waiterEdges
	held  []engine.LeaseID // whose edges it writes
	began time.Duration
	found []edge // those of the waiter itself first
}

// edge leads from one waiting client to what it waits for.
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
	r.ballot.Ask(c.edges.engine, nil, c.edges.group, nil, r)
}

func (r *searchRound) Props() pool.Props {
	return pool.Props{Key: r.awaited.key, SharesKey: true, Sealed: true}
}

// Command also writes the edges, in the first round, unless the wait is over: on each lane their
// deletion comes last. No edge outlasts its lease.
func (r *searchRound) Command(m *pool.SendContext, c *pool.Command) bool {
	e, held := r.search.edges, r.search.held
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.over:
		return false
	case r.at > 0:
		held = nil
	default:
		e.until = max(e.until, m.Now+edgeLife)
	}
	c.Set("EVALSHA", e.engine.Scripts.Edges, strconv.Itoa(1+len(held)), r.awaited.key)
	c.Args = append(append(c.Args, e.keysOf(held)...), engine.Flag(r.awaited.writes), e.engine.KeyOf(edgeKind, ""), r.awaited.String())
	for _, one := range held {
		left := min(edgeLife, e.leases.Known(one).Until-m.Now)
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
// the last one of the cycle.
func (c *cycleSearch) closed(at int) {
	e, keys := c.edges, []engine.Key(nil)
	for i := at; ; i = c.found[i].from {
		if c.found[i].id > e.id {
			return
		}
		keys = append(keys, engine.Key(strings.TrimPrefix(c.found[i].key, e.engine.KeyPrefix)))
		if i == 0 {
			break
		}
	}
	slices.Reverse(keys)
	e.deadlock(keys, c.began)
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
