// This file reads a lock from every master.

package inspect

import (
	"cmp"
	"hash/maphash"
	"log/slog"
	"slices"
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

const (
	maxHolders       = 1000 // holders that DINFO lists, for each master; no owner has more levels, see share.lua
	maxListedHolders = 16   // holders that a listing reads, for each key and master
)

// Inspector reads locks, lists them and releases them regardless of their holders.
type Inspector struct {
	engine *engine.Engine
	leases *lease.Leases
	logger *slog.Logger
	local  Local
	walks  reported
}

// Local has what this daemon alone knows of a key.
type Local struct {
	Waiters func(db int, key engine.Key) int     // requests that wait for it
	Wanted  func(db int, key engine.Key) *string // see LockView
	Renews  func(engine.LeaseID) bool            // for a connection
}

// New returns an Inspector.
func New(e *engine.Engine, l *lease.Leases, logger *slog.Logger, local Local) *Inspector {
	return &Inspector{engine: e, leases: l, logger: logger, local: local, walks: reported{seed: maphash.MakeSeed()}}
}

// ReadLock reads one lock from every master.
func (ir *Inspector) ReadLock(db int, key engine.Key, done func(LockView, error)) {
	if err := ir.engine.Enter(); err != nil {
		done(LockView{}, err)
		return
	}
	ir.readLock(db, key, func(v LockView, err error) { ir.engine.Leave(); done(v, err) })
}

func (ir *Inspector) readLock(db int, key engine.Key, done func(LockView, error)) {
	g := ir.engine.Pool.Group(db)
	ir.engine.Collect(nil, g, pool.Props{Sealed: true}, func(_ *pool.SendContext, c *pool.Command) {
		c.Set("EVALSHA", ir.engine.Scripts.Inspect, "3", ir.engine.MasterKey(key), lease.NotesKey(ir.engine, key), ir.engine.KeyOf("qx:", key), // when each entry of its queue expires
			strconv.Itoa(maxHolders), "1")
	}, func(answers []pool.Answer) {
		masters := ir.mastersOf(g, answers)
		for i := range masters {
			if items := answers[i].Reply.Items; masters[i].Known && len(items) > 1 {
				masters[i].queued = int(items[1].Int)
			}
		}
		view, err := ir.viewOf(masters)
		if view.State == LockUndecided {
			view.undecided = ir.engine.NoQuorum(missing(masters, true), "who holds it is not known")
		}
		view.Waiters, view.Wanted = ir.local.Waiters(db, key), ir.local.Wanted(db, key)
		for i := range view.Holders {
			id := engine.LeaseID{DB: db, Key: key, Token: view.Holders[i].Token}
			view.Holders[i].identify(ir.leases.Known(id), func() bool { return ir.local.Renews(id) }, ir.engine.Clock.Now(), g)
		}
		done(view, err)
	})
}

// viewOf is the lock that the masters show.
func (ir *Inspector) viewOf(masters []LockOnMaster) (LockView, error) {
	view, known := aggregate(masters, ir.engine.Pool.Quorum(), ir.engine.Late)
	if !known {
		return view, ir.engine.NoQuorum(missing(masters, false), "who holds the lock is unknown at the moment")
	}
	return view, nil
}

// Describe replaces the text of a token's note, for people. The result is false if the token does
// not hold the key.
func (ir *Inspector) Describe(id engine.LeaseID, text string, done func(bool, error)) {
	ir.ReadLock(id.DB, id.Key, func(v LockView, err error) {
		at := slices.IndexFunc(v.Holders, func(h Holder) bool { return h.Token == id.Token })
		switch {
		case err != nil || at < 0 && !v.unseen:
			done(false, err)
		case at < 0 || !v.Holders[at].Confirmed:
			done(false, v.undecided)
		default:
			h := &v.Holders[at]
			note := cmp.Or(h.Note, &lease.Note{})
			note.Meta, note.Fence = text, max(note.Fence, h.Fence)
			ir.leases.ReplaceNote(id, *note, h.Left)
			done(true, nil)
		}
	})
}

// mastersOf reads each master's answer about the key.
func (ir *Inspector) mastersOf(g *pool.Group, answers []pool.Answer) []LockOnMaster {
	masters := make([]LockOnMaster, len(answers))
	for lane, status := range g.Statuses() {
		a, m := &answers[lane], &masters[lane]
		m.Master, m.Known = status.Name, a.Reply.Err == nil && a.Seal.Good && len(a.Reply.Items) > 0
		m.Quarantined = m.Known && a.Seal.Quarantined
		if !m.Known || m.Quarantined {
			m.absence = ir.engine.Pool.Absence(a)
			m.Reason = m.absence.String()
		}
		if m.Known {
			m.read(a.Reply.Items[0].Items)
		}
	}
	return masters
}
