// Epoch: the configuration under which a daemon admits masters, and when it may put it on
// a master that does not carry it.
//
// All votes of a daemon are of masters that carry one configuration. A change renames it on
// the masters. From then on fewer than a quorum of the former list carry the former
// configuration, and no daemon may raise that number: it begins an incarnation only while a
// quorum of its own list carries its own configuration. So a daemon that missed a change
// never gets a quorum again.

package pool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlockd/pool/admission"
)

const (
	// maxEvidence is how long ago a master proved that it carries the configuration, so
	// that it counts. A heartbeat proves it every 100 ms.
	maxEvidence = 150 * time.Millisecond
	// minEvidence is for how long it has carried it without a break. A daemon that counts
	// masters just before a change may write up to maxEvidence and twice
	// admission.MaxSkew later. After minEvidence no such write is under way any more.
	minEvidence = 1500 * time.Millisecond
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
}

// noteSealLocked stores what counts of the master's seal and of the texts of its
// configuration, also if it is not admitted.
func (l *lane) noteSealLocked(seal string, stored admission.StoredConfiguration) {
	g := l.group
	print := admission.FingerprintOf(seal)
	if now := stored.Now; print == "" && now != nil && now.Prefixes[0] != g.pool.options.prefixes()[0] {
		print = now.String() // not blank: the seal of its daemons has another name
	}
	settings, mark := admission.SplitMark(print)
	ours, _ := admission.SplitMark(g.pool.fingerprint(g.db, "", l.master.Name))
	l.carries = carried{max(g.now(), 1), admission.Carried{Fingerprint: print, Mark: mark, Ours: settings == ours && mark != "", Stored: stored}}
	if incarnation, err := admission.ParseIdentity(seal); err == nil && l.carries.Ours {
		l.base = incarnation.Base
	}
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
		for _, l := range other.lanes {
			if other.epoch.Mark == e.known.Mark && l.hasProvedLocked(now) {
				e.proved[l.master.Name] = true
			}
		}
		other.mu.Unlock()
	}
	return e
}

// surveyLocked is what all masters carry.
func (g *Group) surveyLocked(now time.Duration) admission.Survey {
	var s admission.Survey
	for _, l := range g.lanes {
		c := l.carries.Carried
		c.Fresh = l.conn != nil || l.carries.at > 0 && now-l.carries.at <= maxLook
		s = append(s, c)
	}
	return s
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
		stale := g.learnEpochLocked(now, others.known)
		e := g.epoch
		waits := l.state == stateDialing && (l.carries.Fingerprint == "" || l.carries.Ours) && l.carries.Mark != e.Mark && d.mayNotBeginLocked(now, others) != "" && now < end
		g.mu.Unlock()
		for _, c := range stale {
			c.fail(errOtherEpoch)
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
// connections that were admitted under another one.
func (g *Group) learnEpochLocked(now time.Duration, others admission.Known) (stale []*connection) {
	s, e, quorum := g.surveyLocked(now), &g.epoch, Quorum(len(g.lanes))
	if next := s.Next(g.pool.firstConfiguration(), quorum, admission.EpochOf(e.Mark)); next != nil && (e.next == nil || next.Epoch > e.next.Epoch) {
		g.followLocked(next)
	}
	found := s.Majority(quorum, e.Known)
	if found.Mark == "" && e.Mark == "" {
		found = others
	}
	if found.Mark == "" {
		found = g.blankLocked(now)
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
	for _, l := range g.lanes {
		if l.conn != nil {
			stale = append(stale, l.conn)
		}
	}
	return stale
}

// followLocked receives the configuration that a quorum of this daemon's masters carries in
// place of its own.
func (g *Group) followLocked(next *admission.Configuration) {
	g.epoch.next = next
	g.pool.options.Logger.Warn("this daemon was left behind by a change of the group", "db", g.db,
		"epoch", admission.EpochOf(g.epoch.Mark), "now", next.Epoch, "masters", next.Names(), "slots", next.MapText(),
		"hint", cmp.Or(mapHint(g.pool.Options(), next), "it follows if only the masters or the slots differ; otherwise start it again with the settings of the others"))
	known := admission.Known{Mark: next.Mark(), Texts: admission.StoredConfiguration{Now: next, InForce: true}.Texts()}
	_ = g.pool.tasks.Submit(func() { g.pool.followConfiguration(next, known) })
}

// mayNotBeginLocked is the reason why this daemon may not put its configuration on a master
// that does not carry it; "" = it may. A quorum of its list proves that no change has put
// another one in its place. If all masters are blank, or carry it, they get it in the
// order of their names: of two lists with a common master, one stops there.
func (d *attempt) mayNotBeginLocked(now time.Duration, others elsewhere) string {
	g := d.lane.group
	n, first := 0, true
	for _, other := range g.lanes {
		if other != d.lane && (other.hasProvedLocked(now) || others.known.Mark == g.epoch.Mark && others.proved[other.master.Name]) {
			n++
		}
		first = first && (other.provesLocked(now) || other.master.Name >= d.lane.master.Name)
	}
	if n >= Quorum(len(g.lanes)) {
		return ""
	}
	if blank := g.blankLocked(now); blank.Mark != "" && blank.Mark == g.epoch.Mark && first {
		return ""
	}
	return g.evidenceText(now)
}

// blankLocked is the configuration with which this daemon begins a group of which all masters
// answer, and the rest is blank where fewer than a quorum carry it. If all masters of an old
// list come back empty, they show nothing of the changes that were made since. But a change
// rests for the longest lease, and keeps so many masters that the others are no quorum. So a
// daemon to which a quorum has proved its configuration within the longest lease has missed one
// change at most, and what that left has lost its quorum, too.
func (g *Group) blankLocked(now time.Duration) admission.Known {
	o, proved := &g.pool.options, 0
	for _, l := range g.lanes {
		if l.carriedAt > 0 && now-l.carriedAt <= o.MaxTTL { // 1 % and 2 s less than the rest
			proved++
		}
	}
	if o.AwaitBootstrap && (g.epoch.Mark == "" || proved < Quorum(len(g.lanes))) {
		return admission.Known{}
	}
	if next := g.epoch.next; next != nil && next.Epoch >= admission.EpochOf(g.epoch.Mark) {
		return admission.Known{} // it was left behind, and leases may run that are longer than its own
	}
	return g.surveyLocked(now).Blank(g.epoch.Known, g.pool.firstConfiguration())
}

// outdatedLocked reports whether the connection was admitted under another configuration
// than the daemon has now, or too early.
func (c *connection) outdatedLocked() bool {
	g := c.lane.group
	_, mark := admission.SplitMark(c.incarnation.Fingerprint)
	return !g.pool.embedded() && (mark != g.epoch.Mark || g.now() < g.epoch.since)
}

// provesLocked reports whether the master has just proved that it carries the configuration.
func (l *lane) provesLocked(now time.Duration) bool {
	return l.state == stateUp && l.conn != nil && !l.conn.outdatedLocked() && l.carriedAt > 0 && now-l.carriedAt <= maxEvidence
}

// hasProvedLocked reports whether it has proved that for minEvidence without a break.
func (l *lane) hasProvedLocked(now time.Duration) bool {
	return l.provesLocked(now) && l.carriedAt-l.conn.connectedAt >= minEvidence
}

// evidenceText counts the masters that carry the configuration, for people.
func (g *Group) evidenceText(now time.Duration) string {
	var carry, silent []string
	for i, c := range g.surveyLocked(now) {
		switch l := g.lanes[i]; {
		case !c.Fresh:
			silent = append(silent, l.master.Name)
		case l.provesLocked(now) || l.conn == nil && c.Ours:
			carry = append(carry, l.master.Name)
		}
	}
	text := fmt.Sprintf("%d of %d masters carry the configuration (%s), and %d must do so for %s before it is put on another one",
		len(carry), len(g.lanes), strings.Join(carry, ", "), Quorum(len(g.lanes)), minEvidence)
	switch {
	case len(silent) > 0:
		text += fmt.Sprintf("; no answer from %s: bring it back, or make sure that this daemon has the group's masters and run redlockd bootstrap --aged MASTER", strings.Join(silent, ", "))
	case len(carry) == 0:
		text += "; for a new group run redlockd bootstrap; if all masters lost their memory, see All masters lost in the runbook"
	default:
		text += "; make sure that this daemon has the group's masters and run redlockd bootstrap --aged MASTER"
	}
	return text + g.nextText()
}

// nextText names the configuration that replaced this daemon's, for people.
func (g *Group) nextText() string {
	if g.epoch.next == nil {
		return ""
	}
	text := fmt.Sprintf("; left behind: the masters have epoch %d: --masters %s", g.epoch.next.Epoch, g.epoch.next.Names())
	if hint := mapHint(g.pool.Options(), g.epoch.next); hint != "" {
		text += "; " + hint
	}
	return text
}
