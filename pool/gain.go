// gain is how far a master's clock has run ahead of this daemon's clock, beyond a
// rate, since the most favourable moment of the past. It decides which steps of a
// clock are tolerated.
//
// Let a daemon write a copy at its moment s, with an estimate o of the master's
// clock. The copy ends when that clock shows s + o + ttl + late, where late is the
// master timeout. If the clock's offset is x(t) at the moment t, the copy is gone
// too early by F = x(t) − o: it ends at s + ttl + late − F. A vote for the next
// holder can be granted after that. The first holder's validity ends at
// s + ttl − (1 % of ttl + 2 ms). So exclusion holds while, at every age a = t − s,
//
//	F ≤ late + 1 % of a
//
// How long a flush was under way does not matter: its end is absolute. Each daemon
// limits the left side, for copies of every daemon:
//
//   - It bounds x at every good seal: a TIME that was read between sent and received
//     gives TIME − received ≤ x ≤ TIME − sent. The floor is the least upper bound so far, and it rises by
//     0.9 % of the time. gain = x − floor is therefore the largest x(t) − x(u) − 0.9 % of
//     (t − u) over all u that were seen. A step back lowers the floor with x, so a step
//     forward after it counts in full. A step back after one forward refunds nothing
//     to copies that were written before either, and harms none.
//   - A step is tolerated while gain ≤ late − reserve − 1 step. If a clock creeps ahead,
//     each time by less than a step, its master is invalidated at gain > late − reserve.
//     The reserve, 15 % of late and a step (15 ms) at least, is for the error of the
//     writer's estimate and for its age: 0.9 % of the time within which each daemon must
//     see a clock, a second at the default, is 60 % of it.
//   - A flush that was sent after a longer time counts only if its TIME shows that the
//     estimate was behind by no more than the reserve.
//   - A daemon that has not watched the clock assumes that the whole budget is spent, and
//     invalidates at every step until its own measurements show more. The floor stays
//     below each upper bound by what is left of that. What others tolerated
//     before it started is at most that, and decays by 0.9 % of the time, too. So it does
//     not matter how many daemons started and ended, as long as one of them watched.
//
// 0.9 % + the 0.1 % by which undisturbed clocks of masters, daemons and clients may
// differ is the 1 %. At the default master timeout of 100 ms the budget is 70 ms, and
// is full again after 8 s. All other uses of a master's clock allow for as much: ages
// of memory have 1 % and 2 s in reserve, undo guards compare with the same clock,
// and scripts that set a relative end do so with the clock as it is by then.

package pool

import (
	"time"

	"redlockd/pool/clock"
)

const (
	// leakPPM is how fast the floor rises: what a clock gains more slowly is a rate.
	leakPPM = 9000
	// reservePercent of the master timeout are kept for errors of estimates, and
	// agePercent of that for their age.
	reservePercent = 15
	agePercent     = 60
)

// gain is guarded by its group's lock. All figures are microseconds, like an estimate's.
type gain struct {
	floor      int64         // at the moment since
	since      time.Duration // the floor rises from then on
	debt       int64         // of the budget, at the moment since: taken for spent while this daemon did not watch
	observedAt time.Duration // when the clock was measured last; 0 = never
}

// reserve is by how much the estimate of a copy's writer may be behind.
func (o *Options) reserve() time.Duration {
	return max(clock.MinStep, o.MasterTimeout*reservePercent/100)
}

// budget returns the gain that is tolerated, in µs.
func (o *Options) budget() int64 {
	return clock.Micros(o.MasterTimeout - o.reserve() - clock.MinStep)
}

// maxUnobserved returns the longest time for which a daemon may go without measuring a clock: a second by
// default, which is ten heartbeats.
func (o *Options) maxUnobserved() time.Duration {
	return o.reserve() * agePercent / 100 * 1_000_000 / leakPPM
}

// restart assumes that the whole budget is spent; offset is an upper bound of the clock's.
func (g *gain) restart(now time.Duration, offset, budget int64) {
	debt := max(0, budget)
	*g = gain{floor: offset - debt, since: now, debt: debt, observedAt: now}
}

// owed returns what is left of the debt: it decays as the floor rises.
func (g *gain) owed(now time.Duration) int64 {
	return max(0, g.debt-clock.Micros(now-g.since)*leakPPM/1_000_000)
}

func (g *gain) of(now time.Duration, offset int64) int64 {
	return offset - g.floor - clock.Micros(now-g.since)*leakPPM/1_000_000
}

// observe updates the floor from a TIME answer read between sent and received; the clock
// was seen at sent at the earliest, which matters if this process read the answer late. The floor stays
// below the clock by what is owed: the measurement from which it started may have been
// as wide as the master timeout, and then the first closer one shows that it is too high.
func (g *gain) observe(sent, received time.Duration, master int64) {
	owed := g.owed(received)
	if floor := master - clock.Micros(sent) - owed; g.of(received, floor) < 0 {
		g.floor, g.since, g.debt = floor, received, owed
	}
	g.observedAt = sent
}
