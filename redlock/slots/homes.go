// Homes divides the slots among the daemons, so that clients that know the division send all
// requests for a key to one daemon: its waiters stand in one queue, and its requests share the
// flushes to the masters.

package slots

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
)

// Home is a range of slots and the daemon that clients are to use for them.
type Home struct {
	Range
	Daemon string
}

// Division is which daemon is at home where.
type Division struct {
	Own     string   // the address of this daemon
	Daemons []string // of all, in order
	Homes   []Home   // in the order of their slots; some daemons may have none
}

// pieceSlots are the slots that have one home, unless a range ends among them. With larger pieces
// some of 40 daemons would have twice the load of others; with smaller pieces a group of masters
// would get smaller batches from more daemons, and clients a longer map.
const pieceSlots = 128

// Homes is the same in every daemon that knows the same daemons: each piece belongs to the one
// with the highest hash of both (rendezvous hashing) among those that have less than their share.
// So few pieces move when a daemon comes or goes. ranges are in ascending order.
func Homes(ranges []Range, daemons []string) (homes []Home) {
	total, load := Ranges(ranges).Len(), map[string]int{}
	for _, r := range ranges {
		for next := r.First; next <= r.Last; {
			piece := Range{next, min(r.Last, next|(pieceSlots-1))}
			best, highest := "", uint64(0)
			for _, d := range daemons {
				if w := weight(piece, d); load[d]*len(daemons) < total && (best == "" || w > highest) {
					best, highest = d, w
				}
			}
			next = piece.Last + 1
			load[best] += next - piece.First
			if last := len(homes) - 1; piece.First > r.First && homes[last].Daemon == best {
				homes[last].Last = piece.Last
			} else {
				homes = append(homes, Home{piece, best})
			}
		}
	}
	return homes
}

func weight(piece Range, daemon string) uint64 {
	hash := sha256.Sum256([]byte(daemon + " " + strconv.Itoa(piece.First)))
	return binary.BigEndian.Uint64(hash[:])
}
