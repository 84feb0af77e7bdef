// Router passes each operation to the group that has its key.

package groups

import (
	"errors"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

// Router serves all groups. It has the methods of a redlock.Locker that commands call.
type Router struct {
	directory
	parked parking
}

// New returns the router of the groups of a map, in its order. The pools and Lockers have its hooks.
func New(all []Group, m *Map) *Router {
	r := &Router{directory: directory{groups: all, slots: m, clock: m.clock}}
	m.OnChange(r.onChange)
	return r
}

// onChange lets go of what waits in a group that has lost its slot, and of what waited for a move.
func (r *Router) onChange() {
	for _, g := range r.groups {
		g.Locker.DropMoved()
	}
	r.parked.wake()
}

func (r *Router) Lock(b *redlock.Batch, q redlock.LockRequest, done redlock.LockDone) {
	if err := r.slots.frozen(q.Key, q.More...); err != nil {
		done(redlock.Grant{}, err)
		return
	}
	if one := r.ofAll(q.Key, q.More); one != nil {
		one.Lock(b, q, done)
		return
	}
	lockSeveral(&r.directory, q, done)
}

func (r *Router) Wait(b *redlock.Batch, q redlock.LockRequest, done redlock.LockDone) (leave func()) {
	if q.Owner != nil {
		q.Owner = owner{q.Owner, &r.directory}
	}
	w := newRoutedWait(r.slots, &r.parked, q.Wait, append([]redlock.Key{q.Key}, q.More...)...)
	w.request = &q
	w.fail = func(err error) { done(redlock.Grant{}, err) }
	w.start = func(b *redlock.Batch, left time.Duration) (leave func()) {
		again := q
		again.Wait = left
		answered := func(g redlock.Grant, err error) {
			if !w.follows(err) {
				done(g, err)
			}
		}
		if one := r.ofAll(q.Key, q.More); one != nil {
			return one.Wait(b, again, answered)
		}
		return lockSeveral(&r.directory, again, answered)
	}
	w.begin(b)
	return w.onLeave
}

func (r *Router) Unlock(b *redlock.Batch, q redlock.UnlockRequest, done redlock.UnlockDone) {
	one, left := r.goesTo(q.Key)
	one.Unlock(b, q, unlessLeft(left, done, isFalse))
}

func (r *Router) Extend(b *redlock.Batch, q redlock.ExtendRequest, done redlock.ExtendDone) {
	if err := r.slots.frozen(q.Key, q.More...); err != nil {
		done(redlock.Grant{}, err)
		return
	}
	if !r.inGroup(r.indexOf(q.Key), q.More) {
		if q.Exact { // all or none, which groups cannot decide together
			done(redlock.Grant{}, ErrSeveral)
			return
		}
		extendSeveral(&r.directory, b, q, done)
		return
	}
	r.extend(b, q, done)
}

// GiveBack also takes a grant of several groups, which knows its parts.
func (r *Router) GiveBack(g redlock.Grant) { r.of(g.Key).GiveBack(g) }

func (r *Router) NextID(b *redlock.Batch, q redlock.IDRequest, done redlock.IDDone) {
	if err := r.slots.frozen(q.Name); err != nil {
		done(0, err)
		return
	}
	r.of(q.Name).NextID(b, q, done)
}

func (r *Router) ReadCounter(db int, name redlock.Key, done func(redlock.Counter, error)) {
	r.of(name).ReadCounter(db, name, done)
}

// Reseed fails if the map of the counter changes meanwhile: its next group may not have the value.
// While its slot is frozen, it is set in the group that it leaves: the move does not go on without it.
func (r *Router) Reseed(db int, name redlock.Key, value int64, done func(error)) {
	was := r.slots.at(name)
	r.of(name).Reseed(db, name, value, func(err error) {
		if err == nil && r.slots.at(name) != was {
			err = ownership{r.slots, int(was.group)}.Moving(name)
		}
		done(err)
	})
}

func (r *Router) DeleteCounter(db int, name redlock.Key, confirm int64, done func([]redlock.CounterFate, error)) {
	if err := r.slots.frozen(name); err != nil {
		done(nil, err)
		return
	}
	r.of(name).DeleteCounter(db, name, confirm, done)
}

func (r *Router) Work(b *redlock.Batch, q redlock.WorkRequest, done redlock.WorkCompletion) (leave func()) {
	w := newRoutedWait(r.slots, &r.parked, q.Wait, q.Key)
	w.fail = func(err error) { done(redlock.Work{}, err) }
	w.start = func(b *redlock.Batch, left time.Duration) (leave func()) {
		again := q
		again.Wait = max(left, 0)
		return r.of(q.Key).Work(b, again, func(work redlock.Work, err error) {
			if !w.follows(err) {
				done(work, err)
			}
		})
	}
	w.begin(b)
	return w.onLeave
}

func (r *Router) WorkGiveBack(w redlock.Work) { r.of(w.Key).WorkGiveBack(w) }

func (r *Router) ReadWork(db int, key redlock.Key, done func(redlock.WorkView, error)) {
	one, left := r.goesTo(key)
	one.ReadWork(db, key, unlessLeft(left, done, func(v redlock.WorkView) bool { return v.State == "" }))
}

func (r *Router) WorkDone(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkEndDone) {
	endWork(r, b, q, (*redlock.Locker).WorkDone, done)
}

func (r *Router) WorkFail(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkEndDone) {
	endWork(r, b, q, (*redlock.Locker).WorkFail, done)
}

func endWork(r *Router, b *redlock.Batch, q redlock.WorkEndRequest, end func(*redlock.Locker, *redlock.Batch, redlock.WorkEndRequest, redlock.WorkEndDone), done redlock.WorkEndDone) {
	if err := r.slots.frozen(q.Key); err != nil {
		done(false, err)
		return
	}
	one, left := r.goesTo(q.Key)
	end(one, b, q, unlessLeft(left, done, isFalse))
}

func (r *Router) WorkExtend(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkExtendDone) {
	if err := r.slots.frozen(q.Key); err != nil {
		done(redlock.Work{}, err)
		return
	}
	one, left := r.goesTo(q.Key)
	one.WorkExtend(b, q, func(w redlock.Work, err error) { done(w, ifStill(err, left)) })
}

func (r *Router) View(b *redlock.Batch, db int, key redlock.Key, done redlock.ViewDone) {
	one, left := r.goesTo(key)
	one.View(b, db, key, unlessLeft(left, done, func(v redlock.View) bool { return v.Free }))
}

// Observe: copies in another group than before count as changed.
func (r *Router) Observe(b *redlock.Batch, db int, key redlock.Key, done redlock.ObserveDone) {
	one, left := r.goesTo(key)
	one.Observe(b, db, key, unlessLeft(left, done, func(o *redlock.Observation) bool { return o.Free }))
}

func (r *Router) Write(b *redlock.Batch, q redlock.WriteRequest, done redlock.WriteDone) {
	if err := r.slots.frozen(q.Key); err != nil && q.Effect != redlock.WriteDeletes {
		done(false, err)
		return
	}
	one, left := r.goesTo(q.Key)
	one.Write(b, q, unlessLeft(left, done, isFalse))
}

func (r *Router) AwaitFree(q redlock.AwaitRequest, done redlock.AwaitDone) (leave func()) {
	w := newRoutedWait(r.slots, &r.parked, q.Timeout, q.Key)
	w.fail = func(err error) {
		if errors.Is(err, redlock.ErrLeft) {
			err = nil
		}
		done(false, err)
	}
	w.start = func(_ *redlock.Batch, left time.Duration) (leave func()) {
		again := q
		again.Timeout = left
		return r.of(q.Key).AwaitFree(again, func(free bool, err error) {
			if !w.follows(err) {
				done(free, err)
			}
		})
	}
	w.begin(nil)
	return w.onLeave
}

// Forward is for tests of libraries (--compat-test), which is not served with several groups.
func (r *Router) Forward(_ *redlock.Batch, _ redlock.ForwardRequest, done redlock.ForwardDone) {
	done(pool.Reply{}, ErrSeveral)
}

func (r *Router) ReadLock(db int, key redlock.Key, done func(redlock.LockView, error)) {
	one, left := r.goesTo(key)
	one.ReadLock(db, key, unlessLeft(left, done, func(v redlock.LockView) bool { return v.State == redlock.LockFree }))
}

func (r *Router) Force(q redlock.ForceRequest, done func(bool, error)) {
	one, left := r.goesTo(q.Key)
	one.Force(q, unlessLeft(left, done, isFalse))
}

func (r *Router) Describe(id redlock.Lease, meta string, done func(bool, error)) {
	one, left := r.goesTo(id.Key)
	one.Describe(id, meta, unlessLeft(left, done, isFalse))
}

func isFalse(found bool) bool { return !found }

func (r *Router) Revoke(db int, key redlock.Key, text string, done func(int, error)) {
	r.of(key).Revoke(db, key, text, done)
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

// RefuseWaits, EndWaits and Close are those of all groups. A wait that is parked is refused when it begins again.
func (r *Router) RefuseWaits() {
	for _, g := range r.groups {
		g.Locker.RefuseWaits()
	}
}

func (r *Router) EndWaits() {
	r.parked.end()
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
