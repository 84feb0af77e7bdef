// This file adds to a lock who took it: what this daemon has in its memory of the locks that it granted,
// and which daemon granted another one. Nothing is stored or sent for it.

package inspect

import (
	"cmp"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// identify completes a holder by what this daemon has in its memory; renews reports whether it renews
// the lease for a connection.
func (h *Holder) identify(known lease.Known, renews func() bool, now time.Duration, group *pool.Group) {
	note := cmp.Or(h.Note, &lease.Note{})
	h.Fence = max(known.Fence, note.Fence)
	mine := h.Token.GrantedBy(pool.DaemonName()) // a chosen token may be another daemon's by now
	switch {
	case known.Requester != nil && (mine || known.Until > now):
		h.Held, h.Hold = now-known.Granted, renews()
		note.Took(pool.DaemonName(), known.Requester)
	case note.Daemon == "":
		note.Daemon = granter(h.Token, group)
	}
	// A fence is the masters' time of the grant, unless it had to be above another one.
	if age := group.Time() - int64(h.Fence); h.Held == 0 && h.Fence > 0 && age > 0 {
		h.Held = time.Duration(age) * time.Microsecond
	}
	if *note != (lease.Note{}) {
		h.Note = note
	}
}

// granter is the daemon that generated a token: this one, or one that the masters list; "" if the client
// chose the token, or if the daemon has ended.
func granter(token engine.Token, group *pool.Group) string {
	for _, d := range append(pool.Daemons(group.Reports()), pool.Daemon{Name: pool.DaemonName()}) {
		if token.GrantedBy(d.Name) {
			return d.Name
		}
	}
	return ""
}
