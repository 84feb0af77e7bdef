// This file implements DEL, which compares no value, on masters that may disagree for a
// moment.

package lease

import "redlockd/redlock/engine"

// deleteSeen deletes the lock that a quorum shows, and nothing else. A master without the
// holder's copy may have a copy of a ballot that is still running. If that copy were
// deleted, too, its yes vote would still count when the holder's masters become free a
// moment later. The lock would then be granted with one copy less than a quorum.
func (l *Leases) deleteSeen(b *engine.Batch, r WriteRequest, done WriteDone) {
	l.View(b, r.DB, r.Key, func(v View, err error) {
		switch {
		case err != nil:
			done(false, err)
		case v.Kind == "none":
			done(false, nil)
		case v.Kind != "string", v.Left >= Endless && !r.EndlessToo:
			done(false, engine.ErrWrongType) // readers, permits, or foreign data
		default:
			r.Equal = v.Value // an empty value matches any value
			l.write(nil, r, done)
		}
	})
}
