// Follow: a running pool takes another list of masters, or other slots.
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

	"redlockd/pool/admission"
	"redlockd/pool/masterlog"
)

// Follow changes the masters in all databases, and what next has besides: the key prefixes and the
// slots of the group. The order of the masters is the pool's own. known is the configuration that
// they carry. An error is about the lists; then nothing has changed.
func (p *Pool) Follow(masters []Master, next *admission.Configuration, known admission.Known) error {
	if p.embedded() {
		return errors.New("masters: embedded masters cannot be changed")
	}
	o := p.options
	o.Masters, o.Prefixes = masters, next.Prefixes
	if err := o.WithDefaults(); err != nil {
		return err
	}
	p.mu.Lock()
	p.slots.take(next) // first: from then on masters may be admitted under it
	former := p.Masters()
	list := arrange(former, masters)
	p.masters.Store(&list)
	p.prefixes.Store(&next.Prefixes)
	var left []*lane
	var outdated connections
	for _, g := range p.groups {
		lanes, connections := g.follow(list, known)
		left, outdated = append(left, lanes...), append(outdated, connections...)
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
	outdated.fail(errOtherEpoch)
	for _, g := range groups {
		g.Keys.Follow(list)
		g.Events.Follow(list)
		g.Daemons.Follow(list)
	}
	return nil
}

// followConfiguration follows a change of the group that its masters carry.
func (p *Pool) followConfiguration(next *admission.Configuration, known admission.Known) {
	o := p.Options()
	if !o.follows(next) {
		return
	}
	if err := p.Follow(o.mastersOf(next), next, known); err != nil {
		o.Logger.Error("change of the group not followed", "epoch", next.Epoch, "err", err.Error())
		return
	}
	o.Logger.Warn("change of the group followed; the configuration of this daemon is older", "epoch", next.Epoch, "masters", o.Names(next), "slots", next.MapText())
}

// fingerprint returns the one of the present masters.
func (p *Pool) fingerprint(db int, mark, name string) string {
	o := p.Options()
	return o.Fingerprint(db, mark, name)
}

// follow changes the lanes and returns those that are to be closed, and the connections of
// the others, which were admitted under the former configuration.
func (g *Group) follow(list []Master, known admission.Known) (left []*lane, outdated connections) {
	g.mu.Lock()
	defer g.mu.Unlock()
	former := g.lanes
	g.lanes = make([]*lane, len(list))
	for i, m := range list {
		if i < len(former) && former[i].master == m {
			g.lanes[i] = former[i]
			former[i].carries = carried{} // it was compared with the former list
			if c := former[i].conn; c != nil {
				outdated = append(outdated, c)
			} else {
				former[i].redialNowLocked() // it may have been refused under the former list
			}
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
	g.epoch = groupEpoch{Known: known}
	g.updateClockLocked()
	return left, outdated
}

// newLane is one that has not been dialled. The pool's lock is held.
func newLane(g *Group, index int, m Master) *lane {
	p := g.pool
	if p.lastLines[m.Name] == nil {
		p.lastLines[m.Name] = &masterlog.LastLine{}
	}
	return &lane{
		group: g, index: index, master: m, state: stateDialing, since: g.now(),
		peerRecords: peerRecords{options: &p.options, db: g.db, name: m.Name},
		pending:     pendingReleases{mu: &g.mu, options: &p.options, master: m.Name},
		voteLog:     masterlog.New(p.options.Logger, m.Name, g.db, p.lastLines[m.Name]),
	}
}

// redialNowLocked ends the pause before the next dial.
func (l *lane) redialNowLocked() {
	l.failedDials = 0
	if l.redial != nil && l.redial.Stop() {
		l.submitDialLocked()
	}
}

// succeedLocked takes over what is known of a master from its former lane.
func (l *lane) succeedLocked(before *lane) {
	l.acked, l.recordedRegister, l.base = before.acked, before.recordedRegister, before.base
	l.masterClock = before.masterClock
	l.anomaly = nil
	l.invalidated, l.older, l.incarnation = before.invalidated, before.older, before.incarnation
	l.lastID, l.lastRun, l.commands = before.lastID, before.lastRun, before.commands
	l.pending.list, before.pending.list = before.pending.list, nil
}
