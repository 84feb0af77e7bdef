// WATCH key, GET key, MULTI, one command, EXEC: how clients compared and changed before there were
// commands for it. EXEC compares the watched locks with what they were, and then does the command:
// a change of the watched lock by its value, so that it ends no other lease. Between the two another
// client may change a further watched lock.

package rediscompat

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// errNoPlainWrite refuses SETEX and PSETEX outside of a transaction that has read the lock.
var errNoPlainWrite = errors.New("redlockd is not a database: SETEX and PSETEX write whatever is there; take a lock with SET key value NX PX ms, prolong it with SET key value PX ms IFEQ value, or send it in WATCH key, GET key, MULTI, PSETEX key ms value, EXEC")

func (h *handlers) watch(c *commands.Call) error {
	x := &c.Client.Transaction
	if x.Open() {
		return commands.RedisText("WATCH inside MULTI is not allowed")
	}
	keys, err := h.keysOf(c)
	if keys == nil {
		return err
	}
	further, err := x.Watches(c.Client.DB, keys)
	if err != nil {
		return err
	}
	observe(h, c, further, func(locks []commands.Watched, err error) {
		if err != nil {
			c.Reply(commands.Failure(err))
			return
		}
		x.Watch(locks)
		c.Reply(commands.OK)
	})
	return nil
}

// observe looks at all keys.
func observe(h *handlers, c *commands.Call, keys []access.HeldKey, done func([]commands.Watched, error)) {
	if len(keys) == 0 {
		done(nil, nil)
		return
	}
	each := commands.Gather(len(keys), func(seen []*redlock.Observation, errs []error) {
		locks := make([]commands.Watched, len(keys))
		for i, o := range seen {
			if errs[i] == nil {
				locks[i] = commands.Watched{At: keys[i], Seen: o, Fence: h.fences.reply(keys[i], o.View)}
			}
		}
		done(locks, cmp.Or(errs...))
	})
	for i, at := range keys {
		h.deps.RedisCompat.Observe(c.Batch, at.DB, at.Key, each(i))
	}
}

func (h *handlers) unwatch(c *commands.Call) error {
	c.Client.Transaction.Unwatch()
	return c.Reply(commands.OK)
}

func (h *handlers) multi(c *commands.Call) error {
	if c.Client.Transaction.Open() {
		return commands.RedisText("MULTI calls can not be nested")
	}
	c.Client.Transaction.Begin()
	return c.Reply(commands.OK)
}

func (h *handlers) discard(c *commands.Call) error {
	if !c.Client.Transaction.Open() {
		return commands.RedisText("DISCARD without MULTI")
	}
	c.Client.Transaction.End()
	return c.Reply(commands.OK)
}

// exec answers a list, or nil if a watched lock is not what it was.
func (h *handlers) exec(c *commands.Call) error {
	x := &c.Client.Transaction
	if !x.Open() {
		return commands.RedisText("EXEC without MULTI")
	}
	queue, watched, broken := x.End()
	if broken {
		return c.Reply(commands.Error("EXECABORT", "Transaction discarded because of previous errors."))
	}
	keys := make([]access.HeldKey, len(watched))
	for i, one := range watched {
		keys[i] = one.At
	}
	observe(h, c, keys, func(now []commands.Watched, err error) {
		switch {
		case err != nil:
			c.Reply(commands.Failure(err))
		case changed(watched, now):
			c.Reply(commands.NilArray)
		default:
			if len(watched) > 0 {
				c.Batch = nil // it has been sent
			}
			execQueued(h, c, queue, watched)
		}
	})
	return nil
}

// changed compares the locks with what they were. Two leases of one value that end together are told
// apart by their fences, if this daemon granted one of them.
func changed(before, now []commands.Watched) bool {
	for i, one := range now {
		if !one.Seen.Same(before[i].Seen) || one.Fence.Text != before[i].Fence.Text {
			return true
		}
	}
	return false
}

func execQueued(h *handlers, c *commands.Call, queue [][]string, watched []commands.Watched) {
	switch {
	case len(queue) == 0:
		c.Reply(commands.Array())
	case len(queue) > 1:
		execReads(h, c, queue)
	case !execIfEqual(h, c, queue[0], watched):
		h.deps.RunAlone(c, queue[0])
	}
}

// execReads answers all readings of the key from one view.
func execReads(h *handlers, c *commands.Call, queue [][]string) {
	key, err := arg.ParseKey(queue[0][1])
	if err != nil {
		c.Reply(commands.Error("ERR", err.Error()))
		return
	}
	if !c.MayUseAll(key) {
		return
	}
	h.view(c, key, "get", func(v redlock.View) commands.Reply {
		var list []commands.Reply
		for _, one := range queue {
			if arg.IsWord(one[0], "PTTL") {
				list = append(list, pttl(v))
			} else {
				list = append(list, valueOf(v))
			}
		}
		return commands.Array(list...)
	})
}

// execIfEqual does a command on a watched lock that the client has read by its value. It is false,
// and does nothing, if the command is no such one.
func execIfEqual(h *handlers, c *commands.Call, words []string, watched []commands.Watched) bool {
	i := slices.IndexFunc(watched, func(w commands.Watched) bool {
		return w.Read && len(words) > 1 && w.At == access.HeldKey{DB: c.Client.DB, Key: redlock.Key(words[1])}
	})
	if i < 0 || h.deps.CompatTest {
		return false
	}
	seen := watched[i].Seen.View
	if seen.Kind == "none" {
		return execSet(h, c, words, seen)
	}
	done := timed(c, h.deps.DropinStats.Timed("exec"), commands.Array(commands.Int(1)), commands.NilArray)
	switch name := strings.ToLower(words[0]); {
	case seen.Kind != "string":
		return false
	case (name == "del" || name == "unlink") && len(words) == 2:
		h.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: watched[i].At.Key, Token: seen.Value}, done)
	case (name == "expire" || name == "pexpire") && len(words) == 3:
		unit := int64(1)
		if name == "expire" {
			unit = 1000
		}
		ttl, err := h.expiryOf(words, unit)
		switch {
		case err != nil:
			return false
		case ttl == 0:
			h.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: watched[i].At.Key, Token: seen.Value}, done)
		default:
			execExtend(h, c, redlock.LockRequest{DB: c.Client.DB, Key: watched[i].At.Key, Token: seen.Value, TTL: ttl}, done)
		}
	default:
		return execSet(h, c, words, seen)
	}
	return true
}

func execExtend(h *handlers, c *commands.Call, r redlock.LockRequest, done func(bool, error)) {
	request := redlock.ExtendRequest{DB: r.DB, Key: r.Key, Token: r.Token, TTL: r.TTL, Exact: true, EndlessToo: h.endlessToo(), Longest: h.deps.Longest(c, 0), Whole: true}
	h.deps.Locks.Extend(c.Batch, request, h.prolonged(request, done))
}

// execSet is SETEX, PSETEX, and SET with an expiry and without a condition, of a lock that was free, or
// held with the value that was read: it takes the lock, or gives it this value and lease.
func execSet(h *handlers, c *commands.Call, words []string, seen redlock.View) bool {
	r, err := parseSetEX(words)
	if err != nil || r.When != dropin.Always || r.Get || r.Expiry.Kind != dropin.After && r.Expiry.Kind != dropin.At {
		return false
	}
	request, err := valuedRequest(c, r.Key, r.Value)
	if err != nil {
		return false
	}
	lease, watch := h.newLease, h.deps.DropinStats.Timed("exec")
	if seen.Kind == "none" {
		lease = h.lease
	}
	if request.TTL, err = h.leaseUntil(r.Expiry, lease); err != nil {
		c.Reply(commands.Array(commands.Error("ERR", err.Error())))
		return true
	}
	did := commands.Array(commands.OK)
	switch done := timed(c, watch, did, commands.NilArray); {
	case seen.Kind == "none":
		h.startAcquire(c, request, watch, func() commands.Reply { return did }, func() commands.Reply { return commands.NilArray })
	case seen.Value == request.Token:
		execExtend(h, c, request, done)
	default:
		h.replace(c, request, seen.Value, done)
	}
	return true
}

// parseSetEX reads SET key value …, and SETEX key seconds value and PSETEX key ms value as it.
func parseSetEX(words []string) (dropin.SetRequest, error) {
	unit := ""
	switch {
	case arg.IsWord(words[0], "SET"):
		return dropin.ParseSet(words)
	case len(words) == 4 && arg.IsWord(words[0], "SETEX"):
		unit = "EX"
	case len(words) == 4 && arg.IsWord(words[0], "PSETEX"):
		unit = "PX"
	default:
		return dropin.SetRequest{}, commands.ErrTransaction
	}
	return dropin.ParseSet([]string{"SET", words[1], words[3], unit, words[2]})
}

func refusePlainWrite(*commands.Call) error { return errNoPlainWrite }
