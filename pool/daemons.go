// Daemons that use the masters, as the masters list their connections. Each daemon reads the lists
// now and then, so that one shows which daemons follow a change of the group and which do not. A
// daemon that is refused shows, too: it keeps its last connection until it dials again.

package pool

import "redlockd/pool/admission"

// minDaemonsEvery is the least number of readings of settings between two readings of a list. With
// more daemons it is their number: all together read a master's list once a second at most.
const minDaemonsEvery = 10

// appendDaemons appends the command that reads the list, if it is time for it. Database 0 stands
// for all.
func (f *flush) appendDaemons() {
	f.daemonsAt = -1
	if c := f.conn; c.daemonsIn == 0 && c.lane.group.db == 0 {
		f.daemonsAt = len(f.commands)
		f.next().Set("CLIENT", "LIST", "TYPE", "normal")
	} else if c.daemonsIn > 0 {
		c.daemonsIn--
	}
}

// noteDaemons stores the list. A master that may not be asked is not asked again on this connection.
func (f *flush) noteDaemons() {
	if f.daemonsAt < 0 {
		return
	}
	c, reply := f.conn, f.replies[f.daemonsAt]
	if c.daemonsIn = -1; reply.Err == nil {
		p := c.lane.group.pool
		all := admission.DaemonsOf(reply.Str, p.options.Group)
		c.daemonsIn = max(minDaemonsEvery, len(all))
		p.daemons.Store(c.lane.master.Name, all)
	}
}

// keepRefused keeps the link of a refused dial until the next one, and closes the former one.
func keepRefused(l *lane, link Link) {
	l.group.mu.Lock()
	former := l.refused
	l.refused = link
	if l.group.closed || l.left {
		former, l.refused = link, nil // its lane was closed, and the former one with it
	}
	l.group.mu.Unlock()
	if former != nil {
		former.Close()
	}
}
