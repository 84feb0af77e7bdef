// Verification of a flush: the checks of its seal, and the delivery of its answers.

package pool

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/masterlog"
	"redlockd/pool/wire"
)

// finishFlush verifies the flush and delivers the answers.
func (c *connection) finishFlush() {
	l := c.lane
	g := l.group
	f := &c.flush
	now := g.now()
	if err := f.brokenLink(); err != nil {
		c.fail(err)
		return
	}
	g.mu.Lock()
	if c.closed { // the timer was faster: everything has been answered "unknown"
		g.mu.Unlock()
		return
	}
	if c.stalled { // likewise, but the master answers again
		evicted := f.evicted(&l.commands) // the next reading comes after the next votes
		if evicted != nil {
			c.invalidateLocked()
		} else {
			c.resumeLocked()
		}
		g.mu.Unlock()
		if evicted != nil {
			c.fail(evicted)
		}
		return
	}
	c.inFlight = false
	l.rtt.note(now - f.sent)
	var seal Seal
	var ending error
	if f.readSettings {
		l.noteRecordsLocked(f)
	}
	if f.sealed || f.beat {
		seal, ending = c.verifySealLocked(f, now)
	}
	var sealed []unsealedAnswer
	if f.sealed {
		sealed, c.unsealed = c.unsealed, nil
	}
	l.queue.pushFirst(f.takeUnexecuted(now))
	l.beat = l.beat || f.lost // another process may have answered, which has no scripts
	c.deferLocked(f, now)
	steps := g.resolveAnomaliesLocked(now)
	g.mu.Unlock()

	c.deliver(f, seal, sealed)
	c.logErrors(f, now)
	if ending = cmp.Or(ending, f.endingReply()); ending == nil {
		c.noteReadings(f)
		ending = f.settingsChanged()
	}
	if ending != nil {
		c.fail(ending)
	}
	steps.disconnect()
}

// logErrors logs the operations that the server refused in a flush. The errors of the
// readings of its settings, and of the seal, are reported elsewhere.
func (c *connection) logErrors(f *flush, now time.Duration) {
	l := c.lane
	for i, at := range f.index {
		if at < 0 {
			continue
		}
		err, ok := f.reply(i).Err.(MasterError)
		if ok && masterlog.IsServerRefusal(err) && l.errorLog.ShouldLog(string(err), now) {
			l.group.pool.options.Logger.Warn("master returned an error", "master", l.master.Name, "db", l.group.db, "err", err.Error())
		}
	}
}

// verifySealLocked checks the seal and counts a void one. The second result ends the connection.
func (c *connection) verifySealLocked(f *flush, now time.Duration) (Seal, error) {
	l := c.lane
	seal, ending := c.checkSealLocked(f, now)
	l.failing = seal.Err
	if seal.Err != nil {
		l.group.counters.VoidSeals++
		l.group.counters.Void[voidReason(seal.Err)]++
		l.voteLog.Absent(now, false, seal.Err)
	}
	return seal, ending
}

func (c *connection) checkSealLocked(f *flush, now time.Duration) (Seal, error) {
	l := c.lane
	bad := func(err error) Seal { return Seal{IncarnationID: c.incarnation.ID, Err: err} }
	if f.serverAt >= 0 {
		if err := f.replies[f.serverAt].Err; err != nil { // LOADING, BUSY …
			return bad(err), nil
		}
		if run := wire.InfoField(f.replies[f.serverAt].Str, "run_id"); run != c.incarnation.RunID {
			return bad(errBalanced), errBalanced
		}
	}
	score := f.replies[f.sealAt]
	if score.Kind == ReplyNil {
		return bad(errMemoryGone), errMemoryGone
	}
	// Only a new admission finds out what the data is and what the operator can do.
	if wrong, is := score.Err.(MasterError); is && wrong.Begins("WRONGTYPE") {
		err := fmt.Errorf("%w: %w", errForeign, wrong)
		return bad(err), err
	}
	clock := f.replies[f.timeAt]
	old, ok := score.Number()
	us, isTime := wire.ParseTime(clock)
	if !ok || !isTime {
		err := fmt.Errorf("%w: %s", errUnexpectedSeal, wire.FirstError(score, clock))
		return bad(err), nil
	}
	l.carriedAt = f.sent
	top := old
	if f.sealed {
		raise := f.replies[f.sealAt+1]
		if raise.Err != nil {
			return bad(fmt.Errorf("cannot raise its register: %w", raise.Err)), nil
		}
		top = max(old, f.raise)
	}
	if err := f.evicted(&l.commands); err != nil {
		c.invalidateLocked()
		return bad(err), err
	}
	switch err := l.checkClockLocked(f, now, us); {
	case errors.Is(err, errLate) && f.estimateBehind(l.group.pool.options.MasterTimeout, now, us):
		return bad(err), errEstimateBehind
	case err == errCrept:
		c.invalidateLocked()
		return bad(err), err
	case err != nil:
		return bad(err), nil
	}
	if old < f.minRegister {
		c.invalidateLocked()
		err := fmt.Errorf("%w: register %d, but %d was acknowledged", errRolledBack, old, f.minRegister)
		return bad(err), err
	}
	if old > MaxRegister {
		err := fmt.Errorf("%w: %d is above 2^52; stop all daemons, delete %s on this master, start again", errDamaged, old, l.group.sealKey)
		return bad(err), err
	}
	return c.goodSealLocked(f, old, top, us), nil
}

// checkClockLocked checks the TIME that the master read after everything else of the flush.
// The master timeout limits when the master executed the flush, not when this process read
// the answer: a process that did not run finds an answer that was in time. The wider the
// time of an answer is, the longer a step of the clock can hide in it, but never longer
// than until the answer was read. So a grant that counts such a vote comes that much later
// than the copy that ended early, and that copy's lease is over by then.
func (l *lane) checkClockLocked(f *flush, now time.Duration, us int64) error {
	if l.group.pool.embedded() {
		return l.checkOwnClockLocked(f, now)
	}
	limit := l.group.pool.options.MasterTimeout
	if off := l.est.Deviation(f.sent, now, us); off != 0 || l.anomaly != nil {
		l.group.noteAnomalyLocked(l, f.sent, now, us)
	}
	readLate := now-f.sent > limit
	switch {
	case l.anomaly != nil:
		return errSuspect
	case us > f.context.Time+clock.Micros(limit):
		// The expiry was chosen from context.Time: beyond it a copy could last shorter
		// than its lease, so the estimate's error does not widen this bound.
		l.group.counters.LateFlushes++
		return fmt.Errorf("%w: executed after %d ms, limit %d ms", errLate, (us-f.context.Time)/1000, limit.Milliseconds())
	case us < f.context.Time-clock.Micros(maxBehind)-l.est.Spread(now):
		return fmt.Errorf("%w by %d ms", errBehind, (f.context.Time-us)/1000)
	case readLate && l.unobserved(&l.group.pool.options, f.sent):
		return errUnobserved // so wide a measurement is no estimate; the next heartbeat measures the clock
	case l.unobserved(&l.group.pool.options, f.sent):
		fits := us-f.context.Time <= clock.Micros(l.group.pool.options.reserve())
		l.est = clock.Estimate{}
		l.est.Sample(f.sent, now, us)
		l.gain.restart(now, us-clock.Micros(f.sent), l.budget())
		l.requestClockLocked()
		if !fits {
			return errUnobserved
		}
		return nil
	case l.creptLocked(now, us):
		return errCrept
	}
	if readLate {
		l.group.counters.LateReads++
	} else {
		l.est.Sample(f.sent, now, us)
	}
	l.gain.observe(f.sent, now, us)
	return nil
}

func (c *connection) goodSealLocked(f *flush, old, top, us int64) Seal {
	l := c.lane
	g := l.group
	now := g.now()
	if median := g.medianLocked(now); old > median+10_000_000 && old > g.hybrid.Seen {
		l.group.pool.options.Logger.Warn("register is far ahead of the clocks; fences follow it",
			"master", l.master.Name, "register", old, "ahead_ms", (old-median)/1000)
	}
	l.acked = max(l.acked, top)
	g.hybrid.Observe(old)
	g.updateClockLocked()
	quarantined := !c.incarnation.MayVote(us, g.pool.options.Age())
	if !quarantined {
		l.voteLog.Voted(now, c.incarnation.ID)
	}
	l.provedAt = f.sent
	return Seal{
		Good: true, Quarantined: quarantined, Age: c.incarnation.Age(us), Durable: c.incarnation.Durable,
		IncarnationID: c.incarnation.ID, Old: old, Top: top,
	}
}

// deferLocked holds back answers of 0 that came without a seal until the next one.
func (c *connection) deferLocked(f *flush, now time.Duration) {
	if f.sealed {
		return
	}
	late := now-f.sent > c.lane.group.pool.options.MasterTimeout
	for i, e := range f.entries {
		at := f.index[i]
		if !e.props.SealZero || at < 0 || late {
			continue
		}
		if r := f.reply(i); r.Kind == ReplyInt && r.Int == 0 {
			c.unsealed = append(c.unsealed, unsealedAnswer{entry: e, reply: r})
			f.entries[i].op = nil // answered later
		}
	}
}

func (c *connection) deliver(f *flush, seal Seal, sealed []unsealedAnswer) {
	lane := c.lane.index
	if f.repeats && f.taken == nil {
		f.taken = Taken{}
	}
	var counted Votes
	for _, v := range sealed {
		c.lane.group.answer(v.entry.op, Answer{Lane: lane, Sent: true, Reply: v.reply, Seal: seal})
	}
	answer := func(i int) {
		op := f.entries[i].op
		if op == nil {
			return
		}
		a := Answer{Lane: lane, Seal: seal}
		if f.repeats {
			a.Taken = f.taken
		}
		if at := f.index[i]; at >= 0 {
			a.Sent, a.Reply = true, f.reply(i)
		}
		if f.entries[i].props.Exclusive {
			counted.count(&a)
		}
		c.lane.group.answer(op, a)
	}
	f.inOrder(answer)
	c.lane.votes.add(counted)
}
