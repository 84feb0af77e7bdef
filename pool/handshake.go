// Attempts: the steps of one dial from a link to a connection whose master may vote.

package pool

import (
	"context"
	"strconv"
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// handshake is one dial of a lane's master, once it has a link.
type handshake struct {
	lane *lane
	link Link
	info admission.ServerInfo // what the server reports
}

// verify checks the server's identity and admits the connection.
func (h *handshake) verify(ctx context.Context) (*connection, error) {
	var a admission.Admission
	var err error
	if h.lane.group.pool.embedded() {
		a, err = h.admitEmbedded()
	} else {
		a, err = h.admit(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := admission.LoadScripts(h.link, h.lane.group.pool.scripts); err != nil {
		return nil, err
	}
	return h.connected(a), nil
}

func (h *handshake) admit(ctx context.Context) (a admission.Admission, err error) {
	g := h.lane.group
	if h.info, err = admission.Probe(h.link, g.pool.options.Clock); err != nil {
		return a, h.quarantineEvicting(err)
	}
	if err := h.identify(); err != nil {
		return a, err
	}
	if err := h.look(); err != nil {
		return a, err
	}
	if !g.pool.tasks.Await(ctx, g.ready) {
		return a, errNoClocks
	}
	if !g.pool.tasks.Await(ctx, g.recordsRead) {
		return a, errNoRecords
	}
	if err := h.awaitTurn(); err != nil {
		return a, err
	}
	g.mu.Lock()
	mark := g.epoch.Mark
	g.mu.Unlock()
	if err := admission.Announce(h.link, g.pool.options.Group, mark); err != nil {
		return a, err
	}
	if a, err = h.admitOnce(); err != nil {
		return a, err
	}
	if _, admitted := admission.SplitMark(a.Incarnation.Fingerprint); admitted != mark { // learned meanwhile
		if err := admission.Announce(h.link, g.pool.options.Group, admitted); err != nil {
			return a, err
		}
	}
	return a, h.endPredecessor()
}

// admitEmbedded has nothing to find out: the master is in this process.
func (h *handshake) admitEmbedded() (a admission.Admission, err error) {
	g, link := h.lane.group, h.link.(*embeddedLink)
	h.info = admission.ServerInfo{RunID: link.master.RunID, Version: "embedded", Est: g.pool.inProcess.estimate()}
	if err := h.identify(); err != nil {
		return a, err
	}
	return link.admit(g.sealKey, g.pool.fingerprint(g.db, "1", h.lane.master.Name))
}

// identify stores the server's run_id and clock, and refuses a server that
// is another master already.
func (h *handshake) identify() error {
	l, f := h.lane, &h.info
	g := l.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.lanes {
		if other != l && other.claimedRunID == f.RunID {
			return admission.Unfitf("is the same server as master %s (run_id %s): every master must be a server of its own", other.master.Name, f.RunID)
		}
	}
	l.claimedRunID, l.version, l.volatile = f.RunID, f.Version, f.Volatile
	if l.est.Known && l.incarnation != nil {
		// A clock that stepped while this daemon was not connected has stepped all the same.
		now := g.now()
		if off := clock.Abs(f.Est.At(now) - l.est.At(now)); off > clock.Micros(clock.MinStep)+l.est.Spread(now)+f.Est.Err {
			l.group.pool.options.Logger.Warn("clock of a master stepped between two connections", "master", l.master.Name, "by_ms", off/1000)
			l.replaceLocked(l.incarnation)
		}
	}
	if reset := statsReset(&l.commands, f.Commands); reset != nil && l.incarnation != nil && l.lastRun == f.RunID {
		l.group.pool.options.Logger.Warn("incarnation invalidated", "master", l.master.Name, "db", l.group.db, "err", reset.Error())
		l.replaceLocked(l.incarnation)
	}
	l.est = f.Est
	g.updateClockLocked()
	return nil
}

// replaceLocked makes the next admission replace the incarnation.
func (l *lane) replaceLocked(of *Incarnation) {
	l.invalidated = of.Identity
	l.group.counters.Invalidated++
}

// quarantineLocked returns the time that a quarantined master still has to wait, 0 if it is not.
func (l *lane) quarantineLocked() time.Duration {
	left := l.conn.incarnation.Base + clock.Micros(l.group.pool.options.Age()) - l.est.At(l.group.now())
	return max(0, time.Duration(left)*time.Microsecond)
}

// look reads the master's identity and its records of the others, before it is admitted:
// both count whether it may vote or not.
func (h *handshake) look() error {
	l := h.lane
	g := l.group
	g.mu.Lock()
	all := g.recordsLocked()
	g.mu.Unlock()
	replies, err := wire.Ask(h.link, append(recordQueries(all), wire.Words("ZRANGE", g.sealKey, "0", "0"),
		wire.Words("HGET", admission.ConfigurationKey, g.pool.options.Group),
		wire.Words("HGET", admission.ConfigurationKey, g.pool.options.Group+"\nprocesses"))...)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if seal := replies[len(all)]; seal.Err == nil { // otherwise it shows nothing: LOADING, NOPERM …
		text := ""
		if len(seal.Items) > 0 {
			text = seal.Items[0].Str
		}
		older := admission.MayBeOlder(text, replies[len(all)+2].Str, h.info.RunID, h.info.Durable(g.pool.options.AssumeDurable))
		l.noteSealLocked(text, older, admission.ParseStored(replies[len(all)+1].Str))
	}
	if l.mergeRecords(all, replies, g.now()) {
		g.checkRecordsReadLocked()
	}
	l.recordsWritten = make([]int64, maxMasters)
	for i := range all {
		l.recordsWritten[i], _ = ReadRecord(replies[i])
	}
	return nil
}

// quarantineEvicting ends the incarnations of an unfit server that may evict keys: the
// keys that the policy removed do not return when the policy changes. If it cannot end
// them, the next dial tries again, and the admission compares the count.
func (h *handshake) quarantineEvicting(cause error) error {
	l, f := h.lane, &h.info
	if f.Policy == "" || f.Policy == "noeviction" {
		return cause
	}
	if all, _ := admission.EndIncarnations(h.link, l.group.sealKey, false); len(all) > 0 {
		l.group.pool.options.Logger.Warn("incarnation invalidated", "master", l.master.Name, "db", admission.Databases(all), "err", cause.Error())
	}
	return cause
}

// admitOnce runs the admission. An incarnation whose register lies below what this daemon
// has seen acknowledged, or what the other masters have recorded, was rolled back and is
// invalidated. That includes an incarnation earlier than the last one that this daemon
// admitted: a new incarnation begins above the register of the one before. Another daemon may
// have raised the register since, so the one that each process began with counts, too.
func (h *handshake) admitOnce() (admission.Admission, error) {
	l := h.lane
	g := l.group
	for range maxAdmissions {
		others := g.elsewhere()
		g.mu.Lock()
		least, acked, run := l.minRegister(), l.acked, l.lastRun
		now := g.now()
		o := g.pool.Options() // with the masters of now
		r := admission.Request{
			SealKey: g.sealKey, DB: g.db, Fingerprint: o.Fingerprint(g.db, g.epoch.Mark, l.master.Name),
			Clock: g.medianLocked(now), Durable: h.info.Durable(o.AssumeDurable), Invalidate: l.invalidated, Older: l.older, Floor: max(g.hybrid.Seen, least),
			MinBase: g.minBaseLocked(), Refusal: h.mayNotBeginLocked(now, others), Hint: l.carries.leftText(l.master.Name) + o.nextText(g.epoch.Mark, g.epoch.next), Texts: g.epoch.Texts, Group: o.Group, KeyPrefix: o.KeyPrefix, Prefixes: o.prefixes(),
		}
		g.mu.Unlock()
		a, err := admission.Admit(h.link, r)
		if err != nil {
			return a, err
		}
		lost := run != "" && a.LowestSince(run) < acked // what this daemon saw acknowledged before
		if a.Incarnation.Identity != r.Invalidate && a.Score >= least && !lost {
			return a, nil
		}
		g.mu.Lock()
		l.replaceLocked(a.Incarnation)
		l.older = true
		g.mu.Unlock()
		l.group.pool.options.Logger.Warn("master lost acknowledged writes; quarantined as a new incarnation",
			"master", l.master.Name, "register", a.Score, "acknowledged", least)
	}
	return admission.Admission{}, admission.Unfitf("every new incarnation of it begins with too low a register, %d times: its register is damaged; stop all daemons, delete %s on this master, start again", maxAdmissions, g.sealKey)
}

// minBaseLocked is the latest base that is known of any master. It lies ahead of the
// clocks while leases of longer, former limits may last.
func (g *Group) minBaseLocked() (base int64) {
	for _, l := range g.lanes {
		base = max(base, l.base)
	}
	return base
}

// endPredecessor makes sure that nothing of an earlier connection of this lane
// is executed any more. Only on the same process: CLIENT IDs restart with it.
func (h *handshake) endPredecessor() error {
	l, f := h.lane, &h.info
	l.group.mu.Lock()
	id, run := l.lastID, l.lastRun
	l.group.mu.Unlock()
	if id == 0 || run != f.RunID {
		return nil
	}
	reply, err := wire.AskOne(h.link, "CLIENT", "KILL", "ID", strconv.FormatInt(id, 10))
	if err == nil && reply.Err != nil {
		err = admission.Unfitf("CLIENT KILL is refused (%v): allow the commands of the documented ACL", reply.Err)
	}
	return err
}

func (h *handshake) connected(a admission.Admission) *connection {
	l, f := h.lane, &h.info
	g := l.group
	c := &connection{lane: l, link: h.link, incarnation: a.Incarnation, connectedAt: g.now()}
	g.mu.Lock()
	defer g.mu.Unlock()
	l.noteSealLocked(a.Incarnation.Identity, false, l.carries.Stored)
	if l.incarnation == nil || l.incarnation.ID != a.Incarnation.ID {
		g.counters.NewIncarnations++
		clear(l.recordsWritten) // the records that it held may be lost with the incarnation before
	}
	if a.Score <= MaxRegister { // otherwise the register is damaged, as its seal will show
		l.acked = max(l.acked, a.Score)
	}
	l.lastID, l.lastRun, l.incarnation, l.invalidated, l.older = f.ClientID, f.RunID, a.Incarnation, "", false
	l.gain.restart(c.connectedAt, l.est.Offset+l.est.Spread(c.connectedAt), g.pool.options.budget()) // this daemon has not watched its clock
	return c
}
