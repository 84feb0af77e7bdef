// copyRepair gives a copy back to a master that has lost it.

package redlock

import (
	"strconv"

	"redlockd/pool"
)

// copyRepair re-creates a copy on a master that lost it, of the kind that a quorum holds. It
// never counts as a vote: the other masters have proved the lease.
type healing struct {
	extension *extension
	end       int64
}

var _ pool.Operation = (*healing)(nil)

// Props: it takes the keys, so nothing else on them shares its flush.
func (h *healing) Plan() pool.Plan {
	keys := h.extension.keys
	return pool.Plan{Key: keys[0], Rest: keys[1:], Takes: true, Sealed: true}
}

// Propose: a copy has no fence.
func (h *healing) Propose(int64) {}

// Command requests the copy unless the lease has been released meanwhile. A release forgets the
// lease before it is queued, so it is either visible here or follows on this lane.
func (h *healing) Command(m *pool.Moment, c *pool.Command) bool {
	e := h.extension
	until, ok := e.heldUntil()
	if !ok || m.Now >= until {
		return false
	}
	h.end = healed(m.Time, until-m.Now, e.locker.late)
	s, key, token, end := &e.locker.script, e.keys[0], string(e.request.Token), m.Decimal(h.end)
	switch {
	case len(e.keys) > 1:
		c.Set("EVALSHA", s.multi, strconv.Itoa(len(e.keys)))
		c.Args = append(append(c.Args, e.keys...), token, end, flag(e.how.mode == Shared))
	case e.how.mode == Shared:
		c.Set("EVALSHA", s.share, "1", key, token, end, "")
	case e.how.mode == Permits:
		c.Set("EVALSHA", s.permit, "1", key, token, end,
			strconv.FormatInt(e.how.limit, 10), strconv.FormatInt(e.how.slot, 10), flag(true))
	default:
		c.Set("SET", key, token, "NX", "PXAT", end)
	}
	return true
}

// Answer: the lease's own release goes to every master, so it covers a copy that may or may not
// have been made.
func (h *healing) Answer(a pool.Answer) {
	if a.Asked && a.Reply.Err == nil {
		h.extension.locker.holds.heard(h.extension.ids, consents(a.Reply))
	}
}
