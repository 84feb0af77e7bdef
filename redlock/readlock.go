// Looking at a lock: what do the masters together say of a key?
//
// A holder is whoever a quorum of masters shows in the same way: as a writer, as
// a reader, in one slot. What a master shows it cannot have forgotten, so that
// counts under any good seal; that it shows nothing proves something only if it
// is old enough. Whoever is shown by fewer masters, but by so many that those
// which cannot tell might complete a quorum, may hold the key: that is shown, and
// shown as such. Where so many cannot tell that nobody need be shown, nobody
// knows whether it is free.
package redlock

import (
	"strconv"
	"time"

	"redlockd/pool"
)

// LockState is what a quorum of masters says of a key.
type LockState uint8

const (
	LockFree      LockState = iota // nobody can hold it
	LockHeld                       // a quorum shows a holder
	LockUndecided                  // somebody may hold it: the masters that could tell are missing or young
	LockForeign                    // most masters keep something that is not a lock
)

// LockView is a lock over all masters.
type LockView struct {
	State   LockState
	Mode    Mode           // of the holders; meaningless without any
	Limit   int            // of Permits
	Holders []Holder       // the longest first, at most mostHolders
	Count   int            // of holders; more than are listed if there are too many
	Left    time.Duration  // until the last holder's lease ends; 0 without any
	Masters []LockOnMaster // in the configured order
	Waiters int            // requests that wait for it in this daemon
	Queued  int            // entries in the queue over all daemons, as most masters have it

	// unseen: too few masters prove by their silence about a lease that they have no
	// copy, so somebody whom no master shows may hold it.
	unseen bool
}

// Holder is one lease, or what may be one.
type Holder struct {
	Token Token
	Slot  int           // of Permits, from 1
	Left  time.Duration // until a quorum no longer holds it, at least 1 ms
	Votes int           // masters that show it
	Sure  bool          // they are a quorum
	Fence Fence         // 0 if this daemon has not granted it and nobody has noted it
	Note  *Note         // nil if nothing is known

	at copyOf
}

// LockOnMaster is what one master shows of a key.
type LockOnMaster struct {
	Master string
	Known  bool   // it answered, and what it says can be believed
	Young  bool   // it may have forgotten: only what it shows counts
	Why    string // it is not known or young
	State  LockState
	Mode   Mode
	Count  int           // of holders that it shows
	Token  Token         // of the one that lasts longest, "" = nobody
	Left   time.Duration // of that one

	limit   int
	queued  int
	holders []shownHolder
	absence pool.Absence // of one that is not known or young
}

// shownHolder is one holder as one master shows it.
type shownHolder struct {
	at   copyOf
	left time.Duration
	note string
}

// copyOf is what the copies of one lease have in common. Copies of two kinds do
// not add up.
type copyOf struct {
	mode        Mode
	limit, slot int
	token       Token
}

const (
	mostHolders = 1000 // that DINFO tells, for each master
	someHolders = 16   // that a listing looks at, for each key and master
)

// ReadLock asks every master about one lock.
func (l *Locker) ReadLock(db int, key Key, done func(LockView, error)) {
	if err := l.enter(); err != nil {
		done(LockView{}, err)
		return
	}
	l.readLock(db, key, func(v LockView, err error) { l.leave(); done(v, err) })
}

func (l *Locker) readLock(db int, key Key, done func(LockView, error)) {
	g := l.pool.Group(db)
	l.askAll(g, func(_ *pool.Moment, c *pool.Command) {
		c.Set("EVALSHA", l.script.look, "3", l.masterKey(key), l.notesKey(key), l.queueEndsKey(key),
			strconv.Itoa(mostHolders), "1")
	}, func(answers []pool.Answer) {
		masters := l.mastersOf(g, answers)
		for i := range masters {
			if items := answers[i].Reply.Items; masters[i].Known && len(items) > 1 {
				masters[i].queued = int(items[1].Int)
			}
		}
		view, err := l.judge(masters)
		view.Waiters = l.waits.countAt(place{db, key})
		for i := range view.Holders {
			h := &view.Holders[i]
			if known, ok := l.leases.find(lockID{db, key, h.Token}); ok {
				h.Fence = known.fence
			}
			if h.Note != nil {
				h.Fence = max(h.Fence, h.Note.Fence)
			}
		}
		done(view, err)
	})
}

// queueEndsKey is where the masters keep until when each one in a queue counts as
// alive, see fair.go.
func (l *Locker) queueEndsKey(k Key) string { return l.options.KeyPrefix + "redlockd:qx:" + string(k) }

// mastersOf reads what each master said of the key that it was asked about.
func (l *Locker) mastersOf(g *pool.Group, answers []pool.Answer) []LockOnMaster {
	masters := make([]LockOnMaster, len(answers))
	for lane, status := range g.Statuses() {
		a, m := &answers[lane], &masters[lane]
		m.Master, m.Known = status.Name, a.Reply.Err == nil && a.Seal.Good && len(a.Reply.Items) > 0
		m.Young = m.Known && a.Seal.Young
		if !m.Known || m.Young {
			m.absence = l.pool.Absence(a)
			m.Why = m.absence.String()
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
		m.Mode = Exclusive
	case "zset":
		m.Mode = Shared
	case "hash":
		m.Mode = Permits
	default:
		m.State = LockForeign
		return
	}
	m.limit, m.Count = int(items[1].Int), int(items[2].Int)
	for at := 4; at+3 < len(items); at += 4 {
		m.holders = append(m.holders, shownHolder{
			at:   copyOf{m.Mode, m.limit, int(items[at+2].Int), Token(items[at].Str)},
			left: time.Duration(items[at+1].Int) * time.Millisecond,
			note: items[at+3].Str,
		})
	}
	if len(m.holders) > 0 {
		m.State, m.Token, m.Left = LockHeld, m.holders[0].at.token, m.holders[0].left
	}
}
