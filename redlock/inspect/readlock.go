// This file reads a lock's state: what the masters together report about a key.
//
// A token is a holder if a quorum of masters shows it in the same role: as a writer, as a
// reader, or in one slot. A master cannot have forgotten what it shows, so that counts
// under any good seal. Showing nothing proves an absence only if the master's memory is
// old enough. Some leases are shown by fewer masters, but masters that cannot tell might
// complete a quorum. Such a token may hold the key; it is listed and marked as
// unconfirmed. If a quorum of masters cannot tell, an unlisted token may hold the key, so
// the state is undecided.

package inspect

import (
	"cmp"
	"hash/maphash"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// LockState is what a quorum of masters reports about a key.
type LockState uint8

const (
	LockFree      LockState = iota // no token can hold it
	LockHeld                       // a quorum shows a holder
	LockUndecided                  // a token may hold it: the masters that could tell are missing or quarantined
	LockForeign                    // most masters keep something that is not a lock
)

// LockView is a lock over all masters.
type LockView struct {
	State   LockState
	Mode    lease.Mode     // of the holders; meaningless without any
	Limit   int            // of Permits
	Holders []Holder       // the longest first, at most maxHolders
	Count   int            // of holders; more than are listed if there are too many
	Left    time.Duration  // until the last holder's lease ends; 0 without any
	Masters []LockOnMaster // in the configured order
	Waiters int            // requests in this daemon that wait for it
	Queued  int            // entries in the queue over all daemons, as most masters have it
	Wanted  *string        // text of the latest request to let go, if this daemon holds it for a connection; nil = none

	undecided error // why a token that is not confirmed may hold the key; nil if the state is decided

	// unseen: too few masters prove that they have no copy of an unlisted lease, so a
	// token that no master shows may hold the key.
	unseen bool
}

// Holder is one lease, or a possible one.
type Holder struct {
	Token     engine.Token
	Slot      int           // of Permits, from 1
	Left      time.Duration // until a quorum no longer holds it, at least 1 ms
	Votes     int           // masters that show this lease
	Confirmed bool          // a quorum shows it
	Fence     engine.Fence  // 0 if this daemon has not granted it and there is no note
	Note      *lease.Note   // nil if there is none

	at copyKind
}

// LockOnMaster is one master's view of a key.
type LockOnMaster struct {
	Master      string
	Known       bool   // the master answered, and its answer counts
	Quarantined bool   // quarantined: the master may have forgotten, so only what it shows counts
	Reason      string // why it is not known, or quarantined
	State       LockState
	Mode        lease.Mode
	Count       int           // holders that it shows
	Token       engine.Token  // of the lease that lasts longest, "" = none
	Left        time.Duration // of that lease

	limit   int
	queued  int
	holders []shownHolder
	absence pool.Absence // set if the master is not known, or quarantined
}

// HighestFence is that of the holders, 0 if none is known.
func (v *LockView) HighestFence() (highest engine.Fence) {
	for i := range v.Holders {
		highest = max(highest, v.Holders[i].Fence)
	}
	return highest
}

// ModeWord is the mode of the holders for people.
func (v *LockView) ModeWord() string {
	return v.Mode.Word(len(v.Holders) > 0 && engine.OwnerOf(v.Holders[0].Token) != "")
}

// Levels are those of a reentrant lock's owner, the longest first: count of them, of which at most
// maxHolders are listed. Some may not be confirmed. The error is *NoQuorum if it is not known
// whether the owner has any.
func (v *LockView) Levels(owner engine.Token) (levels []Holder, count int, err error) {
	confirmed := false
	for _, h := range v.Holders {
		if owner != "" && engine.OwnerOf(h.Token) == owner {
			levels, confirmed = append(levels, h), confirmed || h.Confirmed
		}
	}
	if !confirmed && (v.unseen || len(levels) > 0) {
		err = v.undecided
	}
	if count = len(levels); count > 0 { // nobody else holds the key
		count += v.Count - len(v.Holders)
	}
	return levels, count, err
}

// shownHolder is one holder on one master.
type shownHolder struct {
	at   copyKind
	left time.Duration
	note string
}

// copyKind is what the copies of one lease have in common. Copies of two kinds do not add
// up.
type copyKind struct {
	mode        lease.Mode
	limit, slot int
	token       engine.Token
}

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

// Local is what this daemon alone knows of a key.
type Local struct {
	Waiters func(db int, key engine.Key) int     // requests that wait for it
	Wanted  func(db int, key engine.Key) *string // see LockView
}

// New returns an Inspector.
func New(e *engine.Engine, l *lease.Leases, logger *slog.Logger, local Local) *Inspector {
	return &Inspector{engine: e, leases: l, logger: logger, local: local, walks: reported{seed: maphash.MakeSeed()}}
}

// ReadLock reads one lock from every master.
func (l *Inspector) ReadLock(db int, key engine.Key, done func(LockView, error)) {
	if err := l.engine.Enter(); err != nil {
		done(LockView{}, err)
		return
	}
	l.readLock(db, key, func(v LockView, err error) { l.engine.Leave(); done(v, err) })
}

func (l *Inspector) readLock(db int, key engine.Key, done func(LockView, error)) {
	g := l.engine.Pool.Group(db)
	l.engine.Collect(nil, g, pool.Props{Sealed: true}, func(_ *pool.SendContext, c *pool.Command) {
		c.Set("EVALSHA", l.engine.Scripts.Inspect, "3", l.engine.MasterKey(key), lease.NotesKey(l.engine, key), l.queueEndsKey(key),
			strconv.Itoa(maxHolders), "1")
	}, func(answers []pool.Answer) {
		masters := l.mastersOf(g, answers)
		for i := range masters {
			if items := answers[i].Reply.Items; masters[i].Known && len(items) > 1 {
				masters[i].queued = int(items[1].Int)
			}
		}
		view, err := l.aggregate(masters)
		if view.State == LockUndecided {
			view.undecided = l.engine.NoQuorum(missing(masters, true), "who holds it is not known")
		}
		view.Waiters, view.Wanted = l.local.Waiters(db, key), l.local.Wanted(db, key)
		for i := range view.Holders {
			h := &view.Holders[i]
			h.Fence = l.leases.Known(engine.LeaseID{DB: db, Key: key, Token: h.Token}).Fence
			if h.Note != nil {
				h.Fence = max(h.Fence, h.Note.Fence)
			}
		}
		done(view, err)
	})
}

// Describe replaces the text of a token's note, for people. The result is false if the token does
// not hold the key.
func (l *Inspector) Describe(id engine.LeaseID, text string, done func(bool, error)) {
	l.ReadLock(id.DB, id.Key, func(v LockView, err error) {
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
			l.leases.ReplaceNote(id, *note, h.Left)
			done(true, nil)
		}
	})
}

// queueEndsKey is the key at which the masters keep when each entry of a queue expires,
// see redlock/wait/fair.go.
func (l *Inspector) queueEndsKey(k engine.Key) string { return l.engine.KeyOf("qx:", k) }

// mastersOf reads each master's answer about the key.
func (l *Inspector) mastersOf(g *pool.Group, answers []pool.Answer) []LockOnMaster {
	masters := make([]LockOnMaster, len(answers))
	for lane, status := range g.Statuses() {
		a, m := &answers[lane], &masters[lane]
		m.Master, m.Known = status.Name, a.Reply.Err == nil && a.Seal.Good && len(a.Reply.Items) > 0
		m.Quarantined = m.Known && a.Seal.Quarantined
		if !m.Known || m.Quarantined {
			m.absence = l.engine.Pool.Absence(a)
			m.Reason = m.absence.String()
		}
		if m.Known {
			m.read(a.Reply.Items[0].Items)
		}
	}
	return masters
}

// read takes one key's part of the script's answer.
func (m *LockOnMaster) read(items []pool.Reply) {
	if len(items) < 4 {
		return
	}
	switch items[0].Str {
	case "none":
		return
	case "string":
		m.Mode = lease.Exclusive
	case "zset":
		m.Mode = lease.Shared
	case "hash":
		m.Mode = lease.Permits
	default:
		m.State = LockForeign
		return
	}
	m.limit, m.Count = int(items[1].Int), int(items[2].Int)
	for at := 4; at+3 < len(items); at += 4 {
		m.holders = append(m.holders, shownHolder{
			at:   copyKind{m.Mode, m.limit, int(items[at+2].Int), engine.Token(items[at].Str)},
			left: time.Duration(items[at+1].Int) * time.Millisecond,
			note: items[at+3].Str,
		})
	}
	if len(m.holders) > 0 {
		m.State, m.Token, m.Left = LockHeld, m.holders[0].at.token, m.holders[0].left
	}
}
