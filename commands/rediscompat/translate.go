// A script of a known class becomes operations of redlockd itself: its text never leaves the daemon.
// The class says what the script does to its keys in the state that a quorum holds, and what it
// answers then.

package rediscompat

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// maxLooks bounds how often a quorum is looked at for one call. The lock has changed in between each
// time, between a look and the operation that followed.
const maxLooks = 3

// errChanging is the answer of a call for which the keys changed again and again.
var errChanging = commands.Error("NOQUORUM", "the lock changed each time between the look at it and the change, so what the script would answer is not known; it did nothing: try again")

// serve starts the operation; an error is the call's only answer.
func (e *evaluation) serve() (err error) {
	class := e.class
	e.watch.Count(e.handlers.deps.DropinStats, class.Library, class.Op.String())
	if class.Pattern != "" && e.handlers.deps.CompatTest {
		return e.handlers.deleteMatching(e.call, class.Pattern)
	}
	if e.locks, err = e.locksOf(); err != nil {
		return err
	}
	if e.reads && class.Op != dropin.Read {
		return commands.RedisText("Write commands are not allowed from read-only scripts.")
	}
	if !e.allowed() {
		return nil
	}
	e.token = redlock.Token(class.TokenOf(e.given, 0))
	if class.Op == dropin.Read {
		e.look()
		return nil
	}
	if class.Op != dropin.Discard && (e.token == "" || slices.Contains(e.tokens(e.locks), "")) {
		return e.refuse("its token is empty, allowed are 1 to %d bytes", maxValueBytes)
	}
	if forces := class.Op == dropin.Overwrite || class.Op == dropin.Discard; forces && !mayForce(e.call) {
		return nil
	}
	if e.ttl, err = e.lease(); err != nil {
		return err
	}
	switch {
	case class.Looks:
		e.look()
	case class.Op == dropin.Acquire:
		e.take(e.locks, class.Former > 0)
	case class.Op == dropin.Reacquire:
		e.take(e.locks, true)
	case class.Op == dropin.Extend:
		e.extend(e.locks, redlock.ExtendRequest{TTL: e.ttl, Exact: true})
	default:
		e.release(e.locks)
	}
	return nil
}

// tokens returns the tokens of these locks, if each is given its own; else nil.
func (e *evaluation) tokens(locks []redlock.Key) (tokens []redlock.Token) {
	if len(e.class.Tokens) == 0 {
		return nil
	}
	for _, key := range locks {
		tokens = append(tokens, redlock.Token(e.class.TokenOf(e.given, slices.Index(e.locks, key))))
	}
	return tokens
}

// allowed checks the categories of the user. A script that shows more than what its own token holds
// counts as GET, unless it is a library's or the operator has declared it.
func (e *evaluation) allowed() bool {
	op, unknown := e.class.Op, e.class.By == dropin.ByText
	shows := op == dropin.Read && (e.class.Token == 0 || unknown) || unknown && e.class.Shows && op != dropin.Overwrite && op != dropin.Discard
	if !shows || e.call.May(access.CategoryRead) {
		return true
	}
	e.call.Reply(commands.Error("NOPERM", "this user has no permissions to run script "+e.sha+" (category "+access.CategoryRead+"): it shows the holder of a lock"))
	return false
}

// locksOf returns the keys that are locks. The lists that a library wakes waiters with are left out:
// here waiters are woken by the release itself.
func (e *evaluation) locksOf() (locks []redlock.Key, err error) {
	c := e.class
	switch {
	case c.Pattern != "":
		return nil, e.refuse("it looks for its keys by a pattern")
	case c.DB > 0 && e.given.Args[c.DB-1] != strconv.Itoa(e.db):
		return nil, e.refuse("it selects database %s and the connection is in %d: SELECT the same", commands.Clip(e.given.Args[c.DB-1], commands.ShownBytes), e.db)
	}
	for i, key := range e.keys {
		if !slices.Contains(c.Others, i+1) {
			locks = append(locks, key)
		} else if c.By == dropin.BySHA && c.Library != "" && !e.isSignal(i) {
			return nil, e.refuse("its key %d is not '%s' of its lock", i+1, signalPrefix)
		}
	}
	if len(locks) == 0 {
		return nil, e.refuse("none of its keys is a lock")
	}
	return locks, nil
}

// isSignal reports whether a key is the list that wakes the waiters of the lock.
func (e *evaluation) isSignal(i int) bool {
	name, ok := strings.CutPrefix(e.given.Keys[i], signalPrefix)
	return ok && e.given.Keys[0] == lockPrefix+name
}

// lease is the requested lease, by the operator's policies; 0 if the script has none.
func (e *evaluation) lease() (time.Duration, error) {
	if e.class.Op == dropin.Release || e.class.Op == dropin.Discard {
		return 0, nil
	}
	ms, timed := e.class.TTL(e.given, time.Now().UnixMilli())
	switch {
	case !timed && e.handlers.endlessToo():
		return redlock.Endless, nil
	case !timed:
		return 0, e.refuse("it asks for no expiry, which only --no-ttl=allow lets a script do: give a lease")
	case e.class.Op == dropin.ExtendAdd && ms > 0 && ms <= e.handlers.deps.MaxTTL.Milliseconds():
		return time.Duration(ms) * time.Millisecond, nil
	case e.class.Op == dropin.Extend:
		return e.handlers.newLease(ms)
	}
	return e.handlers.lease(ms)
}

// keyView describes the n-th lock as a quorum holds it, in the terms of the call.
func (e *evaluation) keyView(n int, v redlock.View) dropin.KeyView {
	view := e.class.See(e.given, n, string(v.Value), remaining(v))
	if v.Kind != "string" && v.Kind != "none" {
		view.State = dropin.HeldByOther // no value is its holder's
	}
	return view
}

// viewLocks reads all locks from a quorum. then gets what the script does to them, and its answer.
func (e *evaluation) viewLocks(then func(views []redlock.View, change []dropin.Change, reply commands.Reply, err error)) {
	each := commands.Gather(len(e.locks), func(views []redlock.View, errs []error) {
		e.call.Batch = nil // it has been sent
		given := make([]dropin.KeyView, len(views))
		for i, v := range views {
			e.call.Saw(e.locks[i], redlock.Seen{View: v}, errs[i])
			err := errs[i]
			if err == nil && e.class.Typed {
				err = orWrongType(v, nil)
			}
			if err != nil {
				then(nil, nil, commands.Reply{}, err)
				return
			}
			given[i] = e.keyView(i, v)
		}
		change, reply, err := e.class.Outcome(e.given, given)
		then(views, change, ofDropin(reply), err)
	})
	for i, key := range e.locks {
		e.handlers.deps.RedisCompat.View(e.call.Batch, e.db, key, each(i))
	}
}

// look does what the script does in the state that a quorum holds, and answers that.
func (e *evaluation) look() {
	if e.looks++; e.looks > maxLooks {
		e.answer(false, errChanging)
		return
	}
	e.viewLocks(func(views []redlock.View, change []dropin.Change, reply commands.Reply, err error) {
		if err != nil {
			e.fail(err)
			return
		}
		e.fixed = &reply
		some := make(map[dropin.Change][]redlock.Key)
		last := views[0]
		for i, what := range change {
			some[what] = append(some[what], e.locks[i])
			if what == dropin.Renewed || what == dropin.Overwritten {
				last = views[i]
			}
		}
		switch {
		case len(some[dropin.Unchanged]) == len(e.locks):
			e.answer(e.class.Op == dropin.Read, reply)
		case e.class.Op == dropin.Discard:
			e.discard(some[dropin.Deleted])
		case len(some[dropin.Deleted]) > 0:
			e.release(some[dropin.Deleted])
		case e.class.Op == dropin.Overwrite && len(some[dropin.Taken]) == 0:
			e.overwrite(last)
		case len(some[dropin.Renewed]) == 0:
			e.take(some[dropin.Taken], false)
		case len(some[dropin.Taken]) > 0:
			e.take(append(some[dropin.Taken], some[dropin.Renewed]...), true)
		default:
			e.renew(some[dropin.Renewed], last)
		}
	})
}

// renew extends what a look has shown.
func (e *evaluation) renew(locks []redlock.Key, v redlock.View) {
	r := redlock.ExtendRequest{TTL: e.ttl, Exact: !e.class.Longer || v.Left >= redlock.Endless}
	if e.class.Op == dropin.ExtendAdd {
		longest := e.handlers.deps.MaxTTL + e.handlers.deps.MasterTimeout
		if r.TTL += v.Longest; r.TTL > longest {
			e.fail(e.refuse("%d ms are left of the lease, with %d ms more it would exceed max-ttl, %d ms (--max-ttl); replace what is left instead of adding to it",
				v.Longest.Milliseconds(), e.ttl.Milliseconds(), e.handlers.deps.MaxTTL.Milliseconds()))
			return
		}
		r.TTL = min(r.TTL, e.handlers.deps.MaxTTL)
	}
	if len(locks) == 1 && r.Exact {
		r.Seen = &v
	}
	e.extend(locks, r)
}

// answer is the reply to the call.
func (e *evaluation) answer(yes bool, r commands.Reply) {
	e.watch.Stop(yes, nil)
	e.call.Reply(r)
}

func (e *evaluation) fail(err error) {
	e.watch.Stop(false, err)
	e.call.Reply(commands.Failure(err))
}

// done answers an operation that did its work where the keys were in this state.
func (e *evaluation) done(state dropin.KeyState) commands.Reply {
	if e.fixed != nil {
		return *e.fixed
	}
	views := make([]dropin.KeyView, len(e.locks))
	for i := range views {
		views[i] = dropin.KeyView{State: state, Value: string(e.token), Left: max(e.ttl, time.Millisecond).Milliseconds()}
	}
	_, r, err := e.class.Outcome(e.given, views)
	if err != nil {
		return commands.Error("ERR", err.Error())
	}
	return ofDropin(r)
}

// undone answers an operation that a quorum refused: with the one answer that the script has then, or
// with that for the state that a quorum holds.
func (e *evaluation) undone() {
	if r, ok := e.class.Refusal(e.given); ok && e.fixed == nil {
		e.answer(false, ofDropin(r))
	} else {
		e.look()
	}
}

// take acquires locks; retakes: also those that the caller holds.
func (e *evaluation) take(locks []redlock.Key, retakes bool) {
	swap := &redlock.Swap{Tokens: e.tokens(locks)}
	r := redlock.LockRequest{DB: e.db, Key: locks[0], More: locks[1:], TTL: e.ttl, Token: e.token, Mode: swap}
	switch {
	case retakes:
		swap.Retakes = &redlock.Retake{Held: e.token, Bytes: e.class.Bytes(e.given), EndlessToo: e.class.EndlessToo}
		if e.class.Former > 0 {
			swap.Retakes.Held = redlock.Token(e.given.Args[e.class.Former-1])
		}
	case len(locks) == 1:
		r.Mode, r.Token = redlock.Valued, append(swap.Tokens, r.Token)[0]
	case swap.Tokens == nil:
		swap.Tokens = slices.Repeat([]redlock.Token{e.token}, len(locks))
	default:
		r.Token = swap.Tokens[0]
	}
	a := e.handlers.pending(e.watch)
	a.Valued = true
	a.yes = func() commands.Reply {
		if a.Granted.Fresh || e.class.Former > 0 {
			return e.done(dropin.Free)
		}
		return e.done(dropin.HeldBySelf)
	}
	if !a.reserve(e.handlers, e.call, &r) {
		return
	}
	r.Requester = e.call.Client.Identity()
	e.request(a, r)
}

// request puts an acquire to the masters. After a refusal it looks for the answer, and tries again if
// the locks have become free.
func (e *evaluation) request(a *pendingAcquire, r redlock.LockRequest) {
	e.handlers.deps.Locks.Lock(e.call.Batch, r, func(grant redlock.Grant, err error) {
		e.call.Batch = nil // it has been sent
		refused := errors.Is(err, redlock.ErrHeld)
		if no, ok := e.class.Refusal(e.given); ok || !refused {
			a.no = func() commands.Reply { return ofDropin(no) }
			a.decided(grant, err)
			return
		}
		if e.looks++; e.looks > maxLooks {
			a.no = func() commands.Reply { return errChanging }
			a.decided(grant, err)
			return
		}
		e.viewLocks(func(_ []redlock.View, change []dropin.Change, reply commands.Reply, failed error) {
			switch {
			case failed != nil:
				a.decided(redlock.Grant{}, failed)
			case slices.ContainsFunc(change, func(c dropin.Change) bool { return c != dropin.Unchanged }):
				e.request(a, r)
			default:
				a.no = func() commands.Reply { return reply }
				a.decided(redlock.Grant{}, err)
			}
		})
	})
}

// release releases locks of the token. The answer tells a key of another kind.
func (e *evaluation) release(locks []redlock.Key) {
	each := commands.Gather(len(locks), func(was []bool, errs []error) {
		e.call.Batch = nil
		switch err := errors.Join(errs...); {
		case err != nil:
			e.fail(errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })])
		case !slices.Contains(was, false):
			e.answer(true, e.done(dropin.HeldBySelf))
		case e.fixed != nil:
			e.look()
		default:
			e.notReleased()
		}
	})
	for i, key := range locks {
		e.handlers.release(e.call, redlock.UnlockRequest{DB: e.db, Key: key, Token: e.token}, each(i))
	}
}

// notReleased answers a release of what the token did not hold: by the state that a quorum shows, which
// after that is free or another's.
func (e *evaluation) notReleased() {
	e.viewLocks(func(views []redlock.View, change []dropin.Change, reply commands.Reply, err error) {
		no, same := e.class.Refusal(e.given)
		switch {
		case errors.Is(err, redlock.ErrWrongType):
			e.fail(err)
		case same:
			e.answer(false, ofDropin(no))
		case err != nil:
			e.fail(err)
		case slices.Contains(change, dropin.Deleted): // the token has taken it since
			e.answer(false, errChanging)
		default:
			e.answer(false, reply)
		}
	})
}

func (e *evaluation) extend(locks []redlock.Key, r redlock.ExtendRequest) {
	r.DB, r.Key, r.More, r.Token, r.EndlessToo = e.db, locks[0], locks[1:], e.token, e.class.EndlessToo
	if r.TTL >= redlock.Endless {
		e.fail(e.refuse("it takes the expiry away"))
		return
	}
	r.Longest, r.Whole = e.handlers.deps.Longest(e.call, 0), true
	e.handlers.deps.Locks.Extend(e.call.Batch, r, func(grant redlock.Grant, err error) {
		e.call.Batch = nil
		switch {
		case errors.Is(err, redlock.ErrNotHeld):
			e.undone()
			return
		case errors.Is(err, redlock.ErrWrongType): // or without an expiry
			e.look()
			return
		case err != nil:
			e.fail(err)
			return
		}
		for _, key := range grant.Keys() {
			e.handlers.deps.Users.ProlongedKey(r.DB, key, r.Token, grant.Validity())
			e.call.SawHeld(key, r.Token, grant.Validity())
		}
		e.handlers.fences.prolong(&grant)
		e.answer(true, e.done(dropin.HeldBySelf))
	})
}

// discard deletes locks regardless of their holders.
func (e *evaluation) discard(locks []redlock.Key) {
	h := e.handlers
	for _, key := range locks {
		if h.nextIDs.serves(access.HeldKey{DB: e.db, Key: key}) {
			e.fail(e.refuse("the ids of a counter only grow; an operator deletes it with DIDS DEL"))
			return
		}
	}
	each := commands.Gather(len(locks), func(was []bool, errs []error) {
		if err := errors.Join(errs...); err != nil {
			e.fail(errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })])
		} else if slices.Contains(was, false) {
			e.look()
		} else {
			e.answer(true, *e.fixed)
		}
	})
	for i, key := range locks {
		r := redlock.WriteRequest{DB: e.db, Key: key, Effect: redlock.WriteDeletes, EndlessToo: h.endlessToo()}
		h.deps.RedisCompat.Write(nil, r, h.noting(e.call, r, each(i)))
	}
}

// overwrite gives a lock that a look has shown another value and another lease.
func (e *evaluation) overwrite(v redlock.View) {
	r := redlock.LockRequest{DB: e.db, Key: e.locks[0], TTL: e.ttl, Token: e.token}
	if len(e.locks) > 1 {
		e.fail(e.refuse("it overwrites several keys"))
		return
	}
	e.handlers.replace(e.call, r, v.Value, e.handlers.forcing(e.call, r.Key, func(done bool, err error) {
		switch {
		case err != nil:
			e.fail(err)
		case !done:
			e.look()
		default:
			e.answer(true, *e.fixed)
		}
	}))
}
