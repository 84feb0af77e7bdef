// Who holds a key, as far as the masters can tell? Counting what each of them
// shows, with no network, clock or goroutine.
package redlock

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// sighting collects the masters that show one lease.
type sighting struct {
	at    copyOf
	lanes uint16
	left  []time.Duration
	notes []string
}

// judge is the decision: who holds the key, as far as the masters can tell.
func (l *Locker) judge(masters []LockOnMaster) (LockView, error) {
	view := LockView{Masters: masters}
	var counts, queues []int
	foreign, cut := 0, false
	var unsure uint16 // masters whose silence about a lease proves nothing
	seen := map[copyOf]*sighting{}
	for lane := range masters {
		m := &masters[lane]
		if m.Count > len(m.holders) {
			cut = true
		}
		if !m.Known || m.Young || m.Count > len(m.holders) {
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
	quorum := l.pool.Quorum()
	if len(counts) < quorum {
		return view, l.noQuorum(sighted(masters), "who holds the lock is unknown at the moment")
	}
	for _, s := range seen {
		votes := bits.OnesCount16(s.lanes)
		if votes+bits.OnesCount16(unsure&^s.lanes) < quorum {
			continue // a copy that nobody can be holding the key with
		}
		view.Holders = append(view.Holders, l.holderOf(s, votes, quorum))
	}
	// Whoever no master shows can hold it only with a quorum of those that cannot tell.
	view.unseen = bits.OnesCount16(unsure) >= quorum
	view.settle(foreign > len(masters)-quorum)
	if cut {
		view.Count = max(view.Count, middle(counts, quorum))
	}
	view.Queued = middle(queues, quorum)
	return view, nil
}

// sighted are the masters that show what they have, and why the others do not.
func sighted(masters []LockOnMaster) *missing {
	var m missing
	for lane := range masters {
		if masters[lane].Known {
			m.counts(lane)
		}
		m.lacks(lane, masters[lane].absence)
	}
	return &m
}

// show adds what this master shows to what others have shown.
func (m *LockOnMaster) show(lane int, seen map[copyOf]*sighting) {
	for _, h := range m.holders {
		s := seen[h.at]
		if s == nil {
			s = &sighting{at: h.at}
			seen[h.at] = s
		}
		s.lanes |= 1 << lane
		s.left = append(s.left, h.left)
		s.notes = append(s.notes, h.note)
	}
}

// holderOf: it holds the key for as long as a quorum shows it, or, without one,
// no longer than the first copy lasts.
func (l *Locker) holderOf(s *sighting, votes, quorum int) Holder {
	slices.SortFunc(s.left, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	h := Holder{
		at: s.at, Token: s.at.token, Slot: s.at.slot, Votes: votes, Sure: votes >= quorum,
		Left: l.shown(s.left[min(votes, quorum)-1]),
	}
	for _, text := range s.notes {
		if h.Note = parseNote(text); h.Note != nil {
			break
		}
	}
	return h
}

// shown is a copy's remaining time without what it outlives its lease by.
func (l *Locker) shown(left time.Duration) time.Duration {
	if left <= 0 {
		return 0
	}
	return max(left-l.late, time.Millisecond)
}

// settle puts the holders in order and says what they make of the key.
func (v *LockView) settle(foreign bool) {
	slices.SortFunc(v.Holders, func(a, b Holder) int {
		return cmp.Or(-cmp.Compare(a.Left, b.Left), cmp.Compare(a.Token, b.Token))
	})
	v.Count = len(v.Holders)
	switch {
	case slices.ContainsFunc(v.Holders, func(h Holder) bool { return h.Sure }):
		v.State = LockHeld
	case v.Count > 0:
		v.State = LockUndecided
	case foreign:
		v.State = LockForeign
	case v.unseen:
		v.State = LockUndecided
	}
	if v.Count > 0 {
		first := v.Holders[max(0, slices.IndexFunc(v.Holders, func(h Holder) bool { return h.Sure }))]
		v.Mode, v.Limit, v.Left = first.at.mode, first.at.limit, v.Holders[0].Left
	}
}

// middle is what a quorum of masters has at least of something.
func middle(counts []int, quorum int) int {
	slices.Sort(counts)
	return counts[len(counts)-quorum]
}
