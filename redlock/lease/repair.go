// The repair of a lease's copy on a master that has lost it.

package lease

import (
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// repair re-creates a copy on a master that lost it, of the kind that a quorum holds. It never
// counts as a vote: the other masters have proved the lease. It takes the keys, so nothing else
// on them shares its flush.
func (e *extension) repair(lane int) {
	e.leases.engine.Counts.Repaired.Add(1)
	e.group.Push(lane, &engine.Message{
		Plan:     pool.Props{Key: e.keys[0], Rest: e.keys[1:], Exclusive: true, Sealed: true},
		Write:    e.writeCopy,
		OnAnswer: e.onRepaired,
	})
}

// writeCopy requests the copy unless the lease has been released meanwhile. A release forgets
// the lease before it is queued, so it is either visible here or follows on this lane.
func (e *extension) writeCopy(m *pool.SendContext, c *pool.Command) bool {
	until, ok := e.heldUntil()
	if !ok || m.Now >= until {
		return false
	}
	end := m.Decimal(quorum.RepairedExpiry(m.Time, until-m.Now, e.leases.engine.Late))
	s, key, token := e.leases.engine.Scripts, e.keys[0], string(e.request.Token)
	switch {
	case len(e.keys) > 1:
		c.Set("EVALSHA", s.Multi, strconv.Itoa(len(e.keys)))
		c.Args = append(append(c.Args, e.keys...), token, end, engine.Flag(e.agreed.mode == Shared))
	case e.agreed.mode == Shared:
		c.Set("EVALSHA", s.Share, "1", key, token, end, "")
	case e.agreed.mode == Permits:
		c.Set("EVALSHA", s.Permit, "1", key, token, end,
			strconv.FormatInt(e.agreed.limit, 10), strconv.FormatInt(e.agreed.slot, 10), engine.Flag(true))
	default:
		c.Set("SET", key, token, "NX", "PXAT", end)
	}
	return true
}

// onRepaired: the lease's own release goes to every master, so it covers a copy that may or may
// not have been made.
func (e *extension) onRepaired(a pool.Answer) {
	if a.Sent && a.Reply.Err == nil {
		e.leases.changes.Copied(e.ids, engine.IsYes(a.Reply))
	}
}
