// This file determines who holds a key from what each master shows. It uses no network,
// clock or goroutine.

package inspect

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"redlockd/redlock/lease"
)

// leaseView collects the masters that show one lease.
type leaseView struct {
	at    copyKind
	lanes uint16
	left  []time.Duration
	notes []string
}

// aggregate determines the holders of the key, as far as the masters show them.
func (l *Inspector) aggregate(masters []LockOnMaster) (LockView, error) {
	view := LockView{Masters: masters}
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
		m.Left = l.shown(m.Left)
	}
	quorum := l.engine.Pool.Quorum()
	if len(counts) < quorum {
		return view, l.engine.NoQuorum(missing(masters, false), "who holds the lock is unknown at the moment")
	}
	for _, s := range seen {
		votes := bits.OnesCount16(s.lanes)
		if votes+bits.OnesCount16(unsure&^s.lanes) < quorum {
			continue // a copy that cannot be part of a held lock
		}
		view.Holders = append(view.Holders, l.holderOf(s, votes, quorum))
	}
	// A token that no master shows can hold the key only with a quorum of masters that
	// cannot tell.
	view.unseen = bits.OnesCount16(unsure) >= quorum
	view.finish(foreign > len(masters)-quorum)
	if cut {
		view.Count = max(view.Count, quorumCount(counts, quorum))
	}
	view.Queued = quorumCount(queues, quorum)
	return view, nil
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

// holderOf: a token holds the key for as long as a quorum shows it. Without a quorum it
// holds the key no longer than the first copy lasts.
func (l *Inspector) holderOf(s *leaseView, votes, quorum int) Holder {
	slices.SortFunc(s.left, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	h := Holder{
		at: s.at, Token: s.at.token, Slot: s.at.slot, Votes: votes, Confirmed: votes >= quorum,
		Left: l.shown(s.left[min(votes, quorum)-1]),
	}
	for _, text := range s.notes {
		if h.Note = lease.ParseNote(text); h.Note != nil {
			break
		}
	}
	return h
}

// shown is a copy's remaining time without the time by which it outlasts its lease.
func (l *Inspector) shown(left time.Duration) time.Duration {
	if left <= 0 {
		return 0
	}
	return max(left-l.engine.Late, time.Millisecond)
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
