// This file repeats a question that the masters were too slow for.
//
// On a busy machine healthy masters stand still for longer than the master timeout now and
// then, several at once. Their votes do not count. A client that receives NOQUORUM would
// send its request again, and adds to the load. So the daemon does it, for a while.

package engine

import "time"

// Spread is a duration of about d: what repeats must not do so in step.
func (e *Engine) Spread(d time.Duration) time.Duration { return d/2 + e.Pool.Jitter(d) }

// SplitPause is the pause before the next ballot after some that contenders have split.
func (e *Engine) SplitPause(ballots int) time.Duration {
	return e.Spread(time.Millisecond << min(ballots, 6))
}

// maxRepeats is for how many master timeouts a question is repeated, from the end of its first
// ballot on. A quorum that stopped costs a request as long, until its lanes' connections end.
// Measured beside 20 busy loops on two cores, the masters that stalled answered 30 to 110 ms
// later, one in ten 220 ms.
const maxRepeats = 2

// Repeat calls again after a pause, if the ballot is undecided only because masters were too
// slow, and reports whether it does. since is the request's own: the end of its first such
// ballot, 0 before. A first ballot that took long is no reason against it: this process did
// not run then.
func (b *Ballot) Repeat(since *time.Duration, again func()) bool {
	e := b.Engine
	now, pause := e.Clock.Now(), e.MasterTimeout/4
	if *since == 0 {
		*since = now
	}
	if !b.delayed() || now+pause > *since+maxRepeats*e.MasterTimeout {
		return false
	}
	e.Clock.AfterFunc(pause/2+e.Pool.Jitter(pause/2), again)
	return true
}

// delayed reports whether a quorum would have answered if no master had been slow.
func (b *Ballot) delayed() bool {
	answered := b.Missing.Answered()
	n := answered
	for lane := range b.Tally.N {
		if why := b.Missing.Reason(lane); why.Delayed() {
			n++
		}
	}
	return !b.moved && answered < b.Tally.Quorum && n >= b.Tally.Quorum
}
