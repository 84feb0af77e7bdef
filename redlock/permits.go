// This file grants a key to at most n holders: a semaphore with leased permits.
//
// Majorities of counted permits do not add up. With 3 masters and 2 permits, three
// holders can have two masters each without any master giving a third permit. A permit is
// therefore a numbered slot, which is a lock of its own: a quorum must give the same
// slot. The daemon chooses the slot. A master that has given it to another token answers
// with its free slots, and the answers choose the slot of the next round.

package redlock

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"redlockd/pool"
)

// maxPermitRounds bounds how many slots are tried before the key counts as taken.
const permitRounds = 3

// permitMode requests one slot. The ballot's lock guards what the masters answered.
type permits struct {
	limit int
	slot  int  // 1 … limit
	named bool // the caller's token may have a slot already

	heard  int         // masters that reported their free slots
	free   map[int]int // on how many of them
	mine   map[int]int // on how many masters the token already has a slot
	others map[int]int // numbers of permits that masters have for the key
}

var _ form = (*permits)(nil)

func (f *permits) command(a *attempt, m *pool.Moment, c *pool.Command, end int64) {
	c.Set("EVALSHA", a.call.locker.script.permit, "1", a.key, string(a.token), m.Decimal(end),
		strconv.Itoa(f.limit), strconv.Itoa(f.slot), flag(f.named))
}

// firstSlot is chosen by the token. Requests that arrive together through several daemons
// thus rarely try the same slot, and a repeat finds its own.
func firstSlot(token Token, limit int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token))
	return int(h.Sum32()%uint32(limit)) + 1
}

func (f *permits) read(a *attempt, answer pool.Answer) said {
	n := words(answer.Reply)
	if answer.Reply.Err != nil || !answer.Asked || len(n) == 0 {
		return readTaken(answer)
	}
	switch what, more := n[0], n[1:]; {
	case what == 1 && len(more) == 1 && more[0] == 2:
		return said{took: true, copy: copyEarlier}
	case what == 1:
		return said{took: true, copy: copyMade}
	case what == -1:
		return said{refused: true, odd: true}
	case what == 0:
		f.heard++
		for _, slot := range more {
			f.oneMore(&f.free, slot)
		}
	case what == 2 && len(more) == 1:
		f.oneMore(&f.mine, more[0])
	case what == 3 && len(more) == 1 && answer.Seal.Good:
		f.oneMore(&f.others, more[0])
	}
	return said{refused: true}
}

func (f *permits) takeBack(a *attempt, lane int, c copyState) { a.undo(lane, c, strconv.Itoa(f.slot)) }

// after tries another slot as long as a quorum may give one.
func (f *permits) after(a *attempt, v verdict) (form, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, quorum := a.tally.n, a.tally.quorum
	if a.oddMost() {
		return nil, ErrWrongType
	}
	draw := func(n int) int { return int(a.call.locker.pool.Jitter(time.Duration(n))) }
	if limit, masters := most(f.others, draw); masters > n-quorum {
		return nil, &OtherLimit{Key: a.call.request.Key, Asked: f.limit, Limit: limit}
	}
	next := &permits{limit: f.limit, named: f.named, slot: f.slot}
	slot, masters := most(f.mine, draw)
	if masters == 0 {
		slot, masters = most(f.free, draw)
	}
	switch {
	case masters > 0:
		next.slot = slot
	case v == split:
		next.slot = draw(f.limit) + 1
	}
	// Masters without an answer may have any slot free.
	if v == refused && (len(f.mine) == 0 && masters+n-f.heard < quorum || a.call.tries >= permitRounds || next.slot == f.slot) {
		return nil, ErrHeld
	}
	return next, nil
}

// countSlot counts a slot or a number of permits, unless the value is out of range.
func (f *permits) oneMore(in *map[int]int, what int64) {
	if what < 1 || in != &f.others && what > int64(f.limit) {
		return
	}
	if *in == nil {
		*in = map[int]int{}
	}
	(*in)[int(what)]++
}

// mostCounted is the value that was counted most often. Among several it is a random one:
// requests that contend for the last slots must not choose alike.
func most(of map[int]int, draw func(int) int) (what, times int) {
	var best []int
	for one, n := range of {
		if n > times {
			best, times = best[:0], n
		}
		if n == times {
			best = append(best, one)
		}
	}
	if len(best) == 0 {
		return 0, 0
	}
	slices.Sort(best)
	return best[draw(len(best))], times
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
