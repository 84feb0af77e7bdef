// HOLD over several groups: a renewal of each part in its group. What ends one part ends the renewal
// of all, and the client is notified once: before another client can get a key of that part. The
// other keys then run out by themselves, because the client may still be at work.

package groups

import (
	"sync"
	"time"

	"redlockd/redlock"
)

// heldParts is the renewal of one attempt at a lock. That of a part begins with its grant; an
// attempt that fails ends all of them, and notifies nobody.
type heldParts struct {
	terms *redlock.HoldTerms // of the whole

	mu     sync.Mutex
	parts  []redlock.Hold
	grant  redlock.Grant // of the whole
	whole  bool          // grant is valid
	ended  bool          // a part has ended, or the client has left
	reason error         // of that
	goesOn time.Duration // for how long keys of ended parts stay taken
}

// ofPart are the terms of a part.
func (h *heldParts) ofPart() *redlock.HoldTerms {
	return &redlock.HoldTerms{
		MaxTime: h.terms.MaxTime, OnWanted: h.terms.OnWanted,
		OnEnd: func(_ redlock.Grant, reason error, goesOn time.Duration) {
			h.mu.Lock()
			h.goesOn = max(h.goesOn, goesOn)
			h.mu.Unlock()
			h.Abandon(reason)
		},
	}
}

// granted makes it the renewal of the whole. A part may have ended before.
func (h *heldParts) granted(g redlock.Grant, parts []*redlock.Part) redlock.Grant {
	g.Hold = h
	h.mu.Lock()
	h.grant, h.whole = g, true
	for _, p := range parts {
		h.parts = append(h.parts, p.Grant.Hold)
	}
	ended, reason := h.ended, h.reason
	h.mu.Unlock()
	if ended {
		h.finish(reason, func(p redlock.Hold) { p.Abandon(nil) })
	}
	return g
}

// End and Abandon: see lease.Hold.
func (h *heldParts) End() { h.end(nil, redlock.Hold.End) }

func (h *heldParts) Abandon(reason error) {
	h.end(reason, func(p redlock.Hold) { p.Abandon(nil) })
}

// end ends all parts, if they have not ended.
func (h *heldParts) end(reason error, each func(redlock.Hold)) {
	h.mu.Lock()
	first := !h.ended
	if first {
		h.ended, h.reason = true, reason
	}
	whole := h.whole
	h.mu.Unlock()
	if first && whole {
		h.finish(reason, each)
	}
}

// finish is called once. A part that ends calls Abandon, which does nothing any more.
func (h *heldParts) finish(reason error, each func(redlock.Hold)) {
	for _, p := range h.parts {
		each(p)
	}
	h.mu.Lock()
	goesOn := h.goesOn
	h.mu.Unlock()
	h.terms.OnEnd(h.grant, reason, goesOn)
}
