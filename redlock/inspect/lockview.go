// A LockView is who holds a key, by what each master shows. No network, clock or goroutine is used.
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
	"errors"
	"math/bits"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// LockState has what a quorum of masters reports about a key.
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
	Mode    lease.Kind     // of the holders; meaningless without any
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
	Note      *lease.Note   // who took it, as far as the masters and this daemon have it; nil = nothing is known
	Held      time.Duration // since the grant; 0 = not known
	Hold      bool          // this daemon renews it for a connection

	at copyKind
}

// LockOnMaster is one master's view of a key.
type LockOnMaster struct {
	Master      string
	Known       bool   // the master answered, and its answer counts
	Quarantined bool   // quarantined: the master may have forgotten, so only what it shows counts
	Reason      string // why it is not known, or quarantined
	State       LockState
	Mode        lease.Kind
	Count       int           // holders that it shows
	Token       engine.Token  // of the lease that lasts longest, "" = none
	Left        time.Duration // of that lease

	limit   int
	queued  int
	holders []shownHolder
	absence pool.Absence // set if the master is not known, or quarantined
}

// HighestFence returns the highest fence of the holders, 0 if none is known.
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

// copyKind has what the copies of one lease have in common. Copies of two kinds do not add
// up.
type copyKind struct {
	mode        lease.Kind
	limit, slot int
	token       engine.Token
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

// leaseView collects the masters that show one lease.
type leaseView struct {
	at    copyKind
	lanes uint16
	left  []time.Duration
	notes []string
}

// aggregate determines the holders of the key, as far as the masters show them. A copy outlasts its
// lease by late. known is false if no quorum of masters has answered.
func aggregate(masters []LockOnMaster, quorum int, late time.Duration) (view LockView, known bool) {
	view.Masters = masters
	var counts, queues []int
	foreign, cut := 0, false
	var unsure uint16 // masters that prove nothing by not showing a lease
	seen := map[copyKind]*leaseView{}
	for lane := range masters {
		m := &masters[lane]
		if m.Count > len(m.holders) {
			cut = true
		}
		if !m.Known || m.Quarantined || m.Count > len(m.holders) {
			unsure |= 1 << lane
		}
		if !m.Known {
			continue
		}
		counts, queues = append(counts, m.Count), append(queues, m.queued)
		if m.State == LockForeign {
			foreign++
		}
		m.show(lane, seen)
		m.Left = shown(m.Left, late)
	}
	if len(counts) < quorum {
		return view, false
	}
	for _, s := range seen {
		votes := bits.OnesCount16(s.lanes)
		if votes+bits.OnesCount16(unsure&^s.lanes) < quorum {
			continue // a copy that cannot be part of a held lock
		}
		view.Holders = append(view.Holders, s.holder(votes, quorum, late))
	}
	// A token that no master shows can hold the key only with a quorum of masters that
	// cannot tell.
	view.unseen = bits.OnesCount16(unsure) >= quorum
	view.finish(foreign > len(masters)-quorum)
	if cut {
		view.Count = max(view.Count, quorumCount(counts, quorum))
	}
	view.Queued = quorumCount(queues, quorum)
	return view, true
}

// show adds what this master shows to what others have shown.
func (m *LockOnMaster) show(lane int, seen map[copyKind]*leaseView) {
	for _, h := range m.holders {
		s := seen[h.at]
		if s == nil {
			s = &leaseView{at: h.at}
			seen[h.at] = s
		}
		s.lanes |= 1 << lane
		s.left = append(s.left, h.left)
		s.notes = append(s.notes, h.note)
	}
}

// holder: a token holds the key for as long as a quorum shows it. Without a quorum it
// holds the key no longer than the first copy lasts.
func (l *leaseView) holder(votes, quorum int, late time.Duration) Holder {
	slices.SortFunc(l.left, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	h := Holder{
		at: l.at, Token: l.at.token, Slot: l.at.slot, Votes: votes, Confirmed: votes >= quorum,
		Left: shown(l.left[min(votes, quorum)-1], late),
	}
	for _, text := range l.notes {
		if h.Note = lease.ParseNote(text); h.Note != nil {
			break
		}
	}
	return h
}

// shown is a copy's remaining time without the time by which it outlasts its lease.
func shown(left, late time.Duration) time.Duration {
	if left <= 0 {
		return 0
	}
	return max(left-late, time.Millisecond)
}

// finish sorts the holders and derives the state of the key.
func (v *LockView) finish(foreign bool) {
	slices.SortFunc(v.Holders, func(a, b Holder) int {
		return cmp.Or(-cmp.Compare(a.Left, b.Left), cmp.Compare(a.Token, b.Token))
	})
	v.Count = len(v.Holders)
	switch {
	case slices.ContainsFunc(v.Holders, func(h Holder) bool { return h.Confirmed }):
		v.State = LockHeld
	case v.Count > 0:
		v.State = LockUndecided
	case foreign:
		v.State = LockForeign
	case v.unseen:
		v.State = LockUndecided
	}
	if v.Count > 0 {
		first := v.Holders[max(0, slices.IndexFunc(v.Holders, func(h Holder) bool { return h.Confirmed }))]
		v.Mode, v.Limit, v.Left = first.at.mode, first.at.limit, v.Holders[0].Left
	}
}

// quorumCount is the largest count that a quorum of masters reaches.
func quorumCount(counts []int, quorum int) int {
	slices.Sort(counts)
	return counts[len(counts)-quorum]
}

var errCutShort = errors.New("has more holders than it shows")

// missing are the masters that do not show what they have; with all, also those that may not show every
// token that has a copy there.
func missing(masters []LockOnMaster, all bool) *engine.Missing {
	var m engine.Missing
	for lane := range masters {
		switch one := &masters[lane]; {
		case !one.Known || all && one.Quarantined:
			m.MarkMissing(lane, one.absence)
		case all && one.Count > len(one.holders):
			m.MarkMissing(lane, pool.AbsentFor(errCutShort, 0))
		default:
			m.MarkCounted(lane)
		}
	}
	return &m
}
