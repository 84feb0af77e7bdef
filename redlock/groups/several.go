// Locks of keys in several groups: a part of the lock in each group, completed by redlock.Join.
//
// The parts are requested in the order of the groups, and all but the first one without a wait. If
// one is refused, those before it are given back. A request that waits then waits until the key
// that refused it is free, without taking it, and begins again. So no request waits while it holds
// something, and of those that contend, the one that has come furthest is held up by none of them.

package groups

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"redlockd/redlock"
)

// errOneGroup is for options whose promise is about all keys together: a queue of FAIR is in one group,
// and so is what readers of a key know of one another's fences. errHeldToken: a hold that failed in its
// second group would end the renewal of what the token held before.
var (
	errOneGroup  = errors.New("SHARED, LIMIT and FAIR (also by --fair-keys) need all keys in one group of masters, and these belong to several; nothing was done: give them one hash tag, such as {order:7}:a and {order:7}:b")
	errHeldToken = errors.New("HOLD with a TOKEN needs all keys in one group of masters, and these belong to several; nothing was done: leave TOKEN out, or give them one hash tag, such as {order:7}:a and {order:7}:b")
)

// freePause is the pause before a request begins again although the keys that refused it are free:
// a waiter of FAIR may be ahead, whose daemon does not take them for seconds.
const freePause = 10 * time.Millisecond

// undecidedPause is the pause before a request that waits begins again because the masters of a
// group could not decide.
const undecidedPause = 100 * time.Millisecond

// several is one request for keys of several groups.
type several struct {
	*directory
	request redlock.LockRequest
	parts   []redlock.LockRequest // in the order of the groups
	done    redlock.LockDone
	end     time.Duration // of the wait; before now without one

	granted []*redlock.Part

	waitInTurn
	refused int // waitN when a part was refused last
}

// lockSeveral requests all parts. done is called exactly once.
func lockSeveral(d *directory, q redlock.LockRequest, done redlock.LockDone) (leave func()) {
	var err error
	switch swaps := redlock.SwapOf(q.Mode) != nil; {
	case swaps:
		err = ErrSeveral
	case q.Kind() != redlock.Exclusive || q.Fair:
		err = errOneGroup
	case q.Hold != nil && q.Token != "":
		err = errHeldToken
	}
	if err != nil {
		done(redlock.Grant{}, err)
		return func() {}
	}
	s := &several{directory: d, request: q, done: done, end: d.clock.Now() + q.Wait}
	for _, keys := range d.split(append([]redlock.Key{q.Key}, q.More...)) {
		part := q
		part.Key, part.More = keys[0], keys[1:]
		s.parts = append(s.parts, part)
	}
	s.next()
	return s.onLeave
}

// next requests the next part.
func (s *several) next() {
	n := len(s.granted)
	if n == len(s.parts) {
		redlock.Join(&s.request, s.granted, s.joined)
		return
	}
	part := s.parts[n]
	before := redlock.Token("")
	if n > 0 {
		before = s.granted[0].Grant.Token
	}
	part.Mode, part.Hold = redlock.PartOf(before), nil
	locker := s.groups[s.indexOf(part.Key)].Locker
	decided := func(g redlock.Grant, err error) { s.onPart(locker, g, err) }
	if part.Wait = s.timeLeft(); n == 0 && part.Wait > 0 {
		s.wait(func() func() { return locker.Wait(nil, part, decided) })
		return
	}
	part.Wait, part.Owner = 0, nil
	locker.Lock(nil, part, decided)
}

// joined takes the outcome of the whole.
func (s *several) joined(g redlock.Grant, err error) {
	if err != nil {
		s.fail(err)
		return
	}
	if terms := s.request.Hold; terms != nil {
		s.hold(g, *terms)
	}
	s.done(g, nil)
}

// fail answers a request of which nothing is held. One that waits begins again if the masters could
// not decide: a lost quorum may come back.
func (s *several) fail(err error) {
	s.granted = nil
	if left := s.timeLeft(); left > 0 && redlock.IsUndecided(err) && !s.hasLeft() {
		s.clock.AfterFunc(min(undecidedPause, left), s.next)
		return
	}
	s.done(redlock.Grant{}, err)
}

// timeLeft returns the time for which the request may wait still.
func (s *several) timeLeft() time.Duration { return s.end - s.clock.Now() }

// onPart takes the outcome of a part.
func (s *several) onPart(locker *redlock.Locker, g redlock.Grant, err error) {
	refused := len(s.granted)
	if err == nil {
		s.granted = append(s.granted, &redlock.Part{Leases: locker.Leases, Grant: g})
		if !s.hasLeft() {
			s.next()
			return
		}
		err = redlock.ErrLeft
	}
	redlock.GiveBackParts(s.granted)
	s.granted = nil
	if refused > 0 && errors.Is(err, redlock.ErrHeld) && s.timeLeft() > 0 {
		part := &s.parts[refused]
		s.mu.Lock()
		s.refused = s.waitN
		s.mu.Unlock()
		s.awaitFree(locker, append([]redlock.Key{part.Key}, part.More...))
		return
	}
	if refused > 0 {
		s.fail(err)
		return
	}
	s.done(redlock.Grant{}, err) // of a wait for masters that could not decide, this is the end
}

// awaitFree begins again once none of these keys is held by another token.
func (s *several) awaitFree(locker *redlock.Locker, keys []redlock.Key) {
	switch {
	case s.hasLeft():
		s.done(redlock.Grant{}, redlock.ErrLeft)
		return
	case len(keys) == 0:
		s.again()
		return
	}
	db := s.request.DB
	locker.View(nil, db, keys[0], func(v redlock.View, err error) {
		if err != nil {
			s.fail(err)
			return
		}
		if v.Free || s.request.Token != "" && v.Kind == "string" && v.Value == s.request.Token {
			s.awaitFree(locker, keys[1:])
			return
		}
		await := redlock.AwaitRequest{DB: db, Key: keys[0], Timeout: max(s.timeLeft(), 0), Requester: s.request.Requester}
		s.wait(func() func() { return locker.AwaitFree(await, s.onFree(locker, keys[1:])) })
	})
}

// again requests all parts once more, after a pause if no key had to be waited for.
func (s *several) again() {
	s.mu.Lock()
	waited := s.waitN > s.refused
	s.mu.Unlock()
	if waited {
		s.next()
		return
	}
	s.clock.AfterFunc(freePause, s.next)
}

// onFree goes on with the other keys of the part that was refused.
func (s *several) onFree(locker *redlock.Locker, rest []redlock.Key) redlock.AwaitDone {
	return func(free bool, err error) {
		switch {
		case err != nil:
			s.done(redlock.Grant{}, err)
		case !free && !s.hasLeft():
			s.done(redlock.Grant{}, redlock.ErrHeld)
		default:
			s.awaitFree(locker, rest)
		}
	}
}

// extendSeveral extends in all groups. If the token does not hold all keys, some of them may last
// longer now, which promises nothing.
func extendSeveral(d *directory, b *redlock.Batch, q redlock.ExtendRequest, done redlock.ExtendDone) {
	parts := d.split(append([]redlock.Key{q.Key}, q.More...))
	var shortest redlock.Grant
	notHeld := false
	each := gather(len(parts), func(err error) {
		switch {
		case err != nil:
			done(redlock.Grant{}, err)
		case notHeld:
			done(redlock.Grant{}, redlock.ErrNotHeld)
		default:
			shortest.Key, shortest.More = q.Key, q.More
			done(shortest, nil)
		}
	})
	for _, keys := range parts {
		part := q
		part.Key, part.More = keys[0], keys[1:]
		d.extend(b, part, func(g redlock.Grant, err error) {
			absent := errors.Is(err, redlock.ErrNotHeld)
			if absent {
				err = nil
			}
			each(func() {
				notHeld = notHeld || absent
				if err == nil && !absent && (shortest.Key == "" || g.Until() < shortest.Until()) {
					shortest = g
				}
			}, err)
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
