// SET key value NX|XX|IFEQ|IFNE|IFDEQ|IFDNE … and SETNX as lock libraries use them, as
// operations on a quorum. Nothing else is served: redlockd is not a database.

package rediscompat

import (
	"errors"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

var errNoDatabase = errors.New("redlockd is not a database: SET takes or changes a lock with NX, XX, IFEQ, IFNE, IFDEQ or IFDNE, without GET and KEEPTTL; for a task that counts its attempts use DWORK key timeout MAX n")

// mutexKeys begins the keys of simple-redis-mutex. It is refused here, and not with the lock taken: it counts fences
// with INCR next, and its release is no compare-and-delete that is recognised.
const mutexKeys = "@simple-redis-mutex:lock-"

var errMutex = errors.New("simple-redis-mutex is not served: it counts fences with INCR, and its release formats a message; nothing was done; use DLOCK key ttl WAIT ms, whose reply has the fence, and DUNLOCK key token")

func (h *handlers) set(c *commands.Call) error {
	watch := h.deps.DropinStats.Timed("set")
	r, err := dropin.ParseSet(c.Args)
	if err != nil {
		return commands.RedisText(err.Error())
	}
	if ends := r.When == dropin.Always && !r.Get && endsAtOnce(r.Expiry); ends && !h.deps.CompatTest {
		return endNow(h, c, r, watch)
	}
	if r.When == dropin.Always || r.Get || r.Expiry.Kind == dropin.KeepExpiry {
		if h.deps.CompatTest {
			return h.forwardKey(c)
		}
		return errNoDatabase
	}
	if strings.HasPrefix(r.Key, mutexKeys) && r.When == dropin.IfAbsent && !h.deps.CompatTest {
		return errMutex
	}
	request, err := valuedRequest(c, r.Key, r.Value)
	if err != nil {
		return err
	}
	if r.When == dropin.IfAbsent && r.Expiry.Kind == dropin.At && r.Expiry.MS <= time.Now().UnixMilli() {
		setEnded(h.deps.RedisCompat, c, request.Key, watch)
		return nil
	}
	lease := h.lease
	if r.When == dropin.IfPresent || r.When == dropin.IfEqual || r.When == dropin.IfDigestEqual {
		lease = h.newLease
	}
	if request.TTL, err = h.leaseUntil(r.Expiry, lease); err != nil {
		return err
	}
	switch r.When {
	case dropin.IfAbsent:
		h.startAcquire(c, request, watch, replyOK, replyNil)
	case dropin.IfPresent:
		if mayForce(c) {
			h.replace(c, request, "", h.forcing(c, request.Key, timed(c, watch, commands.OK, commands.Nil)))
		}
	case dropin.IfEqual:
		h.replaceValue(c, request, watch, r.Operand, false)
	default:
		h.setSeen(c, r, request, watch)
	}
	return nil
}

// endsAtOnce reports whether a key would last for less than the shortest lease.
func endsAtOnce(e dropin.Expiry) bool {
	return e.Kind == dropin.After && e.MS < arg.MinTTL.Milliseconds() || e.Kind == dropin.At && e.MS < time.Now().UnixMilli()+arg.MinTTL.Milliseconds()
}

// endNow is SET without a condition and with an expiry that is nearly over, a DEL in the words of some
// clients.
func endNow(h *handlers, c *commands.Call, r dropin.SetRequest, watch dropin.Stopwatch) error {
	key, err := arg.ParseKey(r.Key)
	if err != nil || !mayForce(c) {
		return err
	}
	request := redlock.WriteRequest{DB: c.Client.DB, Key: key, Effect: redlock.WriteDeletes, EndlessToo: h.endlessToo()}
	h.deps.RedisCompat.Write(c.Batch, request, h.noting(c, request, timed(c, watch, commands.OK, commands.OK)))
	return nil
}

// setEnded is SET NX with an expiry that is over. It takes no lock, but as in Redis its reply is
// that of one that it would have taken.
func setEnded(masters commands.RedisCompat, c *commands.Call, key redlock.Key, watch dropin.Stopwatch) {
	reply := timed(c, watch, commands.OK, commands.Nil)
	masters.View(c.Batch, c.Client.DB, key, func(v redlock.View, err error) { reply(v.Kind == "none", err) })
}

// setSeen is SET with IFNE, IFDEQ and IFDNE.
func (h *handlers) setSeen(c *commands.Call, r dropin.SetRequest, request redlock.LockRequest, watch dropin.Stopwatch) {
	if r.When.Negative() && !mayForce(c) {
		return
	}
	x := comparison{h.deps.RedisCompat, c, request.Key, watch, commands.OK, commands.Nil}
	x.read(r.When, r.Operand, func(v redlock.View) {
		if v.Kind == "none" {
			h.startAcquire(c, request, watch, replyOK, replyNil)
		} else {
			h.replaceValue(c, request, watch, string(v.Value), r.When.Negative())
		}
	})
}

// replaceValue gives a lock that is held with this value another value, or another lease. forced: the client
// need not know the value.
func (h *handlers) replaceValue(c *commands.Call, request redlock.LockRequest, watch dropin.Stopwatch, value string, forced bool) {
	x := comparison{h.deps.RedisCompat, c, request.Key, watch, commands.OK, commands.Nil}
	prolonged, replaced := x.done, timed(c, watch, commands.OK, commands.Nil)
	if forced {
		prolonged, replaced = h.forcing(c, request.Key, prolonged), h.forcing(c, request.Key, replaced)
	}
	switch {
	case value == string(request.Token) && request.TTL < redlock.Endless:
		h.prolong(c, request, prolonged)
	case len(value) < 1 || len(value) > maxValueBytes:
		timed(c, watch, commands.OK, commands.Nil)(false, nil) // no lock has such a value
	default:
		h.replace(c, request, redlock.Token(value), replaced)
	}
}

// setReads selects the calls of SET that read before they write: with a comparison, or if they delete.
func setReads(args []string) bool {
	if len(args) == 5 { // no comparison has so few words
		r, err := dropin.ParseSet(args)
		return err == nil && r.When == dropin.Always && endsAtOnce(r.Expiry)
	}
	for _, word := range args[min(3, len(args)):] {
		if arg.IsWord(word, "IFNE") || arg.IsWord(word, "IFDEQ") || arg.IsWord(word, "IFDNE") {
			return true
		}
	}
	return false
}

// setnx is SET NX without an expiry, answered by a number.
func (h *handlers) setnx(c *commands.Call) error {
	watch := h.deps.DropinStats.Timed("setnx")
	request, err := valuedRequest(c, c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	if request.TTL, err = h.withoutExpiry(); err != nil {
		return err
	}
	h.startAcquire(c, request, watch, replyOne, replyZero)
	return nil
}

// replace gives a lock that is there another value and another expiry.
func (h *handlers) replace(c *commands.Call, r redlock.LockRequest, equal redlock.Token, reply redlock.WriteDone) {
	longest := h.deps.Longest(c, 0)
	if err := h.withinHold(&r, longest); err != nil {
		c.Reply(commands.Error("ERR", err.Error()))
		return
	}
	at := access.HeldKey{DB: r.DB, Key: r.Key}
	slot, err := h.deps.Users.Reserve(c.Rights(), at)
	if err != nil {
		c.Reply(commands.Error("TRYLATER", err.Error()))
		return
	}
	h.deps.RedisCompat.Write(c.Batch, redlock.WriteRequest{
		DB: r.DB, Key: r.Key, Effect: redlock.WriteReplaces, Value: r.Token, Equal: equal, TTL: r.TTL, EndlessToo: h.endlessToo(), Longest: longest,
	}, func(done bool, err error) {
		if err == nil && done {
			h.deps.Users.Changed(at, 0) // for any holder
			c.SawHeld(r.Key, r.Token, 0)
			slot.Fill(at, r.Token, r.TTL)
		} else {
			slot.Free()
		}
		reply(done, err)
	})
}

// prolong gives a lock whose value is known another lease, longer or shorter.
func (h *handlers) prolong(c *commands.Call, r redlock.LockRequest, done func(held bool, err error)) {
	request := redlock.ExtendRequest{DB: r.DB, Key: r.Key, Token: r.Token, TTL: r.TTL, Exact: true, EndlessToo: h.endlessToo(), Longest: h.deps.Longest(c, 0), Whole: true}
	h.deps.Locks.Extend(c.Batch, request, h.prolonged(request, done))
}

// prolonged notes an extension in the daemon's records.
func (h *handlers) prolonged(r redlock.ExtendRequest, done func(held bool, err error)) redlock.ExtendDone {
	return func(grant redlock.Grant, err error) {
		switch {
		case errors.Is(err, redlock.ErrNotHeld):
			done(false, nil)
		case err != nil:
			done(false, err)
		default:
			for _, key := range grant.Keys() {
				h.deps.Users.ProlongedKey(r.DB, key, r.Token, grant.Validity())
			}
			h.fences.prolong(&grant)
			done(true, nil)
		}
	}
}

func (h *handlers) startAcquire(c *commands.Call, request redlock.LockRequest, watch dropin.Stopwatch, yes, no func() commands.Reply) {
	a := h.pending(watch)
	a.yes, a.no, a.Valued = yes, no, true
	if a.reserve(h, c, &request) {
		request.Requester = c.Client.Identity()
		h.deps.Locks.Lock(c.Batch, request, a.decided)
	}
}

func (h *handlers) pending(watch dropin.Stopwatch) *pendingAcquire {
	a := &pendingAcquire{timeout: h.deps.MasterTimeout, fences: &h.fences, watch: watch}
	a.Locks, a.Answer = h.deps.Locks, a
	return a
}
