// DEL and UNLINK key [key …], DELEX key [condition], DELIFEQ key value: delete a
// lock regardless of its holder, or with the right value only.

package rediscompat

import (
	"errors"
	"fmt"
	"strings"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/pool"
	"redlockd/redlock"
)

// del reads before it deletes, so its rows are barriers: a later command of the
// pipeline must find the keys as del leaves them.
func (h *handlers) del(c *commands.Call) error {
	if len(c.Args) == 2 && strings.HasPrefix(c.Args[1], redissonLatch) {
		return c.Reply(commands.Int(0))
	}
	keys, err := h.keysOf(c)
	if keys == nil || !mayForce(c) {
		return err
	}
	for _, key := range keys {
		if h.nextIDs.serves(access.HeldKey{DB: c.Client.DB, Key: key}) {
			return fmt.Errorf("the ids of counter %s only grow; an operator deletes it with DIDS DEL", arg.Quoted(string(key)))
		}
	}
	counting(c, keys, h.deps.DropinStats.Timed("del"), func(key redlock.Key, done func(bool, error)) {
		request := redlock.WriteRequest{DB: c.Client.DB, Key: key, Effect: redlock.WriteDeletes, EndlessToo: h.endlessToo()}
		done = h.noting(c, request, done)
		if h.deps.CompatTest {
			done = orForward(h.deps.RedisCompat, request, done)
		}
		h.deps.RedisCompat.Write(c.Batch, request, done)
	})
	return nil
}

// orForward deletes what is no lock, too. It is for test suites.
func orForward(masters commands.RedisCompat, r redlock.WriteRequest, done redlock.WriteDone) redlock.WriteDone {
	return func(did bool, err error) {
		if !errors.Is(err, redlock.ErrWrongType) {
			done(did, err)
			return
		}
		masters.Forward(nil, redlock.ForwardRequest{DB: r.DB, Words: []string{"DEL", string(r.Key)}, Names: []int{1}}, func(reply pool.Reply, err error) {
			done(reply.Int == 1, err)
		})
	}
}

// delIf is DELEX and DELIFEQ: a DEL, or a release by the lock's value.
func (h *handlers) delIf(c *commands.Call) error {
	r, err := dropin.ParseDelete(c.Args)
	if err != nil {
		return commands.RedisText(err.Error())
	}
	if r.When == dropin.Always {
		return h.del(c)
	}
	key, err := arg.ParseKey(r.Key)
	if err != nil || r.When.Negative() && !mayForce(c) {
		return err
	}
	x := comparison{h.deps.RedisCompat, c, key, h.deps.DropinStats.Timed("delex"), commands.Int(1), commands.Int(0)}
	switch {
	case r.When != dropin.IfEqual:
		h.delSeen(r, x)
	case len(r.Operand) < 1 || len(r.Operand) > maxValueBytes:
		x.answer(false, nil) // no lock has such a value
	default:
		h.release(c, redlock.UnlockRequest{DB: c.Client.DB, Key: key, Token: redlock.Token(r.Operand)}, x.done)
	}
	return nil
}

// delSeen is DELEX with IFNE, IFDEQ and IFDNE.
func (h *handlers) delSeen(r dropin.DeleteRequest, x comparison) {
	db := x.call.Client.DB
	x.read(r.When, r.Operand, func(v redlock.View) {
		switch {
		case v.Kind == "none":
			x.answer(false, nil)
		case r.When.Negative():
			request := redlock.WriteRequest{DB: db, Key: x.key, Effect: redlock.WriteDeletes, Equal: v.Value, EndlessToo: h.endlessToo()}
			h.deps.RedisCompat.Write(nil, request, h.noting(x.call, request, x.done))
		default:
			h.release(x.call, redlock.UnlockRequest{DB: db, Key: x.key, Token: v.Value}, x.done)
		}
	})
}

// delReads selects the calls of DELEX that read before they delete.
func delReads(args []string) bool { return len(args) != 4 || !arg.IsWord(args[2], "IFEQ") }
