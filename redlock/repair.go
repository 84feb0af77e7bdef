// copyRepair gives a copy back to a master that has lost it.

package redlock

import (
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// copyRepair re-creates a copy on a master that lost it, of the kind that a quorum holds. It
// never counts as a vote: the other masters have proved the lease.
type copyRepair struct {
	extension *extension
	end       int64
}

var _ pool.Operation = (*copyRepair)(nil)

// Props: it takes the keys, so nothing else on them shares its flush.
func (h *copyRepair) Props() pool.Props {
	keys := h.extension.keys
	return pool.Props{Key: keys[0], Rest: keys[1:], Exclusive: true, Sealed: true}
}

// Propose: a copy has no fence.
func (h *copyRepair) Propose(int64) {}

// Command requests the copy unless the lease has been released meanwhile. A release forgets the
// lease before it is queued, so it is either visible here or follows on this lane.
func (h *copyRepair) Command(m *pool.SendContext, c *pool.Command) bool {
	e := h.extension
	until, ok := e.heldUntil()
	if !ok || m.Now >= until {
		return false
	}
	h.end = quorum.RepairedExpiry(m.Time, until-m.Now, e.locker.engine.Late)
	s, key, token, end := e.locker.engine.Scripts, e.keys[0], string(e.request.Token), m.Decimal(h.end)
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

// Answer: the lease's own release goes to every master, so it covers a copy that may or may not
// have been made.
func (h *copyRepair) Answer(a pool.Answer) {
	if a.Sent && a.Reply.Err == nil {
		h.extension.locker.holds.noteCopy(h.extension.ids, engine.IsYes(a.Reply))
	}
}
