// This file finds the group that has a key.

package groups

import (
	"cmp"
	"errors"
	"slices"

	"redlockd/pool"
	"redlockd/redlock"
)

// Group is one group of masters.
type Group struct {
	Name   string
	Locker *redlock.Locker
}

// directory finds the group that has each key now.
type directory struct {
	groups []Group
	slots  *Map
	clock  pool.Clock
}

// ErrSeveral means that the keys of a request belong to several groups and one group must have
// them all.
var ErrSeveral = errors.New("the keys belong to several groups of masters, and this needs them in one; nothing was done: give them one hash tag, such as {order:7}:a and {order:7}:b")

// indexOf is the group of a key, and of that of a request for it. While its slot moves, it is the group
// that the slot leaves.
func (d *directory) indexOf(key redlock.Key) int { return int(d.slots.at(key).group) }

func (d *directory) of(key redlock.Key) *redlock.Locker { return d.groups[d.slots.of(key)].Locker }

// ofAll is the group that has all the keys of a request; nil if there is none.
func (d *directory) ofAll(key redlock.Key, more []redlock.Key) *redlock.Locker {
	at := d.slots.of(key)
	if !d.inGroup(at, more) {
		return nil
	}
	return d.groups[at].Locker
}

func (d *directory) inGroup(at int, more []redlock.Key) bool {
	return !slices.ContainsFunc(more, func(other redlock.Key) bool { return d.indexOf(other) != at })
}

// goesTo is the group of a request about what a client has. left is the error if the keys were not in
// the group all the time since: that the group has nothing then proves nothing, since the next group
// may have it.
func (d *directory) goesTo(key redlock.Key, more ...redlock.Key) (one *redlock.Locker, left func() error) {
	at := d.slots.of(key)
	return d.groups[at].Locker, d.sinceNow(at, append(more[:len(more):len(more)], key))
}

func (d *directory) sinceNow(group int, keys []redlock.Key) (left func() error) {
	owned, began := ownership{d.slots, group}, d.slots.now.Load().version
	return func() error {
		for _, key := range keys {
			if since := owned.Since(key); since == 0 || since > began {
				return owned.Moving(key)
			}
		}
		return nil
	}
}

// unlessLeft passes an answer on. That nothing was found becomes an error if the keys have left the
// group: the next one may have it.
func unlessLeft[T any](left func() error, done func(T, error), nothing func(T) bool) func(T, error) {
	return func(answer T, err error) {
		if err == nil && nothing(answer) {
			err = left()
		}
		done(answer, err)
	}
}

// ifStill is the error of a request whose keys the group has had all the time: another one, and not
// ErrNotHeld, if they have left it.
func ifStill(err error, left func() error) error {
	if errors.Is(err, redlock.ErrNotHeld) {
		return cmp.Or(left(), err)
	}
	return err
}

// extend extends in the one group that has the keys.
func (d *directory) extend(b *redlock.Batch, q redlock.ExtendRequest, done redlock.ExtendDone) {
	one, left := d.goesTo(q.Key, q.More...)
	one.Extend(b, q, func(g redlock.Grant, err error) { done(g, ifStill(err, left)) })
}

// owner is a connection whose leases are those of all groups. A cycle is found if all its waits
// are in one group.
type owner struct {
	redlock.Owner
	*directory
}

func (o owner) Holds(func(redlock.Lease) bool) []redlock.Lease {
	return o.Owner.Holds(func(l redlock.Lease) bool { return o.groups[o.indexOf(l.Key)].Locker.Runs(l) })
}

// split returns the keys by group, in ascending order of the groups.
func (d *directory) split(keys []redlock.Key) (parts [][]redlock.Key) {
	byGroup := make([][]redlock.Key, len(d.groups))
	for _, key := range keys {
		i := d.indexOf(key)
		byGroup[i] = append(byGroup[i], key)
	}
	return slices.DeleteFunc(byGroup, func(keys []redlock.Key) bool { return keys == nil })
}
