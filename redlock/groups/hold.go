// HOLD over several groups: a renewal of each part in its group, once the client has all of them. What ends one part ends the renewal
// of all, and the client is notified once: before another client can get a key of that part. The
// other keys then run out by themselves, because the client may still be at work.

package groups

import (
	"sync"
	"time"

	"redlockd/redlock"
)

// heldParts is the renewal of a lock, of which each part is renewed in its group.
type heldParts struct {
	terms redlock.HoldTerms
	grant redlock.Grant

	mu     sync.Mutex
	parts  []redlock.Hold
	whole  bool          // parts has all of them
	ended  bool          // a part has ended, or the client has left
	reason error         // of that
	goesOn time.Duration // for how long keys of ended parts stay taken
}

// hold renews the parts of a lock. One may end before the others are renewed.
func (d *directory) hold(g redlock.Grant, terms redlock.HoldTerms) {
	h := &heldParts{terms: terms, grant: g}
	of := redlock.HoldTerms{MaxTime: terms.MaxTime, OnWanted: terms.OnWanted, OnEnd: func(_ redlock.Grant, reason error, goesOn time.Duration) {
		h.mu.Lock()
		h.goesOn = max(h.goesOn, goesOn)
		h.mu.Unlock()
		h.Abandon(reason)
	}}
	for _, p := range redlock.PartsOf(&g) {
		h.parts = append(h.parts, d.groups[d.indexOf(p.Grant.Key)].Locker.Hold(p.Grant, of))
	}
	if terms.OnBegin != nil {
		terms.OnBegin(h)
	}
	h.mu.Lock()
	h.whole = true
	ended, reason := h.ended, h.reason
	h.mu.Unlock()
	if ended {
		h.finish(reason, func(p redlock.Hold) { p.Abandon(nil) })
	}
}

// End and Abandon: see redlock.Hold.
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
