// This file grants a key to at most n holders: a semaphore with leased permits.
//
// Majorities of counted permits do not add up. With 3 masters and 2 permits, three
// holders can have two masters each without any master giving a third permit. A permit is
// therefore a numbered slot, which is a lock of its own: a quorum must give the same
// slot. The daemon chooses the slot. A master that has given it to another token answers
// with its free slots, and the answers choose the slot of the next round.

package lease

import (
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
	"redlockd/redlock/scripts"
)

// maxPermitRounds bounds how many slots are tried before the key counts as taken.
const maxPermitRounds = 3

// permitMode requests one slot. The ballot's lock guards what the masters answered.
type permitMode struct {
	queueCheck
	sharedFences
	limit int
	slot  int  // 1 … limit
	named bool // the caller's token may have a slot already

	answered    int         // masters that reported their free slots
	free        map[int]int // on how many of them
	ownSlots    map[int]int // on how many masters the token already has a slot
	otherLimits map[int]int // numbers of permits that masters have for the key
}

var (
	_ ballotMode  = (*permitMode)(nil)
	_ fencingMode = (*permitMode)(nil)
)

// permitsMode is the Mode of permits.
type permitsMode struct {
	oneToken
	limit int
}

// PermitsOf is the mode of a key of which at most limit clients hold a permit: 1 … 1024, the same for all
// users of the key.
func PermitsOf(limit int) Mode { return &permitsMode{limit: limit} }

func (f *permitsMode) Kind() Kind { return Permits }

func (f *permitsMode) ballot(a *lockBallot) ballotMode {
	r := &a.call.request
	return &permitMode{queueCheck: newQueueCheck(a), limit: f.limit, slot: a.call.leases.ofDaemon().turns.first(r, f.limit), named: r.Token != ""}
}

func (f *permitMode) command(a *lockBallot, m *pool.SendContext, c *pool.Command, end int64) {
	c.Set("EVALSHA", a.call.leases.engine.Scripts.Permit, "1", a.key, string(a.token), m.Decimal(end),
		strconv.Itoa(f.limit), strconv.Itoa(f.slot), engine.Flag(f.named))
	f.precede(a, c)
}

func (f *permitMode) bulkScript(a *lockBallot, s *scripts.Set) string {
	if !isFresh(a) {
		return ""
	}
	return s.Permits
}

func (f *permitMode) addToBulk(a *lockBallot, m *pool.SendContext, c *pool.BulkCall, end int64) {
	f.group(a, c)
	c.Args = append(c.Args, string(a.token), m.Decimal(end), strconv.Itoa(f.limit), strconv.Itoa(f.slot))
}

func (f *permitMode) read(a *lockBallot, answer pool.Answer) vote {
	if f.refuses(answer.Reply) {
		return vote{no: true}
	}
	n := engine.Numbers(answer.Reply)
	if answer.Reply.Err != nil || !answer.Sent || len(n) == 0 {
		return readVote(answer)
	}
	switch what, more := n[0], n[1:]; {
	case what == 0:
		f.answered++
		for _, slot := range more {
			f.countSlot(&f.free, slot)
		}
	case what == 2 && len(more) == 1:
		f.countSlot(&f.ownSlots, more[0])
	case what == 3 && len(more) == 1 && answer.Seal.Good:
		f.countSlot(&f.otherLimits, more[0])
	}
	return vote{no: true}
}

func (f *permitMode) takeBack(a *lockBallot, lane int, c copyState) {
	a.undo(lane, c, a.key, strconv.Itoa(f.slot))
}

// after tries another slot as long as a quorum may give one.
func (f *permitMode) after(a *lockBallot, v quorum.Result) (ballotMode, error) {
	a.ballot.Lock()
	defer a.ballot.Unlock()
	n, needed := a.ballot.Tally.N, a.ballot.Tally.Quorum
	if a.ballot.MostlyWrongType() {
		return nil, engine.ErrWrongType
	}
	draw := func(n int) int { return int(a.call.leases.engine.Pool.Jitter(time.Duration(n))) }
	if limit, masters := mostCounted(f.otherLimits, draw); masters > n-needed {
		return nil, &OtherLimit{Key: a.call.request.Key, Asked: f.limit, Limit: limit}
	}
	next := &permitMode{queueCheck: f.again(), limit: f.limit, named: f.named, slot: f.slot}
	slot, masters := mostCounted(f.ownSlots, draw)
	if masters == 0 {
		slot, masters = mostCounted(f.free, draw)
	}
	switch {
	case masters > 0:
		next.slot = slot
	case v == quorum.Split:
		next.slot = draw(f.limit) + 1
	}
	// Masters without an answer may have any slot free.
	if v == quorum.Refused && (len(f.ownSlots) == 0 && masters+n-f.answered < needed || a.call.tries >= maxPermitRounds || next.slot == f.slot) {
		return nil, engine.ErrHeld
	}
	return next, nil
}

// countSlot counts a slot or a number of permits, unless the value is out of range.
func (f *permitMode) countSlot(in *map[int]int, what int64) {
	if what < 1 || in != &f.otherLimits && what > int64(f.limit) {
		return
	}
	if *in == nil {
		*in = map[int]int{}
	}
	(*in)[int(what)]++
}
