// DEL, which compares nothing, on masters that may disagree for a moment.
package redlock

// deleteSeen deletes the lock that a quorum sees, and nothing else. A master that
// the holder never got may have a copy of somebody's who is just asking: were it
// deleted, too, its yes would be counted when the holder's masters are free a
// moment later, and the lock be granted with one copy less than a quorum.
func (l *Locker) deleteSeen(b *Batch, r WriteRequest, done WriteDone) {
	l.View(b, r.DB, r.Key, func(v View, err error) {
		switch {
		case err != nil:
			done(false, err)
		case v.Kind == "none":
			done(false, nil)
		case v.Kind != "string", v.Left >= Endless && !r.EndlessToo:
			done(false, ErrWrongType) // readers, permits, or somebody's data
		default:
			r.Equal = v.Value // of an empty one, whatever is there
			l.write(nil, r, done)
		}
	})
}
