// Daemons that use the masters, as the masters list their connections. Each daemon reads the lists
// now and then, so that one shows which daemons follow a change of the group and which do not. A
// daemon that is refused shows, too: it keeps its last connection until it dials again.

package pool

import "redlockd/pool/admission"

// minDaemonsEvery is the least number of readings of settings between two readings of a list. With
// more daemons it is their number: all together read a master's list once a second at most.
const minDaemonsEvery = 10

// daemonsDue is how many readings of settings come before the next one of a master's list; -1 = there
// is none.
type daemonsDue int

// next reports whether a reading of settings reads the list, too.
func (d *daemonsDue) next() bool {
	if *d > 0 {
		*d--
		return false
	}
	return *d == 0
}

// read returns the daemons of a group in the list. After an error, as without the right, the list is not read again.
func (d *daemonsDue) read(list Reply, group string) (all []Daemon, ok bool) {
	if *d = -1; list.Err != nil {
		return nil, false
	}
	all = admission.DaemonsOf(list.Str, group)
	*d = daemonsDue(max(minDaemonsEvery, len(all)))
	return all, true
}
