// Router passes each operation to the group that has its key.

package groups

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/slots"
)

// Group is one group of masters.
type Group struct {
	Name   string
	Slots  slots.Ranges
	Locker *redlock.Locker
}

// Router serves all groups. It has the methods of a redlock.Locker that commands call.
type Router struct {
	groups []Group
	table  *slots.Table
	clock  pool.Clock
}

// New returns the router of groups that have each slot once. clock is that of their pools.
func New(all []Group, clock pool.Clock) (*Router, error) {
	var owners []slots.Owner
	for _, g := range all {
		owners = append(owners, slots.Owner{Name: g.Name, Slots: g.Slots})
	}
	if len(all) > maxGroups {
		return nil, fmt.Errorf("%d groups, at most %d are allowed", len(all), maxGroups)
	}
	table, err := slots.NewTable(owners)
	return &Router{all, table, clock}, err
}

// ErrSeveral means that the keys of a request belong to several groups and one group must have
// them all.
var ErrSeveral = errors.New("the keys belong to several groups of masters, and this needs them in one; nothing was done: give them one hash tag, such as {order:7}:a and {order:7}:b")

func (r *Router) indexOf(key redlock.Key) int { return r.table.Of(string(key)) }

func (r *Router) of(key redlock.Key) *redlock.Locker { return r.groups[r.indexOf(key)].Locker }

// GroupOf is the name of the group that has a key.
func (r *Router) GroupOf(key redlock.Key) string { return r.groups[r.indexOf(key)].Name }

// ofAll is the group that has all the keys; nil if there is none.
func (r *Router) ofAll(key redlock.Key, more []redlock.Key) *redlock.Locker {
	at := r.indexOf(key)
	if slices.ContainsFunc(more, func(other redlock.Key) bool { return r.indexOf(other) != at }) {
		return nil
	}
	return r.groups[at].Locker
}

// sum adds up what all groups count.
func sum[T int | int64](r *Router, of func(*redlock.Locker) T) (n T) {
	for _, g := range r.groups {
		n += of(g.Locker)
	}
	return n
}

func (r *Router) Lock(b *redlock.Batch, q redlock.LockRequest, done redlock.LockDone) {
	if one := r.ofAll(q.Key, q.More); one != nil {
		one.Lock(b, q, done)
		return
	}
	lockSeveral(r, q, done)
}

func (r *Router) Wait(b *redlock.Batch, q redlock.LockRequest, done redlock.LockDone) (leave func()) {
	if q.Owner != nil {
		q.Owner = owner{q.Owner, r}
	}
	if one := r.ofAll(q.Key, q.More); one != nil {
		return one.Wait(b, q, done)
	}
	return lockSeveral(r, q, done)
}

// owner is a connection whose leases are those of all groups. A cycle is found if all its waits
// are in one group.
type owner struct {
	redlock.Owner
	router *Router
}

func (o owner) Holds(func(redlock.Lease) bool) []redlock.Lease {
	return o.Owner.Holds(func(l redlock.Lease) bool { return o.router.of(l.Key).Runs(l) })
}

func (r *Router) Unlock(b *redlock.Batch, q redlock.UnlockRequest, done redlock.UnlockDone) {
	r.of(q.Key).Unlock(b, q, done)
}

func (r *Router) Extend(b *redlock.Batch, q redlock.ExtendRequest, done redlock.ExtendDone) {
	if one := r.ofAll(q.Key, q.More); one != nil {
		one.Extend(b, q, done)
		return
	}
	extendSeveral(r, b, q, done)
}

// GiveBack also takes a grant of several groups, which knows its parts.
func (r *Router) GiveBack(g redlock.Grant) { r.of(g.Key).GiveBack(g) }

func (r *Router) NextID(b *redlock.Batch, q redlock.IDRequest, done redlock.IDDone) {
	r.of(q.Name).NextID(b, q, done)
}

func (r *Router) ReadCounter(db int, name redlock.Key, done func(redlock.Counter, error)) {
	r.of(name).ReadCounter(db, name, done)
}

func (r *Router) Reseed(db int, name redlock.Key, value int64, done func(error)) {
	r.of(name).Reseed(db, name, value, done)
}

func (r *Router) DeleteCounter(db int, name redlock.Key, confirm int64, done func([]redlock.CounterFate, error)) {
	r.of(name).DeleteCounter(db, name, confirm, done)
}

// ListCounters fails if one group does: a list that lacks names would not show it.
func (r *Router) ListCounters(db int, done func([]redlock.Key, error)) {
	var all []redlock.Key
	each := gather(len(r.groups), func(err error) {
		if err != nil {
			all = nil
		}
		slices.Sort(all)
		done(slices.Compact(all), err)
	})
	for _, g := range r.groups {
		g.Locker.ListCounters(db, func(names []redlock.Key, err error) {
			each(func() { all = append(all, names...) }, err)
		})
	}
}

// gather calls done with the first error once each of n was called. add runs in the order of the
// calls, one at a time.
func gather(n int, done func(error)) (each func(add func(), err error)) {
	var mu sync.Mutex
	var first error
	return func(add func(), err error) {
		mu.Lock()
		add()
		first = cmp.Or(first, err)
		n--
		last := n == 0
		mu.Unlock()
		if last {
			done(first)
		}
	}
}

func (r *Router) Work(b *redlock.Batch, q redlock.WorkRequest, done redlock.WorkCompletion) (leave func()) {
	return r.of(q.Key).Work(b, q, done)
}

func (r *Router) WorkGiveBack(w redlock.Work) { r.of(w.Key).WorkGiveBack(w) }

func (r *Router) ReadWork(db int, key redlock.Key, done func(redlock.WorkView, error)) {
	r.of(key).ReadWork(db, key, done)
}

func (r *Router) WorkDone(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkEndDone) {
	r.of(q.Key).WorkDone(b, q, done)
}

func (r *Router) WorkFail(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkEndDone) {
	r.of(q.Key).WorkFail(b, q, done)
}

func (r *Router) WorkExtend(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkExtendDone) {
	r.of(q.Key).WorkExtend(b, q, done)
}

func (r *Router) View(b *redlock.Batch, db int, key redlock.Key, done redlock.ViewDone) {
	r.of(key).View(b, db, key, done)
}

func (r *Router) Write(b *redlock.Batch, q redlock.WriteRequest, done redlock.WriteDone) {
	r.of(q.Key).Write(b, q, done)
}

// RunScript runs where the script's locks are. Its other keys, such as channels, are nothing that
// the masters keep.
func (r *Router) RunScript(b *redlock.Batch, q redlock.ScriptRequest, done redlock.ScriptDone) {
	if one := r.ofAll(q.Keys[0], q.Keys[1:]); one != nil {
		one.RunScript(b, q, done)
		return
	}
	done(redlock.ScriptOutcome{}, ErrSeveral)
}

func (r *Router) AwaitFree(q redlock.AwaitRequest, done redlock.AwaitDone) (leave func()) {
	return r.of(q.Key).AwaitFree(q, done)
}

// Forward is for tests of libraries (--compat-test), which is not served with several groups.
func (r *Router) Forward(_ *redlock.Batch, _ redlock.ForwardRequest, done redlock.ForwardDone) {
	done(pool.Reply{}, ErrSeveral)
}

func (r *Router) ReadLock(db int, key redlock.Key, done func(redlock.LockView, error)) {
	r.of(key).ReadLock(db, key, done)
}

const (
	// cursorBits are those of a group's own cursor; the number of the group stands above them.
	cursorBits = redlock.CursorBits
	// maxGroups: a cursor is a signed number for many clients.
	maxGroups = 1 << (63 - cursorBits)
)

// ListLocks walks over one group after the other.
func (r *Router) ListLocks(q redlock.Listing, done func(redlock.LockPage, error)) {
	at := q.Cursor >> cursorBits
	if at >= uint64(len(r.groups)) {
		done(redlock.LockPage{}, redlock.ErrBadCursor)
		return
	}
	next := uint64(0)
	if at+1 < uint64(len(r.groups)) {
		next = (at + 1) << cursorBits
	}
	q.Cursor &= 1<<cursorBits - 1
	r.groups[at].Locker.ListLocks(q, func(page redlock.LockPage, err error) {
		if lost, ok := errors.AsType[*redlock.NoQuorum](err); ok && next > 0 {
			lost.Note += fmt.Sprintf("; the locks of group %s are missing, those of the next group begin at cursor %d", r.groups[at].Name, next)
		}
		if page.Cursor == 0 {
			page.Cursor = next
		} else {
			page.Cursor |= at << cursorBits
		}
		done(page, err)
	})
}

func (r *Router) Waiting(db int, wanted func(redlock.Key) bool, most int) (list []redlock.Waiting, all int) {
	for _, g := range r.groups {
		some, n := g.Locker.Waiting(db, wanted, most)
		list, all = append(list, some...), all+n
	}
	slices.SortStableFunc(list, func(a, b redlock.Waiting) int { return cmp.Compare(b.Since, a.Since) })
	return list[:min(len(list), most)], all
}

func (r *Router) Force(q redlock.ForceRequest, done func(bool, error)) { r.of(q.Key).Force(q, done) }

func (r *Router) Describe(id redlock.Lease, meta string, done func(bool, error)) {
	r.of(id.Key).Describe(id, meta, done)
}

func (r *Router) Revoke(db int, key redlock.Key, text string) int {
	return r.of(key).Revoke(db, key, text)
}

func (r *Router) Track(db int, key redlock.Key, seen redlock.Seen, report func(lost bool)) (stop func()) {
	return r.of(key).Track(db, key, seen, report)
}

// Listen keeps the order of a key's events: a key has one group.
func (r *Router) Listen(db int, onEvent func(redlock.Event)) (end func()) {
	var mu sync.Mutex
	var ends []func()
	for _, g := range r.groups {
		ends = append(ends, g.Locker.Listen(db, func(e redlock.Event) {
			mu.Lock()
			defer mu.Unlock()
			onEvent(e)
		}))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// Reports names the group of each master.
func (r *Router) Reports(db int) (all []redlock.MasterReport) {
	for _, g := range r.groups {
		reports := g.Locker.Reports(db)
		for i := range reports {
			reports[i].Group = g.Name
		}
		all = append(all, reports...)
	}
	return all
}

func (r *Router) DrainMaster(name string) error {
	return onMaster(r.groups, func(l *redlock.Locker) error { return l.DrainMaster(name) })
}

func (r *Router) UndrainMaster(name string) error {
	return onMaster(r.groups, func(l *redlock.Locker) error { return l.UndrainMaster(name) })
}

// onMaster tries the groups until one has the master.
func onMaster(all []Group, do func(*redlock.Locker) error) error {
	var none *pool.NoMaster
	for _, g := range all {
		err := do(g.Locker)
		lacks, ok := errors.AsType[*pool.NoMaster](err)
		switch {
		case !ok:
			return err
		case none == nil:
			none = lacks
		default:
			none.Names = append(none.Names, lacks.Names...)
		}
	}
	return none
}

func (r *Router) Counters() (c redlock.Counters) {
	for _, g := range r.groups {
		c.Add(g.Locker.Counters())
	}
	return c
}

func (r *Router) MasterCounters() (c pool.Counters) {
	for _, g := range r.groups {
		c.Add(g.Locker.MasterCounters())
	}
	return c
}

func (r *Router) EventCounts() (c redlock.EventCounts) {
	for _, g := range r.groups {
		c.Add(g.Locker.EventCounts())
	}
	return c
}

func (r *Router) InFlight() int { return sum(r, (*redlock.Locker).InFlight) }
func (r *Router) Waiters() int  { return sum(r, (*redlock.Locker).Waiters) }
func (r *Router) Holds() int    { return sum(r, (*redlock.Locker).Holds) }
func (r *Router) Tracked() int  { return sum(r, (*redlock.Locker).Tracked) }

// EndWaits and Close are those of all groups.
func (r *Router) EndWaits() {
	for _, g := range r.groups {
		g.Locker.EndWaits()
	}
}

func (r *Router) Close(timeout time.Duration) error {
	errs := make([]error, len(r.groups))
	var closing sync.WaitGroup
	for i, g := range r.groups {
		closing.Go(func() { errs[i] = g.Locker.Close(timeout) })
	}
	closing.Wait()
	return errors.Join(errs...)
}
