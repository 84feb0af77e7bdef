// Leases that end earlier than they did.
//
// A library's script may set any end, and a message may be late: when it reaches a
// slow master, its client, which the others have answered, may have prolonged the
// same lease through another daemon, with that master's vote. And of an extension
// that fails, a minority must not have been cut off what the old validity rests on.
// So in the first round no copy ends earlier: what a script would shorten keeps its
// end, moved by 1 ms (within.lua, write.lua). Once a quorum has said yes, those that
// told so before are asked to end when the script wanted, if they still end exactly
// then. Whatever gives an exclusive copy another lease moves its end, be it only by
// 1 ms (acquire.lua, multi.lua, extend.lua, multiextend.lua), so that a late one of
// these finds another end and does nothing. What a master told behind the decision
// may already be a later lease; such a copy lasts as long as it did.
package redlock

import (
	"strconv"
	"time"

	"redlockd/pool"
)

// keptEnd is a copy that was to end earlier and does not yet.
type keptEnd struct {
	lane      int
	key       string
	ends, set int64  // ms of the master's clock: when it does, and when it shall
	value     string // SHA-1, hex
}

// open replaces an answer by the script's own.
func (s *Script) open(answer *pool.Answer, l *Locker) []keptEnd {
	own, more := s.answer(answer.Reply)
	answer.Reply = own
	return s.keptEnds(more.kept, answer.Lane, l)
}

// keptEnds reads what within.lua tells of them.
func (s *Script) keptEnds(told []pool.Reply, lane int, l *Locker) (kept []keptEnd) {
	for _, one := range told {
		if at := one.Items; len(at) == 4 && at[0].Int >= 1 && at[0].Int <= int64(len(s.Keys)) {
			kept = append(kept, keptEnd{
				lane: lane, key: l.masterKey(s.Keys[at[0].Int-1]),
				ends: at[1].Int, set: at[2].Int, value: at[3].Str,
			})
		}
	}
	return kept
}

// trim has copies of these leases end earlier: the script that was agreed to gives
// them until then.
func (l *Locker) trim(g *pool.Group, kept []keptEnd, until time.Duration, ids ...lockID) {
	for _, id := range ids {
		l.leases.shorten(id, until)
	}
	for _, k := range kept {
		g.Push(k.lane, &repeated{group: g, key: k.key, debt: pool.Debt{
			Args: []string{"EVALSHA", l.script.trim, "1", k.key,
				strconv.FormatInt(k.ends, 10), strconv.FormatInt(k.set, 10), k.value},
			Until: until + 4*l.late,
		}})
	}
	for _, id := range ids { // last: a renewal comes behind it on every master
		l.holds.shortened(id, until)
	}
}
