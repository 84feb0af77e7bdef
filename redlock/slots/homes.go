// Homes divides the slots among the daemons, so that clients with the division send all
// requests for a key to one daemon: its waiters stand in one queue, and its requests share the
// flushes to the masters.

package slots

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
)

// Home is a range of slots and the daemon that clients are to use for them.
type Home struct {
	Range
	Daemon string
}

// Division assigns the slots to the daemons that are at home there.
type Division struct {
	Own     string   // the address of this daemon
	Daemons []string // of all, in order
	Homes   []Home   // in the order of their slots; some daemons may have none
}

// pieceSlots are the slots that have one home, unless a range ends among them. With larger pieces
// some of 40 daemons would have twice the load of others; with smaller pieces clients would get a
// longer map.
const pieceSlots = 128

// Homes is the same in every daemon with the same list of daemons. Each group of masters has as few
// home daemons as its part of the slots needs, because one batch to a master costs less than two
// that are half as long: the first in the order of the hashes of group and daemon (rendezvous
// hashing) that have less than their share of all slots. Among them, each piece belongs to the one
// with the highest hash of both. So few pieces move when a daemon comes or goes.
func Homes(groups []Ranges, daemons []string) []Home {
	h := dividing{daemons: daemons, load: map[string]int{}}
	for _, g := range groups {
		h.total += g.Len()
	}
	for _, g := range groups {
		h.divide(g)
	}
	return merged(h.pieces)
}

// dividing is a division that is under way.
type dividing struct {
	daemons []string
	total   int            // slots of all groups
	load    map[string]int // slots of each daemon so far
	pieces  []Home
}

// full returns the daemons that have their share of all slots, or lack no more than some of them.
func (dg *dividing) full(some int) func(daemon string) bool {
	return func(d string) bool { return (dg.load[d]+some)*len(dg.daemons) >= dg.total }
}

func (dg *dividing) divide(g Ranges) {
	var homes []string
	for _, r := range g {
		for next := r.First; next <= r.Last; {
			piece := Range{next, min(r.Last, next|(pieceSlots-1))}
			next = piece.Last + 1
			if homes = slices.DeleteFunc(homes, dg.full(pieceSlots/2)); len(homes) == 0 {
				homes = dg.choose(g)
			}
			best := byWeight(piece.First, homes)[0]
			dg.load[best] += next - piece.First
			dg.pieces = append(dg.pieces, Home{piece, best})
		}
	}
}

// choose returns daemons for a group. Less than a piece is worth no further daemon.
func (dg *dividing) choose(g Ranges) []string {
	nearest := byWeight(g[0].First, dg.daemons)
	if homes := slices.DeleteFunc(slices.Clone(nearest), dg.full(pieceSlots/2)); len(homes) > 0 {
		shares := ((g.Len()-pieceSlots)*len(dg.daemons) + dg.total - 1) / dg.total
		return homes[:min(len(homes), max(shares, 1))]
	}
	return slices.DeleteFunc(nearest, dg.full(0))
}

// byWeight is the daemons in the order in which they are considered for the slots from first on.
func byWeight(first int, daemons []string) []string {
	return slices.SortedFunc(slices.Values(daemons), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(first, b), weight(first, a)), cmp.Compare(a, b))
	})
}

func weight(first int, daemon string) uint64 {
	hash := sha256.Sum256([]byte(daemon + " " + strconv.Itoa(first)))
	return binary.BigEndian.Uint64(hash[:])
}

// merged has the pieces in the order of their slots, and neighbours of one daemon in one.
func merged(pieces []Home) (homes []Home) {
	slices.SortFunc(pieces, func(a, b Home) int { return cmp.Compare(a.First, b.First) })
	for _, p := range pieces {
		if last := len(homes) - 1; last >= 0 && homes[last].Daemon == p.Daemon && homes[last].Last+1 == p.First {
			homes[last].Last = p.Last
			continue
		}
		homes = append(homes, p)
	}
	return homes
}
