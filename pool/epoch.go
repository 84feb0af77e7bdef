// Epoch: the configuration under which a daemon admits masters, and when it may put it on
// a master that does not carry it.
//
// All votes of a daemon are of masters that carry one configuration. A change renames it on
// the masters. From then on fewer than a quorum of the former list carry the former
// configuration, and no daemon may raise that number: it begins an incarnation only while a
// quorum of its own list carries its own configuration. So a daemon that missed a change
// never gets a quorum again. Nor does a master that forgets the change raise that number, see
// evidence.go.

package pool

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"redlockd/pool/admission"
)

// noteSealLocked stores what counts of the master's seal and of the texts of its
// configuration, also if it is not admitted.
func (l *lane) noteSealLocked(seal string, older bool, stored admission.StoredConfiguration) {
	g := l.group
	var base int64
	l.carries, base = lookAt(seal, older, stored, g.pool.fingerprint(g.db, "", l.master.Name), g.pool.options.prefixes()[0])
	l.carries.at, l.base = max(g.now(), 1), cmp.Or(base, l.base)
}

// elsewhere reads the other databases. No group's lock is held.
func (g *Group) elsewhere() (e elsewhere) {
	g.pool.mu.Lock()
	groups := slices.Collect(maps.Values(g.pool.groups))
	g.pool.mu.Unlock()
	e.proved = map[string]bool{}
	for _, other := range groups {
		if other == g {
			continue
		}
		other.mu.Lock()
		now := other.now()
		if e.known.Mark == "" && now >= other.epoch.since {
			e.known = other.epoch.Known
		}
		e.later = cmp.Or(e.later, other.epoch.later)
		for _, l := range other.lanes {
			if other.epoch.Mark == e.known.Mark && l.hasProvedLocked(now) {
				e.proved[l.master.Name] = true
			}
		}
		other.mu.Unlock()
	}
	return e
}

// evidenceLocked returns what all masters show now.
func (g *Group) evidenceLocked(now time.Duration) *evidence {
	e := &evidence{known: g.epoch.Known, next: g.epoch.next}
	for _, l := range g.lanes {
		m := masterEvidence{
			name: l.master.Name, connected: l.conn != nil, carries: l.carries.Carried, proves: l.provesLocked(now), hasProved: l.hasProvedLocked(now),
			older:    l.carries.older,
			recently: l.carriedAt > 0 && now-l.carriedAt <= g.pool.options.MaxTTL, // 1 % and 2 s less than a change rests
		}
		m.carries.Fresh = m.connected || l.carries.at > 0 && now-l.carries.at <= maxLook
		e.masters = append(e.masters, m)
	}
	return e
}

// AllBlank reports whether all masters answer and have no configuration in database 0: nothing is served
// before a bootstrap.
func (p *Pool) AllBlank() bool {
	g := p.Group(0)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.evidenceLocked(g.now()).allBlank()
}

// awaitTurn finds the configuration. During the first dial, it also waits until the daemon may
// begin with a blank master, so that a new group serves when Start returns.
func (h *handshake) awaitTurn() error {
	l := h.lane
	g := l.group
	end := g.now() + g.pool.options.DialTimeout()
	for range maxTurns {
		others := g.elsewhere()
		g.mu.Lock()
		now := g.now()
		stale := g.learnEpochLocked(now, others)
		e := g.epoch
		waits := l.state == stateDialing && (l.carries.Fingerprint == "" || l.carries.Ours) && l.carries.Mark != e.Mark && h.mayNotBeginLocked(now, others) != "" && now < end
		o := g.pool.Options()
		why := g.evidenceLocked(now).laterText(&o, e.later, &l.carries)
		g.mu.Unlock()
		stale.fail(errOtherEpoch)
		if why != "" {
			return admission.Unfitf("%s", why)
		}
		if now < e.since {
			return admission.Unfitf("the group has got configuration %s: this daemon admits masters in %s, when what it did under the former one is over", e.Mark, humanDuration(e.since-now))
		}
		if !waits {
			break
		}
		g.pool.tasks.Sleep(time.Millisecond)
	}
	return nil
}

// learnEpochLocked finds the configuration that a quorum of the masters carries with this
// daemon's settings, that of the other databases, or that of a blank group. It returns the
// connections that were admitted under another one, or all if a later one is in force.
func (g *Group) learnEpochLocked(now time.Duration, others elsewhere) (stale connections) {
	shown, e, quorum, o := g.evidenceLocked(now), &g.epoch, Quorum(len(g.lanes)), g.pool.Options()
	s := shown.survey()
	if next := s.Next(o.Configuration(1), quorum, admission.EpochOf(e.Mark)); next != nil && (e.next == nil || next.Epoch > e.next.Epoch) {
		g.followLocked(next)
		shown.next = next
	}
	found := s.Majority(quorum, e.Known)
	if found.Mark == "" && e.Mark == "" {
		found = others.known
	}
	if found.Mark == "" {
		found = shown.blank(&o)
	}
	if e.later = shown.later(cmp.Or(found.Mark, e.Mark), others); e.later != nil {
		return g.connectionsLocked()
	}
	if found.Mark == "" || found.Mark == e.Mark {
		return nil
	}
	if c := admission.ParseStored("0\n" + found.Texts).Now; c != nil {
		g.pool.slots.take(c) // before a master is admitted under it
	}
	if e.Mark != "" { // votes under both must not meet in one attempt
		e.since = now + g.pool.options.Age()
		g.pool.options.Logger.Warn("configuration of the group changed", "db", g.db, "former", e.Mark, "now", found.Mark)
	}
	e.Known = found
	return g.connectionsLocked()
}

func (g *Group) connectionsLocked() (all connections) {
	for _, l := range g.lanes {
		if l.conn != nil {
			all = append(all, l.conn)
		}
	}
	return all
}

// followLocked receives the configuration that a quorum of this daemon's masters carries in
// place of its own.
func (g *Group) followLocked(next *admission.Configuration) {
	g.epoch.next = next
	o := g.pool.Options()
	o.reportNext(g.db, g.epoch.Mark, next)
	known := admission.Known{Mark: next.Mark(), Texts: admission.StoredConfiguration{Now: next, InForce: true}.Texts()}
	_ = g.pool.tasks.Submit(func() { g.pool.followConfiguration(next, known) })
}

// mayNotBeginLocked is the reason why this daemon may not put its configuration on the master.
func (h *handshake) mayNotBeginLocked(now time.Duration, others elsewhere) string {
	g, o := h.lane.group, h.lane.group.pool.Options()
	text := g.evidenceLocked(now).mayNotBegin(h.lane.master.Name, others, &o, g.epoch.later)
	if text != "" {
		text += o.nextText(g.epoch.Mark, g.epoch.next)
	}
	return text
}

// outdatedLocked reports whether the connection was admitted under another configuration
// than the daemon has now, too early, or beside a later one.
func (c *connection) outdatedLocked() bool {
	g := c.lane.group
	_, mark := admission.SplitMark(c.incarnation.Fingerprint)
	return !g.pool.embedded() && (mark != g.epoch.Mark || g.now() < g.epoch.since || g.epoch.later != nil)
}

// provesLocked reports whether the master has just proved that it carries the configuration.
func (l *lane) provesLocked(now time.Duration) bool {
	return l.state == stateUp && l.conn != nil && !l.conn.outdatedLocked() && l.carriedAt > 0 && now-l.carriedAt <= maxEvidence
}

// hasProvedLocked reports whether it has proved that for minEvidence without a break.
func (l *lane) hasProvedLocked(now time.Duration) bool {
	return l.provesLocked(now) && l.carriedAt-l.conn.connectedAt >= minEvidence
}
