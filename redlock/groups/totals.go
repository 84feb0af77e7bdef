// Totals: what the router lists and counts over all groups.

package groups

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"redlockd/pool"
	"redlockd/redlock"
)

// ListCounters fails if one group does: a list that lacks names would not show it. What a group has
// left of a counter that moved is not in it.
func (r *Router) ListCounters(db int, done func([]redlock.Key, error)) {
	var all []redlock.Key
	each := gather(len(r.groups), func(err error) {
		if err != nil {
			all = nil
		}
		slices.Sort(all)
		done(slices.Compact(all), err)
	})
	for i, g := range r.groups {
		g.Locker.ListCounters(db, func(names []redlock.Key, err error) {
			names = slices.DeleteFunc(names, func(name redlock.Key) bool { return r.indexOf(name) != i })
			each(func() { all = append(all, names...) }, err)
		})
	}
}

// ListLocks walks over one group after the other. The number of the group stands above the bits of its
// own cursor.
func (r *Router) ListLocks(q redlock.Listing, done func(redlock.LockPage, error)) {
	at := q.Cursor >> redlock.CursorBits
	if at >= uint64(len(r.groups)) {
		done(redlock.LockPage{}, redlock.ErrBadCursor)
		return
	}
	next := uint64(0)
	if at+1 < uint64(len(r.groups)) {
		next = (at + 1) << redlock.CursorBits
	}
	q.Cursor &= 1<<redlock.CursorBits - 1
	wanted := q.Wanted
	q.Wanted = func(key redlock.Key) bool { return r.indexOf(key) == int(at) && wanted(key) }
	r.groups[at].Locker.ListLocks(q, func(page redlock.LockPage, err error) {
		if lost, ok := errors.AsType[*redlock.NoQuorum](err); ok && next > 0 {
			lost.Note += fmt.Sprintf("; the locks of group %s are missing, those of the next group begin at cursor %d", r.groups[at].Name, next)
		}
		if page.Cursor == 0 {
			page.Cursor = next
		} else {
			page.Cursor |= at << redlock.CursorBits
		}
		done(page, err)
	})
}

func (r *Router) Waiting(db int, wanted func(redlock.Key) bool, most int) (list []redlock.Waiting, all int) {
	for _, g := range r.groups {
		some, n := g.Locker.Waiting(db, wanted, most)
		list, all = append(list, some...), all+n
	}
	some, n := r.parked.waiting(db, wanted, most)
	list, all = append(list, some...), all+n
	slices.SortStableFunc(list, func(a, b redlock.Waiting) int { return cmp.Compare(b.Since, a.Since) })
	return list[:min(len(list), most)], all
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

// sum adds up what all groups count.
func sum[T int | int64](r *Router, of func(*redlock.Locker) T) (n T) {
	for _, g := range r.groups {
		n += of(g.Locker)
	}
	return n
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
		more := g.Locker.EventCounts()
		c.Add(&more)
	}
	return c
}

// HeldBy counts the parts of a lock over several groups as one each.
func (r *Router) HeldBy() map[int64]int {
	all := map[int64]int{}
	for _, g := range r.groups {
		for client, n := range g.Locker.HeldBy() {
			all[client] += n
		}
	}
	return all
}

func (r *Router) InFlight() int { return sum(r, (*redlock.Locker).InFlight) }
func (r *Router) Waiters() int  { return sum(r, (*redlock.Locker).Waiters) + r.parked.count() }
func (r *Router) Holds() int    { return sum(r, (*redlock.Locker).Holds) }
func (r *Router) Tracked() int  { return sum(r, (*redlock.Locker).Tracked) }
