// Epoch: the configuration under which a daemon admits masters, and when it may put it on
// a master that does not carry it.
//
// All votes of a daemon are of masters that carry one configuration. A change renames it on
// the masters. From then on fewer than a quorum of the former list carry the former
// configuration, and no daemon may raise that number: it begins an incarnation only while a
// quorum of its own list carries its own configuration. So a daemon that missed a change
// never gets a quorum again.
//
// Neither does a master raise the number that forgets the change. What stands on it counts only if
// the process that has it wrote it, or if it is durable: one that comes back with a file carries
// nothing, as one that comes back empty. A durable master may lie, with the files of a backup. So a
// daemon also serves nothing, and admits no master, while any master of its list has stored that a
// later configuration is in force: its own quorum is one of old memories then.

package pool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"redlockd/pool/admission"
)

const (
	// maxLook is how long ago a master was looked at that may be blank: an unfit master is
	// dialled again within maxRetryDelay.
	maxLook = 2 * time.Second
	// maxTurns bounds the milliseconds that a first dial waits to begin with a blank master.
	maxTurns = 500
)

// groupEpoch is the configuration of a daemon, guarded like the group.
type groupEpoch struct {
	admission.Known               // "" = unknown
	since           time.Duration // masters are admitted from then on
	next            *admission.Configuration
	later           *admission.Configuration // that is in force by what one master has stored; nil = none
}

// noteSealLocked stores what counts of the master's seal and of the texts of its
// configuration, also if it is not admitted. What of this group may be older than a change counts
// as nothing.
func (l *lane) noteSealLocked(seal string, older bool, stored admission.StoredConfiguration) {
	g := l.group
	print := admission.FingerprintOf(seal)
	if now := stored.Now; print == "" && now != nil && now.Prefixes[0] != g.pool.options.prefixes()[0] {
		print = now.String() // not blank: the seal of its daemons has another name
	}
	settings, mark := admission.SplitMark(print)
	whole := g.pool.fingerprint(g.db, "", l.master.Name)
	ours, _ := admission.SplitMark(whole)
	if incarnation, err := admission.ParseIdentity(seal); err == nil && settings == ours && mark != "" {
		l.base = incarnation.Base
	}
	if admission.SameGroup(print, whole) && (older || !admission.SameDB(print, whole)) {
		print, settings, mark = "", "", ""
	} else {
		older = false
	}
	l.carries = carried{max(g.now(), 1), older, admission.Carried{Fingerprint: print, Mark: mark, Ours: settings == ours && mark != "", Stored: stored}}
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

// evidenceLocked is what all masters show now.
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

// awaitTurn finds the configuration. During the first dial, it also waits until the daemon may
// begin with a blank master, so that a new group serves when Start returns.
func (d *attempt) awaitTurn(ctx context.Context) error {
	l := d.lane
	g := l.group
	end := g.now() + g.pool.options.DialTimeout()
	for range maxTurns {
		others := g.elsewhere()
		g.mu.Lock()
		now := g.now()
		stale := g.learnEpochLocked(now, others)
		e, carries := g.epoch, l.carries
		waits := l.state == stateDialing && (l.carries.Fingerprint == "" || l.carries.Ours) && l.carries.Mark != e.Mark && d.mayNotBeginLocked(now, others) != "" && now < end
		g.mu.Unlock()
		stale.fail(errOtherEpoch)
		if e.later != nil && carries.Ours && carries.Mark != e.later.Mark() {
			return admission.Unfitf("%s", d.laterText(e.later))
		}
		if now < e.since {
			return admission.Unfitf("the group has got configuration %s: this daemon admits masters in %s, when what it did under the former one is over", e.Mark, humanDuration(e.since-now))
		}
		if !waits || ctx.Err() != nil {
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
	e.later = nil
	if serves := cmp.Or(found.Mark, e.Mark); serves != "" {
		e.later = s.Later(admission.EpochOf(serves))
		if e.later == nil && others.later != nil && others.later.Epoch > admission.EpochOf(serves) {
			e.later = others.later
		}
	}
	if e.later != nil {
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

// laterText is that nothing is served beside a later configuration, for people.
func (d *attempt) laterText(later *admission.Configuration) string {
	o := d.lane.group.pool.Options()
	by := ""
	d.lane.group.mu.Lock()
	for _, l := range d.lane.group.lanes {
		if now := l.carries.Stored.Now; by == "" && now != nil && now.Mark() == later.Mark() {
			by = l.master.Name
		}
	}
	d.lane.group.mu.Unlock()
	return fmt.Sprintf("master %s has a later configuration of group %s in force, epoch %d with --masters %s; nothing is granted beside it. Start this daemon with that list; if %[1]s is not a master of this group, correct its address",
		by, o.Group, later.Epoch, later.Names())
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
func (d *attempt) mayNotBeginLocked(now time.Duration, others elsewhere) string {
	g, o := d.lane.group, d.lane.group.pool.Options()
	text := g.evidenceLocked(now).mayNotBegin(d.lane.master.Name, others, &o)
	if text == "" && g.epoch.later != nil {
		text = "a later configuration is in force on another one"
	}
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
