// walk lists the locks of a database. It walks over the masters, one step per call, and misses
// no lock that is held from its first step to its last.
//
// A step is a SCAN on one master, with a bounded COUNT, and an inspection of what it found,
// both some keys at a time. The masters are inspected one after another, and no more of them
// than the decision needs. So a client that wants a lock meanwhile has a quorum of other
// masters that are not delayed, however many locks there are.
//
// The walk takes the masters one after another, too, until it has finished so many that every
// quorum has one of them (n − quorum + 1). A master counts only if its memory is old enough to
// remember every lease. It must also be the same process with the same memory from its first
// step to its last. So every held lock has a copy on one of these masters. As with SCAN, what
// comes or goes meanwhile may be reported or not.
//
// All state of a walk is in its cursor, so any daemon can take any step. A key has copies on
// several masters. The daemon remembers which keys a connection's walk has reported
// (reported.go); a walk that goes on elsewhere may report a key again. That an earlier master has
// a copy now would be no reason to leave a key out: the copy may have been repaired since that
// master was walked.

package inspect

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// ErrBadCursor: no walk has answered with this cursor.
var ErrBadCursor = errors.New("invalid cursor: it must be 0, or what the last DLOCKS of the same walk answered")

// Listing is one step of a walk.
type Listing struct {
	DB     int
	Client int64                 // whose walk it is; 0 = keys may be reported several times
	Cursor uint64                // 0 begins a walk
	Count  int                   // about how many keys the step covers
	Prefix string                // of the wanted keys; "" = any
	Wanted func(engine.Key) bool // selects among those
}

// ListedLock is a lock as a quorum shows it.
type ListedLock struct {
	Key  engine.Key
	View LockView
}

// LockPage has the locks that a step found; the walk is over when Cursor is 0.
type LockPage struct {
	Cursor uint64
	Locks  []ListedLock
}

const (
	// maxScanCount and maxKeysPerInspect bound one command, so that other operations come in
	// between: a quarter and a tenth of a millisecond of a master's time (1 µs a key to find
	// it, 6 µs to inspect it). Measured with 16 callers that pause and 20 000 locks, in two to
	// four runs each on two cores that had much else to do. The median of an acquire beside a
	// walk is a multiple of that without: 2.5 to 2.9 times when all masters inspect 32 keys at
	// once, 1.4 to 1.6 times when one after another inspects 50, and 1.0 to 1.3 times with 16.
	// The 99th percentile was inconclusive.
	maxScanCount      = 250
	maxKeysPerInspect = 16
	maxKeyLength      = 512 // bytes; a longer key is not a lock
	// A walk rests after every inspection for as long as that took. With 100 000 locks and 16
	// callers that pause, the 99th percentile of an acquire is 1.4 times that without a walk,
	// and 1.9 times without the rest (medians of 5 rounds). maxRest is for masters that are far
	// away: what takes them so long is not work.
	maxRest = 2 * time.Millisecond
)

// walkCursor is a cursor's content. A SCAN cursor is below the size of the
// master's hash table, which has far fewer than 2³¹ places.
type walkCursor struct {
	scan     uint64 // 31 bits: the master's own cursor
	memory   uint64 // 15 bits: of the hash of the process and its memory, 0 before its first step
	complete int    // one bit for each master that was walked to the end and counts, in the order of names
	at       int    // the master that is being walked, in the order of names
}

const (
	scanBits, memoryBits = 31, 15
	memoryMask           = 1<<memoryBits - 1
	// CursorBits are those that a cursor uses; package groups has its own above them.
	CursorBits = scanBits + memoryBits + quorum.MaxMasters + 1
)

// pack writes at as the bit above those of the masters before it.
func (c walkCursor) pack() uint64 {
	high := uint64(1<<c.at | c.complete)
	return (high<<memoryBits|c.memory)<<scanBits | c.scan
}

// unpackCursor rejects a cursor that no walk over n masters answers.
func unpackCursor(text uint64, n int) (walkCursor, error) {
	if text == 0 {
		return walkCursor{}, nil
	}
	high := text >> (scanBits + memoryBits)
	c := walkCursor{scan: text & (1<<scanBits - 1), memory: text >> scanBits & memoryMask, at: bits.Len64(high) - 1}
	if c.at < 0 || c.at >= n || (c.scan == 0) != (c.memory == 0) {
		return walkCursor{}, ErrBadCursor
	}
	c.complete = int(high) &^ (1 << c.at)
	return c, nil
}

// walk is one step under way.
type walk struct {
	inspector *Inspector
	group     *pool.Group
	listing   Listing
	order     []int // lanes by the name of their master: the same in every daemon
	cursor    walkCursor
	missing   engine.Missing // the masters that this step skipped
	walked    int            // index in order of the master that the keys are from
	left      int            // keys that the step still covers
	page      LockPage
	done      func(LockPage, error)
}

// ListLocks takes one step of a walk over the locks of a database.
func (ir *Inspector) ListLocks(r Listing, done func(LockPage, error)) {
	cursor, err := unpackCursor(r.Cursor, ir.engine.Pool.N())
	if err == nil {
		err = ir.engine.Enter()
	}
	if err != nil {
		done(LockPage{}, err)
		return
	}
	g := ir.engine.Pool.Group(r.DB)
	w := &walk{inspector: ir, group: g, listing: r, order: byName(g), cursor: cursor, left: r.Count}
	keys := ir.walks.take(r.Client, r.DB, r.Cursor)
	w.done = func(p LockPage, err error) {
		ir.engine.Leave()
		next := p.Cursor
		if err != nil { // the step may be repeated
			next = r.Cursor
		}
		p.Locks = slices.DeleteFunc(p.Locks, func(one ListedLock) bool { return !ir.walks.isNew(one.Key, keys) })
		ir.walks.keep(r.Client, r.DB, next, keys)
		done(p, err)
	}
	w.step()
}

func byName(g *pool.Group) (order []int) {
	statuses := g.Statuses()
	for lane := range statuses {
		order = append(order, lane)
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(statuses[a].Name, statuses[b].Name) })
	return order
}

// step sends a SCAN to the master whose turn it is.
func (w *walk) step() {
	if w.cursor.at == len(w.order) {
		w.done(LockPage{}, w.inspector.engine.NoQuorum(w.unwalked(),
			"too few masters could be walked to the end, so locks may be missing; begin again with cursor 0"))
		return
	}
	scan := &walkStep{walk: w}
	// A seal proves that the process and its memory are the ones of the cursor.
	w.group.Push(w.order[w.cursor.at], &engine.Message{Plan: pool.Props{Sealed: true}, Write: scan.command, OnAnswer: scan.onAnswer})
}

var (
	errPassedOver = errors.New("was passed over by an earlier step")
	errNotWalked  = errors.New("is not walked yet")
)

// unwalked are the masters that have not been walked to the end, and why.
func (w *walk) unwalked() *engine.Missing {
	m := &w.missing
	for place, lane := range w.order {
		switch {
		case w.cursor.complete&(1<<place) != 0:
			m.MarkCounted(lane)
		case m.Reason(lane) != pool.Absence{}:
		case place < w.cursor.at:
			m.MarkMissing(lane, pool.AbsentFor(errPassedOver, 0))
		default:
			m.MarkMissing(lane, pool.AbsentFor(errNotWalked, 0))
		}
	}
	return m
}

// walkStep is one SCAN on one master.
type walkStep struct {
	walk   *walk
	scan   uint64 // its cursor
	memory uint64
}

// command goes on where the cursor is. A cursor of another process is worthless, and what
// another memory has shown was not what this one holds: then the scan begins anew.
func (s *walkStep) command(m *pool.SendContext, c *pool.Command) bool {
	w := s.walk
	s.memory, s.scan = memoryOf(m.Incarnation), w.cursor.scan
	if s.memory != w.cursor.memory {
		s.scan = 0
	}
	c.Set("SCAN", strconv.FormatUint(s.scan, 10), "MATCH", pool.GlobEscape(w.inspector.engine.MasterKey(engine.Key(w.listing.Prefix)))+"*",
		"COUNT", strconv.Itoa(min(w.left, maxScanCount)))
	return true
}

// memoryOf identifies a process and its memory; never 0.
func memoryOf(incarnation *pool.Incarnation) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(incarnation.RunID + incarnation.ID))
	return h.Sum64()%memoryMask + 1
}

// onAnswer takes one page of keys. A master that does not answer is skipped.
func (s *walkStep) onAnswer(a pool.Answer) {
	w, r := s.walk, a.Reply
	w.walked = w.cursor.at
	if !a.Seal.Good || r.Kind != pool.ReplyArray || len(r.Items) != 2 {
		w.missing.MarkMissing(a.Lane, w.inspector.engine.Pool.Absence(&a))
		w.cursor = walkCursor{complete: w.cursor.complete, at: w.cursor.at + 1}
		w.step()
		return
	}
	next, err := strconv.ParseUint(r.Items[0].Str, 10, scanBits)
	switch {
	case err != nil:
		w.missing.MarkMissing(a.Lane, pool.AbsentFor(fmt.Errorf("answered SCAN with the cursor %q", r.Items[0].Str), 0))
		w.done(LockPage{}, w.inspector.engine.NoQuorum(w.unwalked(), "begin again with cursor 0"))
		return
	case next != 0:
		w.cursor.scan, w.cursor.memory = next, s.memory
	default:
		if !a.Seal.Quarantined {
			w.cursor.complete |= 1 << w.cursor.at
		} else {
			w.missing.MarkMissing(a.Lane, w.inspector.engine.Pool.Absence(&a))
		}
		w.cursor = walkCursor{complete: w.cursor.complete, at: w.cursor.at + 1}
	}
	w.left -= maxScanCount
	w.inspect(w.wanted(r.Items[1].Items))
}

// wanted are the keys of a page that may be locks and that the listing wants, once each.
func (w *walk) wanted(items []pool.Reply) (keys []engine.Key) {
	prefix := w.inspector.engine.MasterKey("")
	for _, item := range items {
		name, ours := strings.CutPrefix(item.Str, prefix)
		key := engine.Key(name)
		if ours && name != "" && len(name) <= maxKeyLength && !strings.HasPrefix(name, "redlockd:") && w.listing.Wanted(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// inspect inspects the keys, some at a time.
func (w *walk) inspect(keys []engine.Key) {
	if len(keys) == 0 {
		w.finish()
		return
	}
	some := keys[:min(len(keys), maxKeysPerInspect)]
	s := &walkInspect{walk: w, keys: some, rest: keys[len(some):], answers: make([]pool.Answer, len(w.order)), began: w.inspector.engine.Clock.Now()}
	s.next()
}

// walkInspect shows some keys to one master after another until a quorum has decided about all
// of them. A lock that is held throughout has copies on the same quorum whenever its masters
// are queried, so this is as good as querying all at once.
type walkInspect struct {
	walk    *walk
	keys    []engine.Key
	rest    []engine.Key  // to be inspected next
	answers []pool.Answer // by lane; a master that was not queried proves nothing
	queried int
	known   int // answers that count
	began   time.Duration
}

func (wi *walkInspect) command(_ *pool.SendContext, c *pool.Command) bool {
	l := wi.walk.inspector
	c.Set("EVALSHA", l.engine.Scripts.Inspect, strconv.Itoa(len(wi.keys)))
	for _, key := range wi.keys {
		c.Args = append(c.Args, l.engine.MasterKey(key))
	}
	c.Args = append(c.Args, strconv.Itoa(maxListedHolders))
	return true
}

func (wi *walkInspect) onAnswer(a pool.Answer) {
	wi.answers[a.Lane] = a
	wi.queried++
	if wi.counts(a) {
		wi.known++
	}
	wi.next()
}

func (wi *walkInspect) counts(a pool.Answer) bool {
	return a.Seal.Good && a.Reply.Kind == pool.ReplyArray && len(a.Reply.Items) == len(wi.keys)
}

// next queries one more master, unless those that were queried are enough.
func (wi *walkInspect) next() {
	w := wi.walk
	all := wi.queried == len(w.order)
	if wi.known < w.inspector.engine.Pool.Quorum() && !all {
		wi.query()
		return
	}
	locks, decided, err := wi.aggregate()
	switch {
	case err != nil:
		w.done(LockPage{}, err)
	case !decided && !all:
		wi.query()
	default:
		w.page.Locks = append(w.page.Locks, locks...)
		w.rest(wi.began, func() { w.inspect(wi.rest) })
	}
}

// rest leaves the machines to other work for as long as the walk has used them.
func (w *walk) rest(began time.Duration, then func()) {
	clock := w.inspector.engine.Clock
	if d := min(clock.Now()-began, maxRest); d > 0 {
		clock.AfterFunc(d, then)
		return
	}
	then()
}

// query begins with the master that is being walked: it has the keys.
func (wi *walkInspect) query() {
	w := wi.walk
	inspection := &engine.Message{Plan: pool.Props{Sealed: true}, Write: wi.command, OnAnswer: wi.onAnswer}
	w.group.Push(w.order[(w.walked+wi.queried)%len(w.order)], inspection)
}

// aggregate returns which of the keys are locks. It is decided when no other master could
// change a state or add a holder.
func (wi *walkInspect) aggregate() (locks []ListedLock, decided bool, err error) {
	l := wi.walk.inspector
	decided = true
	masters := make([]LockOnMaster, len(wi.answers))
	for i, key := range wi.keys {
		wi.readAnswers(masters, i)
		view, err := l.viewOf(masters)
		if err != nil {
			return nil, false, err
		}
		unsure := func(h Holder) bool { return !h.Confirmed }
		decided = decided && !slices.ContainsFunc(view.Holders, unsure)
		if len(view.Holders) > 0 { // a holder that no master shows is not found by the walk either; then it ends in an error
			view.Masters = nil
			locks = append(locks, ListedLock{key, view})
		}
	}
	return locks, decided, nil
}

// readAnswers reads the masters' answers about the i-th key.
func (wi *walkInspect) readAnswers(masters []LockOnMaster, i int) {
	for lane := range masters {
		a, m := wi.answers[lane], &masters[lane]
		*m = LockOnMaster{}
		if wi.counts(a) {
			m.Known, m.Quarantined = true, a.Seal.Quarantined
			m.read(a.Reply.Items[i].Items)
			continue
		}
		m.absence = wi.walk.inspector.engine.Pool.Absence(&a)
	}
}

// finish goes on with the step, or answers it. The walk is over once every quorum has a master
// that was walked to the end.
func (w *walk) finish() {
	l := w.inspector
	switch {
	case bits.OnesCount(uint(w.cursor.complete)) > l.engine.Pool.N()-l.engine.Pool.Quorum():
		w.page.Cursor = 0
	case w.left > 0, w.cursor.at == len(w.order): // the latter ends in an error
		w.step()
		return
	default:
		w.page.Cursor = w.cursor.pack()
	}
	w.done(w.page, nil)
}
