// Follow: a running pool takes another list of masters.
//
// The lanes of a database change at one moment, under the lock under which operations are
// queued. So each operation is sent to the masters of one list, and a quorum of that list
// decides it: operations that were queued before are answered by the lanes that they were
// queued on, also by those that leave. Whether quorums of the two lists meet is the concern of
// the caller.
//
// A lane's index is its place in the list. A master that stays keeps its lane with connection
// and queue, as far as its place lies in the new list; newcomers take the places that are free.
// In a list that became shorter the last masters move to free places. Such a master gets a
// lane of its own that is dialled anew, because operations know lanes by their index.

package pool

import (
	"errors"
	"maps"
	"slices"
)

// Follow changes the masters in all databases. Their order is the pool's own. An error is
// about the list; then nothing has changed.
func (p *Pool) Follow(masters []Master) error {
	if p.embedded() {
		return errors.New("masters: embedded masters cannot be changed")
	}
	o := p.options
	if o.Masters = masters; o.WithDefaults() != nil {
		return o.WithDefaults()
	}
	p.mu.Lock()
	former := p.Masters()
	list := arrange(former, masters)
	p.masters.Store(&list)
	var left []*lane
	for _, g := range p.groups {
		left = append(left, g.follow(list)...)
	}
	for i := range p.drained {
		if i >= len(list) || i >= len(former) || list[i].Name != former[i].Name {
			p.drained[i].Store(0)
		}
	}
	groups := slices.Collect(maps.Values(p.groups))
	p.mu.Unlock()
	for _, l := range left { // without the lock: they answer operations
		l.close(errLeft)
	}
	for _, g := range groups {
		g.Keys.Follow(list)
		g.Events.Follow(list)
	}
	return nil
}

// arrange is the new list in the order in which the most masters keep their place.
func arrange(former, masters []Master) []Master {
	list := make([]Master, len(masters))
	var rest []Master
	for _, m := range masters {
		if i := slices.Index(former, m); i >= 0 && i < len(list) {
			list[i] = m
		} else {
			rest = append(rest, m)
		}
	}
	for i := range list {
		if list[i].Name == "" {
			list[i], rest = rest[0], rest[1:]
		}
	}
	return list
}

// follow changes the lanes and returns those that are to be closed.
func (g *Group) follow(list []Master) (left []*lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	former := g.lanes
	g.lanes = make([]*lane, len(list))
	for i, m := range list {
		if i < len(former) && former[i].master == m {
			g.lanes[i] = former[i]
			continue
		}
		g.lanes[i] = newLane(g, i, m)
		for _, before := range former {
			if before.master.Name == m.Name {
				g.lanes[i].succeedLocked(before)
			}
			if before.recordsWritten != nil {
				before.recordsWritten[i] = 0
			}
		}
		g.lanes[i].submitDialLocked()
	}
	for i, l := range former {
		if i >= len(list) || g.lanes[i] != l {
			l.left = true
			left = append(left, l)
		}
	}
	o := g.pool.options
	o.Masters = list
	g.fingerprint = fingerprint(&o, g.db)
	g.updateClockLocked()
	return left
}

// newLane is one that has not been dialled.
func newLane(g *Group, index int, m Master) *lane {
	return &lane{group: g, index: index, master: m, state: stateDialing, since: g.now()}
}

// succeedLocked takes over what is known of a master from its former lane.
func (l *lane) succeedLocked(before *lane) {
	l.acked, l.recordedRegister, l.base = before.acked, before.recordedRegister, before.base
	l.est, l.gain, l.provedAt = before.est, before.gain, before.provedAt
	l.invalidated, l.incarnation = before.invalidated, before.incarnation
	l.lastID, l.lastRun, l.commands = before.lastID, before.lastRun, before.commands
	l.pending, before.pending = before.pending, nil
}
